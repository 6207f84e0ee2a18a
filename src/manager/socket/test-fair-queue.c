/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "base/test.h"
#include "manager/socket/fair-queue.h"

#define LONG_MS  1000
#define CROWD    1000
#define CROWDED  1
#define OTHER    2
#define SOMEBODY 3

struct one {
        struct fair_entry entry;
        size_t at; /* its place in the order; 0: not yet */
        size_t n;  /* that it waits for again */
        uint64_t cost_ms;
        bool leaves;
};

static struct fair_queue *queue;
static uint64_t now_ms; /* so that only what a test says takes time */
static struct one crowd[CROWD], other;
static size_t n_served;

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
        (void)id;
        *now = (struct timespec){ .tv_sec = (time_t)(now_ms / 1000),
                                  .tv_nsec = (long)(now_ms % 1000) * 1000000 };
        return 0;
}

static void serve(void *userdata)
{
        struct one *one = userdata;

        one->at = ++n_served;
        now_ms += one->cost_ms;
        if (one->leaves)
                fair_deinit(&one->entry);
        else if (one->n > 0 && one->n--)
                fair_wait(&one->entry);
}

static void make(struct one *one, uid_t user)
{
        *one = (struct one){ .cost_ms = LONG_MS };
        assert_int_equal(fair_init(&one->entry, queue, user, serve, one), 0);
}

static int set_up(void **state)
{
        (void)state;
        assert_int_equal(fair_queue_new(&queue, NULL), 0);
        n_served = 0;
        for (size_t i = 0; i < CROWD; i++)
                make(&crowd[i], CROWDED);
        make(&other, OTHER);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        for (size_t i = 0; i < CROWD; i++)
                fair_deinit(&crowd[i].entry);
        fair_deinit(&other.entry);
        queue = fair_queue_free(queue);
        return 0;
}

static void run_all(void)
{
        while (fair_queue_run(queue))
                ;
}

static void a_crowd_of_one_user_is_one_before_another(void **state)
{
        (void)state;
        for (size_t i = 0; i < CROWD; i++)
                fair_wait(&crowd[i].entry);
        fair_wait(&other.entry);
        run_all();
        assert_int_equal(n_served, CROWD + 1);
        assert_in_range(other.at, 1, 2);
}

static void who_comes_later_waits_for_one_of_each(void **state)
{
        struct one third;

        (void)state;
        make(&third, SOMEBODY);
        for (size_t i = 0; i < CROWD; i++)
                fair_wait(&crowd[i].entry);
        for (size_t i = 0; i < CROWD / 2; i++)
                assert_true(fair_queue_run(queue));
        fair_wait(&other.entry);
        fair_wait(&third.entry);
        run_all();
        assert_in_range(other.at, CROWD / 2 + 1, CROWD / 2 + 3);
        assert_in_range(third.at, CROWD / 2 + 1, CROWD / 2 + 3);
        fair_deinit(&third.entry);
}

static void a_users_own_come_as_they_began_to_wait(void **state)
{
        (void)state;
        for (size_t i = 0; i < CROWD; i++)
                fair_wait(&crowd[i].entry);
        run_all();
        for (size_t i = 0; i < CROWD; i++)
                assert_int_equal(crowd[i].at, i + 1);
}

static void a_long_turn_is_paid_for_with_many_short_ones(void **state)
{
        (void)state;
        fair_wait(&crowd[0].entry);
        run_all();
        fair_wait(&crowd[0].entry);
        other.n = 500;
        other.cost_ms = 0;
        fair_wait(&other.entry);
        run_all();
        assert_int_equal(other.n, 0);
        assert_int_equal(crowd[0].at, n_served);
}

static void a_new_connection_pays_as_well(void **state)
{
        struct one one;

        (void)state;
        make(&one, SOMEBODY);
        fair_wait(&one.entry);
        run_all();
        fair_deinit(&one.entry);
        other.cost_ms = crowd[0].cost_ms = 0;
        fair_wait(&crowd[0].entry);
        run_all(); /* and he is remembered */
        make(&one, SOMEBODY);
        fair_wait(&one.entry);
        other.n = 10;
        fair_wait(&other.entry);
        run_all();
        assert_int_equal(one.at, n_served);
        fair_deinit(&one.entry);
}

static void who_was_idle_has_saved_nothing(void **state)
{
        (void)state;
        for (size_t i = 0; i < CROWD; i++)
                fair_wait(&crowd[i].entry);
        run_all();
        other.n = 100;
        crowd[0].n = 1;
        fair_wait(&other.entry);
        fair_wait(&crowd[0].entry);
        run_all();
        assert_in_range(crowd[0].at, CROWD + 2, CROWD + 6);
}

static void who_leaves_is_not_served(void **state)
{
        (void)state;
        crowd[0].leaves = true;
        fair_wait(&crowd[0].entry);
        fair_wait(&crowd[0].entry); /* once */
        fair_wait(&crowd[1].entry);
        fair_deinit(&crowd[1].entry);
        run_all();
        assert_int_equal(crowd[0].at, 1);
        assert_int_equal(crowd[1].at, 0);
        assert_int_equal(n_served, 1);
        fair_deinit(&(struct fair_entry){ 0 });
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_crowd_of_one_user_is_one_before_another, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(who_comes_later_waits_for_one_of_each, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_users_own_come_as_they_began_to_wait, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_long_turn_is_paid_for_with_many_short_ones,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_new_connection_pays_as_well, set_up, tear_down),
                cmocka_unit_test_setup_teardown(who_was_idle_has_saved_nothing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(who_leaves_is_not_served, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
