/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say that the driver is being asked for is believed for a while, and not of those that are stopped. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/test.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/pending.h"

#define LOOK_NS 500000000ull
#define START   (1000 * LOOK_NS)

static void test_what_does_not_come_out_is_believed_for_a_while(void **state)
{
        struct pending pending = { 0 };
        uint64_t now = START;
        (void)state;

        for (; now < START + PENDING_TERM_NS; now += LOOK_NS)
                assert_int_equal(pending_note(&pending, 10 * MIB, now), 10 * MIB);
        assert_int_equal(pending_note(&pending, 10 * MIB, now), 0);
        now += LOOK_NS;
        assert_int_equal(pending_note(&pending, 12 * MIB, now), 2 * MIB); /* another one asks */
        now += LOOK_NS;
        assert_int_equal(pending_note(&pending, 0, now), 0);
        now += LOOK_NS;
        assert_int_equal(pending_note(&pending, 10 * MIB, now), 10 * MIB);
}

/* Who allocates all the time is caught at it in each look. */
static void test_what_changes_is_believed(void **state)
{
        struct pending pending = { 0 };
        (void)state;

        for (uint64_t i = 0; i < 100; i++)
                assert_int_equal(pending_note(&pending, i % 5 ? 10 * MIB : 0, START + i * LOOK_NS),
                                 i % 5 ? 10 * MIB : 0);
        for (uint64_t i = 100; i < 200; i++)
                assert_true(pending_note(&pending, i % 5 ? 10 * MIB : 2 * MIB,
                                         START + i * LOOK_NS) >= (i % 5 ? 8 * MIB : 0));
}

/* Nobody looks while nothing is promised: what was seen long ago is not what is there now. */
static void test_looks_that_are_far_apart_tell_nothing(void **state)
{
        struct pending pending = { 0 };
        (void)state;

        for (uint64_t i = 0; i < 20; i++)
                assert_int_equal(pending_note(&pending, 10 * MIB, START + i * 10 * LOOK_NS),
                                 10 * MIB);
}

static void test_one_that_is_stopped_asks_for_nothing(void **state)
{
        struct instance instance = { .frame_buffer = GIB, .part = { { .page = { .fd = -1 } } } };
        struct guest guest = { .instance = &instance };
        struct instance_part *part = &instance.part[0];
        int status;
        (void)state;

        guest.pid = fork();
        if (guest.pid == 0)
                while (true)
                        pause();
        list_init(&instance.guests);
        list_append(&instance.guests, &guest.link);
        assert_int_equal(page_create(&part->page, GIB), 0);
        assert_int_equal(page_take_slot(&part->page, &guest.slot), 0);
        part->page.map->slot[guest.slot].pending = 8 * MIB;
        pending_look(&instance, part);
        assert_int_equal(part->claim.pending, 8 * MIB);
        part->page.map->slot[guest.slot].pending = UINT64_MAX;
        pending_look(&instance, part);
        assert_int_equal(part->claim.pending, GIB);

        assert_int_equal(kill(guest.pid, SIGSTOP), 0);
        assert_int_equal(waitpid(guest.pid, &status, WUNTRACED), guest.pid);
        pending_look(&instance, part);
        assert_int_equal(part->claim.pending, 0);

        assert_int_equal(kill(guest.pid, SIGKILL), 0);
        assert_int_equal(waitpid(guest.pid, &status, 0), guest.pid);
        page_deinit(&part->page);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_does_not_come_out_is_believed_for_a_while),
                cmocka_unit_test(test_what_changes_is_believed),
                cmocka_unit_test(test_looks_that_are_far_apart_tell_nothing),
                cmocka_unit_test(test_one_that_is_stopped_asks_for_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
