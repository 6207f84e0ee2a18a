/* SPDX-License-Identifier: Apache-2.0 */
/* Shares, starvation and the arithmetic of turns, in virtual time and with hundreds of vGPUs. */
#include <string.h>

#include "base/test.h"
#include "scheduler/scheduler.h"

#define MS      1000000ull
#define SECOND  1000000000ull
#define VGPUS   300
#define FOREVER UINT64_MAX

struct world {
        struct scheduler scheduler;
        struct scheduler_member member[VGPUS];
        uint32_t n;
        uint64_t now;
        uint64_t switch_ns;         /* that each switch takes */
        uint64_t overrun_ns[VGPUS]; /* how much longer than its target each one runs */
        uint64_t longest_wait;      /* of anybody who has work */
        uint64_t last_turn[VGPUS];
        uint64_t n_turns;
};

static void world_init(struct world *world, const struct scheduler_settings *settings, uint32_t n)
{
        memset(world, 0, sizeof(*world));
        scheduler_init(&world->scheduler);
        scheduler_configure(&world->scheduler, settings);
        world->n = n;
        for (uint32_t i = 0; i < n; i++) {
                world->member[i].id = i + 1;
                scheduler_add(&world->scheduler, &world->member[i]);
                scheduler_set_work(&world->scheduler, &world->member[i], true);
        }
}

static uint32_t index_of(const struct world *world, const struct scheduler_member *member)
{
        return (uint32_t)(member - world->member);
}

static void note_turn(struct world *world, const struct scheduler_member *member)
{
        uint64_t *last = &world->last_turn[index_of(world, member)];

        if (world->now - *last > world->longest_wait)
                world->longest_wait = world->now - *last;
        *last = world->now;
        world->n_turns++;
}

/* One decision and the time until the next one; nobody's work changes meanwhile. */
static void step(struct world *world, uint64_t end)
{
        struct scheduler_order order;

        if (scheduler_decide(&world->scheduler, world->now, &order)) {
                world->now += world->switch_ns;
                scheduler_begin(&world->scheduler, &order, world->now);
                if (order.member)
                        note_turn(world, order.member);
        }
        if (order.until_ns > end) {
                world->now = end;
                return;
        }
        world->now = order.until_ns;
        if (order.member)
                world->now += world->overrun_ns[index_of(world, order.member)];
}

static void run(struct world *world, uint64_t duration)
{
        uint64_t end = world->now + duration;

        while (world->now < end)
                step(world, end);
}

static double received(const struct world *world, uint32_t i, uint64_t duration)
{
        return (double)world->member[i].received / (double)duration;
}

static void assert_near(double value, double expected, double tolerance)
{
        if (value > expected + tolerance || value < expected - tolerance)
                fail_msg("%f is not within %f of %f", value, tolerance, expected);
}

static const struct scheduler_settings equal = { .policy = SCHEDULER_EQUAL_SHARE,
                                                 .is_adaptive = true,
                                                 .frequency = 200 };
static const struct scheduler_settings equal_least = { .policy = SCHEDULER_EQUAL_SHARE,
                                                       .time_slice = 5 * MS };
static const struct scheduler_settings fixed = { .policy = SCHEDULER_FIXED_SHARE,
                                                 .is_adaptive = true,
                                                 .frequency = 100 };
static const struct scheduler_settings best_effort = { .policy = SCHEDULER_BEST_EFFORT };

/* Exactly: each of 300 has the same, and nobody waits longer than a round. */
static void test_equal_shares_of_hundreds(void **state)
{
        struct world world;

        (void)state;
        world_init(&world, &equal, VGPUS);
        run(&world, VGPUS * 5 * MS * 7);
        for (uint32_t i = 0; i < VGPUS; i++)
                if (i + 1 <
                    VGPUS) /* the last one's seventh turn ends just now and is not charged */
                        assert_int_equal(world.member[i].received, 7 * 5 * MS);
        assert_int_equal(world.longest_wait, VGPUS * 5 * MS);
}

static void test_least_served_first_is_equal_too(void **state)
{
        struct world world;

        (void)state;
        world_init(&world, &equal_least, VGPUS);
        for (uint32_t i = 0; i < VGPUS; i++)
                world.overrun_ns[i] = i % 7 * MS;
        run(&world, 200 * SECOND);
        for (uint32_t i = 0; i < VGPUS; i++)
                assert_near(received(&world, i, 200 * SECOND), 1.0 / VGPUS, 0.0002);
}

static void test_shares_are_kept(void **state)
{
        static const uint32_t shares[][4] = {
                { 50, 50 }, { 75, 25 }, { 90, 10 }, { 99, 1 }, { 40, 30, 20, 10 }
        };
        struct world world;

        (void)state;
        for (size_t k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
                world_init(&world, &best_effort, shares[k][2] ? 4 : 2);
                world.switch_ns = 1100000;
                for (uint32_t i = 0; i < world.n; i++)
                        scheduler_set_share(&world.scheduler, &world.member[i], shares[k][i]);
                run(&world, 100 * SECOND);
                for (uint32_t i = 0; i < world.n; i++)
                        assert_near(received(&world, i, 100 * SECOND), shares[k][i] / 100.0, 0.01);
        }
}

/* Two with a share, and @n_more without. */
static void init_crowd(struct world *world, const struct scheduler_settings *settings,
                       uint32_t n_more)
{
        world_init(world, settings, 2 + n_more);
        for (uint32_t i = 2; i < world->n; i++)
                world->member[i].portion = SCHEDULER_WHOLE / 40;
        scheduler_set_share(&world->scheduler, &world->member[0], 75);
        scheduler_set_share(&world->scheduler, &world->member[1], 25);
}

static void assert_entitled(const struct world *world, uint32_t i, double expected)
{
        assert_near((double)scheduler_get_entitled(&world->member[i]) / SCHEDULER_WHOLE, expected,
                    0.00001);
}

/* Whoever is created without one. */
static void test_a_share_is_what_it_says(void **state)
{
        const struct scheduler_settings *policies[] = { &best_effort, &fixed };
        struct world world;

        (void)state;
        for (size_t k = 0; k < sizeof(policies) / sizeof(policies[0]); k++) {
                init_crowd(&world, policies[k], 21);
                world.switch_ns = 900000;
                assert_entitled(&world, 0, 0.75);
                assert_entitled(&world, 1, 0.25);
                assert_entitled(&world, 2, 0);
                run(&world, 100 * SECOND);
                assert_near(received(&world, 0, 100 * SECOND), 0.75, 0.004);
                assert_near(received(&world, 1, 100 * SECOND), 0.25, 0.004);
                for (uint32_t i = 2; i < world.n; i++) /* and yet they end, some day */
                        assert_true(world.member[i].received > 0);
        }
}

/* With turns of many that have no part between them, those with a share do not wait longer for theirs. */
static void test_those_without_a_part_do_not_make_rounds_longer(void **state)
{
        struct world world;
        uint64_t waited = 0, since = 0;

        (void)state;
        init_crowd(&world, &best_effort, 60);
        while (world.now < 20 * SECOND) {
                uint64_t before = world.member[1].received;

                step(&world, 20 * SECOND);
                if (world.member[1].received > before)
                        since = world.now;
                waited = world.now - since > waited ? world.now - since : waited;
        }
        assert_true(waited < 100 * MS);
}

/* What the shares leave, and what those with a share do not use. */
static void test_those_without_a_share_divide_what_is_left(void **state)
{
        struct world world;

        (void)state;
        init_crowd(&world, &best_effort, 2);
        scheduler_set_share(&world.scheduler, &world.member[0], 40);
        assert_entitled(&world, 2, 0.175);
        run(&world, 100 * SECOND);
        assert_near(received(&world, 2, 100 * SECOND), 0.175, 0.01);
        init_crowd(&world, &best_effort, 2);
        scheduler_set_work(&world.scheduler, &world.member[0], false);
        assert_entitled(&world, 2, 0);
        run(&world, 100 * SECOND);
        assert_near(received(&world, 1, 100 * SECOND), 0.25, 0.01);
        assert_near(received(&world, 2, 100 * SECOND), 0.375, 0.01);
}

/* Turns of one end 95 ms late each time, as where a kernel cannot be interrupted. */
static void test_who_overruns_pays_for_it(void **state)
{
        static const struct scheduler_settings *const all[] = { &equal, &equal_least };
        struct world world;

        (void)state;
        for (size_t k = 0; k < 2; k++) {
                world_init(&world, all[k], 2);
                world.overrun_ns[1] = 95 * MS;
                run(&world, 60 * SECOND);
                assert_near(received(&world, 0, 60 * SECOND), 0.5, 0.01);
                assert_near(received(&world, 1, 60 * SECOND), 0.5, 0.01);
        }
}

/* The arithmetic: total / factor is taken off, and what was taken off is no longer owed. */
static void test_compensation_is_exact(void **state)
{
        struct scheduler_settings settings = equal;
        const struct scheduler_turn *log;
        uint64_t owed = 0;
        struct world world;

        (void)state;
        settings.averaging_factor = 10;
        world_init(&world, &settings, 2);
        world.overrun_ns[0] = 2 * MS;
        run(&world, 900 * MS);
        log = world.scheduler.log;
        assert_in_range(world.scheduler.n_logged, 150, SCHEDULER_LOG_MAX);
        for (uint64_t i = 0; i < world.scheduler.n_logged; i++) {
                if (log[i].id != 1)
                        continue;
                assert_int_equal(log[i].target, 5 * MS - (owed / 10 < 4 * MS ? owed / 10 : 4 * MS));
                owed -= 5 * MS - log[i].target;
                assert_int_equal(log[i].run, log[i].target + 2 * MS);
                owed += 2 * MS;
        }
        assert_true(owed > 15 * MS); /* it settles where 2 ms are taken off each time: at 20 ms */
        assert_true(owed <= 22 * MS);
}

static void test_a_larger_factor_compensates_more_slowly(void **state)
{
        struct scheduler_settings settings = equal;
        uint64_t target[2];
        struct world world;

        (void)state;
        for (int i = 0; i < 2; i++) {
                settings.averaging_factor = i ? 60 : 1;
                world_init(&world, &settings, 2);
                world.overrun_ns[0] = 1 * MS;
                run(&world, 12 * MS);
                assert_int_equal(world.scheduler.order.owner->id, 1);
                target[i] = world.scheduler.order.target;
        }
        assert_int_equal(target[0], 4 * MS);
        assert_int_equal(target[1], 5 * MS - MS / 60);
}

/* What a switch takes belongs to the one that is switched away from, and is compensated. */
static void test_switches_are_paid_by_all(void **state)
{
        struct world world;

        (void)state;
        world_init(&world, &equal, 8);
        world.switch_ns = 1500000;
        run(&world, 20 * SECOND);
        for (uint32_t i = 0; i < 8; i++)
                assert_near(received(&world, i, 20 * SECOND), 1 / 8.0, 0.001);
}

static void test_a_fixed_share_is_a_limit(void **state)
{
        struct world world;

        (void)state;
        world_init(&world, &fixed, 1);
        scheduler_set_share(&world.scheduler, &world.member[0], 25);
        world.switch_ns = 700000;
        run(&world, 60 * SECOND);
        assert_near(received(&world, 0, 60 * SECOND), 0.25, 0.005);
}

/* Nobody gets what an idle one leaves; it runs as soon as its time comes. */
static void test_a_fixed_share_stays_while_others_are_idle(void **state)
{
        struct world world;

        (void)state;
        world_init(&world, &fixed, 3);
        for (uint32_t i = 0; i < 3; i++)
                scheduler_set_share(&world.scheduler, &world.member[i], 20 + 10 * i);
        scheduler_set_work(&world.scheduler, &world.member[2], false);
        run(&world, 20 * SECOND);
        assert_near(received(&world, 0, 20 * SECOND), 0.2, 0.002);
        assert_near(received(&world, 1, 20 * SECOND), 0.3, 0.002);
        assert_int_equal(world.member[2].received, 0);
        scheduler_set_work(&world.scheduler, &world.member[2], true);
        run(&world, 20 * SECOND);
        assert_near(received(&world, 2, 20 * SECOND), 0.4, 0.002);
        assert_near(received(&world, 0, 40 * SECOND), 0.2, 0.002);
}

static void test_portions_that_are_too_large_shrink(void **state)
{
        struct world world;

        (void)state;
        world_init(&world, &fixed, 4);
        for (uint32_t i = 0; i < 4; i++)
                world.member[i].portion = SCHEDULER_WHOLE / 2;
        scheduler_configure(&world.scheduler, &fixed);
        run(&world, 20 * SECOND);
        for (uint32_t i = 0; i < 4; i++)
                assert_near(received(&world, i, 20 * SECOND), 0.25, 0.002);
}

/* 300 come and go at random; whoever is there all the time gets as much as the other who is. */
static void test_comings_and_goings(void **state)
{
        uint64_t seed = 88172645463325252u;
        struct world world;

        (void)state;
        world_init(&world, &equal, VGPUS);
        for (int k = 0; k < 20000; k++) {
                struct scheduler_member *member;

                seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
                member = &world.member[2 + seed % (VGPUS - 2)];
                if (seed >> 60 == 0) {
                        scheduler_remove(&world.scheduler, member);
                        scheduler_add(&world.scheduler, member);
                }
                scheduler_set_work(&world.scheduler, member, seed >> 40 & 1);
                run(&world, 7 * MS);
        }
        assert_near((double)world.member[0].received / (double)world.member[1].received, 1, 0.03);
        assert_true(world.member[0].received > 0);
        assert_true(world.longest_wait > 0);
        for (uint32_t i = 0; i < 2; i++)
                assert_true(world.now - world.last_turn[i] <= 2ull * VGPUS * 5 * MS);
}

/* Who sleeps and wakes all the time gets turns soon, and no more than its share of the time. */
static void test_waking_often_is_no_way_to_get_more(void **state)
{
        struct world world;
        uint64_t begin;

        (void)state;
        world_init(&world, &equal, 8);
        run(&world, SECOND);
        begin = world.member[7].received;
        while (world.now < 21 * SECOND) {
                scheduler_set_work(&world.scheduler, &world.member[7], false);
                run(&world, 1);
                scheduler_set_work(&world.scheduler, &world.member[7], true);
                run(&world, 10 * MS);
        }
        assert_true((double)(world.member[7].received - begin) / (20.0 * (double)SECOND) < 0.16);
}

static void test_new_work_gets_a_turn_within_two(void **state)
{
        struct world world;
        uint64_t turns;

        (void)state;
        world_init(&world, &equal, VGPUS);
        scheduler_set_work(&world.scheduler, &world.member[9], false);
        for (int k = 0; k < 50; k++) {
                run(&world, 1600 * MS + (uint64_t)k * MS);
                scheduler_set_work(&world.scheduler, &world.member[9], true);
                turns = world.n_turns;
                while (world.scheduler.order.member != &world.member[9])
                        step(&world, FOREVER);
                assert_true(world.n_turns - turns <= 2);
                run(&world, 5 * MS);
                scheduler_set_work(&world.scheduler, &world.member[9], false);
        }
}

static void test_clock_jumps(void **state)
{
        struct world world;

        (void)state;
        world_init(&world, &equal, 2);
        run(&world, SECOND);
        world.now += 3600 * SECOND; /* asleep, or stopped in a debugger */
        run(&world, SECOND);
        assert_near((double)world.member[0].received, (double)SECOND, 0.02 * (double)SECOND);
        world.now = 5; /* and back */
        run(&world, SECOND);
        assert_near((double)world.member[0].received, 1.5 * (double)SECOND, 0.02 * (double)SECOND);
        assert_near((double)world.member[1].received, 1.5 * (double)SECOND, 0.02 * (double)SECOND);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_equal_shares_of_hundreds),
                cmocka_unit_test(test_least_served_first_is_equal_too),
                cmocka_unit_test(test_shares_are_kept),
                cmocka_unit_test(test_a_share_is_what_it_says),
                cmocka_unit_test(test_those_without_a_part_do_not_make_rounds_longer),
                cmocka_unit_test(test_those_without_a_share_divide_what_is_left),
                cmocka_unit_test(test_who_overruns_pays_for_it),
                cmocka_unit_test(test_compensation_is_exact),
                cmocka_unit_test(test_a_larger_factor_compensates_more_slowly),
                cmocka_unit_test(test_switches_are_paid_by_all),
                cmocka_unit_test(test_a_fixed_share_is_a_limit),
                cmocka_unit_test(test_a_fixed_share_stays_while_others_are_idle),
                cmocka_unit_test(test_portions_that_are_too_large_shrink),
                cmocka_unit_test(test_comings_and_goings),
                cmocka_unit_test(test_waking_often_is_no_way_to_get_more),
                cmocka_unit_test(test_new_work_gets_a_turn_within_two),
                cmocka_unit_test(test_clock_jumps),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
