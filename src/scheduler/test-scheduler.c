/* SPDX-License-Identifier: Apache-2.0 */
/* When there is something to enforce, the settings, the log. */
#include "base/test.h"
#include "scheduler/scheduler.h"

#define MS 1000000ull

static struct scheduler scheduler;
static struct scheduler_member a, b;
static uint64_t now;

static int set_up(void **state)
{
        (void)state;
        now = 0;
        scheduler_init(&scheduler);
        a = (struct scheduler_member){ .id = 1 };
        b = (struct scheduler_member){ .id = 2 };
        scheduler_add(&scheduler, &a);
        scheduler_add(&scheduler, &b);
        return 0;
}

static void configure(enum scheduler_policy policy)
{
        const struct scheduler_settings settings = { .policy = policy,
                                                     .is_adaptive = true,
                                                     .frequency = 100 };

        scheduler_configure(&scheduler, &settings);
}

static struct scheduler_order decide(void)
{
        struct scheduler_order order;

        if (scheduler_decide(&scheduler, now, &order))
                scheduler_begin(&scheduler, &order, now);
        return order;
}

static void test_best_effort_leaves_the_driver_alone(void **state)
{
        (void)state;
        scheduler_set_work(&scheduler, &a, true);
        scheduler_set_work(&scheduler, &b, true);
        assert_false(scheduler_is_enforcing(&scheduler));
        assert_int_equal(decide().mode, SCHEDULER_FREE);
        assert_int_equal(decide().until_ns, SCHEDULER_UNLIMITED);
        scheduler_set_share(&scheduler, &a, 75);
        assert_true(scheduler_is_enforcing(&scheduler));
        assert_int_equal(decide().mode, SCHEDULER_TURN);
        scheduler_set_share(&scheduler, &a, 0);
        assert_int_equal(decide().mode, SCHEDULER_FREE);
}

static void test_one_with_work_needs_no_turns(void **state)
{
        (void)state;
        configure(SCHEDULER_EQUAL_SHARE);
        scheduler_set_work(&scheduler, &a, true);
        assert_int_equal(decide().mode, SCHEDULER_FREE);
        scheduler_set_work(&scheduler, &b, true);
        assert_int_equal(decide().mode, SCHEDULER_TURN);
        now = 3 * MS; /* in the middle of the turn */
        scheduler_set_work(&scheduler, &b, false);
        assert_int_equal(decide().mode, SCHEDULER_FREE);
        now = 13 * MS; /* it has had all the time */
        assert_int_equal(scheduler_get_received(&scheduler, &a, now), 13 * MS);
        scheduler_set_work(&scheduler, &a, false);
        assert_int_equal(decide().mode, SCHEDULER_FREE);
        now = 20 * MS;
        assert_int_equal(scheduler_get_received(&scheduler, &a, now), 13 * MS);
}

static void test_a_turn_ends_with_the_work(void **state)
{
        struct scheduler_member c = { .id = 3 };
        struct scheduler_order order;

        (void)state;
        configure(SCHEDULER_EQUAL_SHARE);
        scheduler_add(&scheduler, &c);
        scheduler_set_work(&scheduler, &a, true);
        scheduler_set_work(&scheduler, &b, true);
        scheduler_set_work(&scheduler, &c, true);
        order = decide();
        assert_ptr_equal(order.member, &a);
        assert_int_equal(order.until_ns, 10 * MS);
        now = 2 * MS;
        scheduler_set_work(&scheduler, &a, false);
        order = decide();
        assert_ptr_equal(order.member, &b);
        assert_int_equal(a.received, 2 * MS);
        assert_int_equal(a.overshoot, 0);
        assert_int_equal(order.until_ns, 12 * MS);
        now = 12 * MS;
        assert_ptr_equal(decide().member, &c);
        now = 22 * MS;
        assert_ptr_equal(decide().member, &b); /* its turn is skipped */
}

static void test_a_fixed_share_counts_alone_too(void **state)
{
        struct scheduler_order order;

        (void)state;
        scheduler_remove(&scheduler, &b);
        configure(SCHEDULER_FIXED_SHARE);
        scheduler_set_share(&scheduler, &a, 20);
        assert_true(scheduler_is_enforcing(&scheduler));
        assert_int_equal(decide().mode, SCHEDULER_FREE); /* nobody is there to be held back */
        scheduler_set_work(&scheduler, &a, true);
        order = decide();
        assert_int_equal(order.mode, SCHEDULER_TURN);
        assert_int_equal(order.until_ns, 10 * MS);
        now = 10 * MS;
        order = decide();
        assert_int_equal(order.mode, SCHEDULER_PAUSE);
        assert_int_equal(order.until_ns, 50 * MS);
}

static void test_removal_in_the_middle_of_a_turn(void **state)
{
        (void)state;
        configure(SCHEDULER_EQUAL_SHARE);
        scheduler_set_work(&scheduler, &a, true);
        scheduler_set_work(&scheduler, &b, true);
        assert_ptr_equal(decide().member, &a);
        scheduler_remove(&scheduler, &a);
        now = 1 * MS;
        assert_int_equal(decide().mode, SCHEDULER_FREE);
        assert_int_equal(scheduler.n_logged, 0);
        assert_int_equal(a.received, 0);
}

static void test_entitled(void **state)
{
        (void)state;
        configure(SCHEDULER_EQUAL_SHARE);
        assert_int_equal(scheduler_get_entitled(&a), 500000);
        configure(SCHEDULER_BEST_EFFORT);
        scheduler_set_share(&scheduler, &a, 90);
        assert_int_equal(scheduler_get_entitled(&a), 900000);
        assert_int_equal(scheduler_get_entitled(&b), 100000);
        configure(SCHEDULER_FIXED_SHARE);
        assert_int_equal(scheduler_get_entitled(&a), 900000);
        assert_int_equal(scheduler_get_entitled(&b), 0);
}

static void test_defaults(void **state)
{
        struct scheduler_settings settings = { .policy = SCHEDULER_EQUAL_SHARE,
                                               .is_adaptive = true };

        (void)state;
        scheduler_settings_complete(&settings, 8);
        assert_int_equal(settings.frequency, 480);
        assert_int_equal(settings.averaging_factor, 33);
        assert_int_equal(scheduler_settings_get_slice(&settings), 2083333);
        settings.frequency = 0;
        settings.is_adaptive = false;
        settings.time_slice = 0;
        scheduler_settings_complete(&settings, 9);
        assert_int_equal(settings.frequency, 960);
        assert_int_equal(scheduler_settings_get_slice(&settings), 1 * MS);
}

static void test_the_log_keeps_the_last(void **state)
{
        const struct scheduler_turn *turn;

        (void)state;
        configure(SCHEDULER_EQUAL_SHARE);
        scheduler_set_work(&scheduler, &a, true);
        scheduler_set_work(&scheduler, &b, true);
        for (int i = 0; i <= 1000; i++, now += 11 * MS) /* the 1000 turns before the last one */
                (void)decide();
        assert_int_equal(scheduler.n_logged, 1000);
        turn = &scheduler.log[999 % SCHEDULER_LOG_MAX];
        assert_int_equal(turn->id, 2);
        assert_int_equal(turn->run, 11 * MS);
        assert_int_equal(turn->run_total, 500 * 11 * MS);
        assert_int_equal(turn->end, 1000 * 11 * MS);
        assert_int_equal(turn->weight, 500000);
        assert_true(turn->target < 10 * MS); /* it has run over again and again */
        assert_true(turn->preempted > 500 * MS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_best_effort_leaves_the_driver_alone, set_up),
                cmocka_unit_test_setup(test_one_with_work_needs_no_turns, set_up),
                cmocka_unit_test_setup(test_a_turn_ends_with_the_work, set_up),
                cmocka_unit_test_setup(test_a_fixed_share_counts_alone_too, set_up),
                cmocka_unit_test_setup(test_removal_in_the_middle_of_a_turn, set_up),
                cmocka_unit_test_setup(test_entitled, set_up),
                cmocka_unit_test_setup(test_defaults, set_up),
                cmocka_unit_test_setup(test_the_log_keeps_the_last, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
