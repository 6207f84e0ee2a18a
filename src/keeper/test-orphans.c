/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper lets processes on their device when the manager is gone, and tries again where that fails. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "channels/plan.h"
#include "keeper/orphans.h"
#include "wire/keeper.h"

#define OFFSET 64 /* of the word that a simulated device reads */

static void put(struct fd_table *table, const char *label, int fd)
{
        assert_true(fd >= 0);
        assert_int_equal(fd_table_put(table, label, fd), 0);
}

/* The simulated host's file, of which the word at OFFSET is 1: held off. */
static int make_host(void)
{
        const uint32_t one = 1;
        int fd = memfd_create("host", MFD_CLOEXEC);

        assert_int_equal(pwrite(fd, &one, sizeof(one), OFFSET), sizeof(one));
        return fd;
}

static uint32_t read_word(int fd)
{
        uint32_t word = 7;

        assert_int_equal(pread(fd, &word, sizeof(word), OFFSET), sizeof(word));
        return word;
}

static int make_plan(bool is_off)
{
        struct plan *plan;
        int fd;

        assert_int_equal(plan_create(&plan, &fd, PLAN_SIMULATED), 0);
        plan->offset = OFFSET;
        plan->is_off = is_off;
        plan_unmap(plan);
        return fd;
}

static void test_only_plans_leave_the_managers_table(void **state)
{
        struct fd_table table = { 0 }, orphans = { 0 };
        (void)state;

        put(&table, "page/1", make_host());
        put(&table, KEEPER_PLAN "1/2", make_plan(true));
        put(&table, KEEPER_PROCESS "1/2", make_host());
        orphans_take(&orphans, &table);
        assert_int_equal(table.n, 1);
        assert_true(fd_table_find(&table, "page/1") >= 0);
        assert_int_equal(orphans.n, 2);
        fd_table_deinit(&table);
        fd_table_deinit(&orphans);
}

static void test_who_is_held_off_is_let_on(void **state)
{
        struct fd_table orphans = { 0 };
        CLEANUP(fd_closep) int off = make_host(), on = make_host();
        (void)state;

        put(&orphans, KEEPER_PLAN "off", make_plan(true));
        put(&orphans, KEEPER_PROCESS "off", dup(off));
        put(&orphans, KEEPER_PLAN "on", make_plan(false));
        put(&orphans, KEEPER_PROCESS "on", dup(on));
        orphans_let_on(&orphans);
        assert_int_equal(read_word(off), 0);
        assert_int_equal(read_word(on), 1); /* this one was on: its word is left alone */
        assert_int_equal(orphans.n, 0);
}

static void test_what_fails_is_tried_again(void **state)
{
        struct fd_table orphans = { 0 };
        CLEANUP(fd_closep) int other = make_host();
        (void)state;

        put(&orphans, KEEPER_PLAN "stuck", make_plan(true));
        put(&orphans, KEEPER_PROCESS "stuck", open("/dev/null", O_RDONLY | O_CLOEXEC));
        put(&orphans, KEEPER_PLAN "other", make_plan(true));
        put(&orphans, KEEPER_PROCESS "other", dup(other));
        orphans_let_on(&orphans);
        assert_int_equal(read_word(other), 0);
        assert_int_equal(orphans.n, 2);

        put(&orphans, KEEPER_PROCESS "stuck", make_host()); /* takes the place of the former */
        orphans_let_on(&orphans);
        assert_int_equal(orphans.n, 0);
}

static void test_what_cannot_be_carried_out_is_forgotten(void **state)
{
        struct fd_table orphans = { 0 };
        (void)state;

        put(&orphans, KEEPER_PLAN "alone", make_plan(true)); /* without its descriptor */
        put(&orphans, KEEPER_PLAN "torn", memfd_create("torn", MFD_CLOEXEC));
        put(&orphans, KEEPER_PROCESS "torn", make_host());
        put(&orphans, KEEPER_PROCESS "without a plan", make_host());
        orphans_let_on(&orphans);
        assert_int_equal(orphans.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_plans_leave_the_managers_table),
                cmocka_unit_test(test_who_is_held_off_is_let_on),
                cmocka_unit_test(test_what_fails_is_tried_again),
                cmocka_unit_test(test_what_cannot_be_carried_out_is_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
