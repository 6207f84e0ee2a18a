/* SPDX-License-Identifier: Apache-2.0 */
/* Nobody who has work waits for what was before it came: after a long time, in any order of events. */
#include <string.h>

#include "base/test.h"
#include "scheduler/scheduler.h"

#define MS     1000000ull
#define SECOND 1000000000ull
#define VGPUS  12

/* The longest that somebody with one percent waits for a turn of 5 ms, four times over. */
#define WAIT_MAX (2 * SECOND)

static struct {
        struct scheduler scheduler;
        struct scheduler_member member[VGPUS];
        bool is_there[VGPUS];
        uint64_t waits_since[VGPUS];
        uint64_t now, longest_wait;
        uint64_t random;
} world;

static const struct scheduler_settings policies[] = {
        { .policy = SCHEDULER_EQUAL_SHARE, .time_slice = 5 * MS },
        { .policy = SCHEDULER_FIXED_SHARE, .time_slice = 5 * MS },
        { .policy = SCHEDULER_EQUAL_SHARE, .is_adaptive = true, .frequency = 200 },
        { .policy = SCHEDULER_FIXED_SHARE, .is_adaptive = true, .frequency = 200 },
        { .policy = SCHEDULER_BEST_EFFORT, .time_slice = 5 * MS },
};

#define POLICIES (sizeof(policies) / sizeof(policies[0]))

static uint64_t draw(uint64_t n)
{
        world.random ^= world.random << 13;
        world.random ^= world.random >> 7;
        world.random ^= world.random << 17;
        return world.random % n;
}

static void join(int i, uint32_t share)
{
        world.member[i] = (struct scheduler_member){ .id = (uint32_t)i + 1,
                                                     .share = share,
                                                     .portion = SCHEDULER_WHOLE / 16 };
        scheduler_add(&world.scheduler, &world.member[i]);
        world.is_there[i] = true;
}

static void set_work(int i, bool has_work)
{
        if (has_work && !world.member[i].has_work)
                world.waits_since[i] = world.now;
        scheduler_set_work(&world.scheduler, &world.member[i], has_work);
}

static void leave(int i)
{
        scheduler_remove(&world.scheduler, &world.member[i]);
        world.is_there[i] = false;
        world.member[i].has_work = false;
}

static void set_up(const struct scheduler_settings *settings)
{
        memset(&world, 0, sizeof(world));
        world.random = 88172645463325252u;
        scheduler_init(&world.scheduler);
        scheduler_configure(&world.scheduler, settings);
}

static void note_waits(const struct scheduler_order *order)
{
        for (int i = 0; i < VGPUS; i++) {
                if (order->mode == SCHEDULER_FREE || order->member == &world.member[i])
                        world.waits_since[i] = world.now;
                if (world.is_there[i] && world.member[i].has_work &&
                    world.now - world.waits_since[i] > world.longest_wait)
                        world.longest_wait = world.now - world.waits_since[i];
        }
}

static void run(uint64_t duration)
{
        uint64_t end = world.now + duration;
        struct scheduler_order order;

        while (world.now < end) {
                if (scheduler_decide(&world.scheduler, world.now, &order))
                        scheduler_begin(&world.scheduler, &order, world.now);
                note_waits(&order);
                world.now = order.until_ns < end ? order.until_ns : end;
                note_waits(&order);
        }
}

static uint64_t received(int i)
{
        return scheduler_get_received(&world.scheduler, &world.member[i], world.now);
}

/* Of the next 10 seconds, which are divided alike, whoever was there before and whoever was not. */
static void assert_alike(int a, int b)
{
        uint64_t before_a = received(a), before_b = received(b), got_a, got_b;

        run(10 * SECOND);
        got_a = received(a) - before_a;
        got_b = received(b) - before_b;
        if (got_a > got_b + got_b / 20 || got_b > got_a + got_a / 20)
                fail_msg("%.3f s and %.3f s of 10 s", (double)got_a / (double)SECOND,
                         (double)got_b / (double)SECOND);
        assert_true(got_a > SECOND);
}

/* Two that have had the device for five minutes, and one that has not. */
static void run_long(const struct scheduler_settings *settings)
{
        set_up(settings);
        for (int i = 0; i < 2; i++) {
                join(i, 30);
                set_work(i, true);
        }
        run(301 * SECOND);
}

static void test_one_that_joins_takes_no_more_than_its_part(void **state)
{
        (void)state;
        for (size_t k = 0; k < POLICIES; k++) {
                run_long(&policies[k]);
                join(2, 30);
                set_work(2, true);
                assert_alike(0, 2);
        }
}

static void test_one_that_joins_without_work_takes_nothing_from_others(void **state)
{
        uint64_t before;

        (void)state;
        for (size_t k = 0; k < POLICIES; k++) {
                run_long(&policies[k]);
                join(2, 30);
                before = received(0);
                run(10 * SECOND);
                assert_true(received(0) - before > 29 * SECOND / 10);
        }
}

static void test_one_that_leaves_leaves_its_time_to_others(void **state)
{
        uint64_t before;

        (void)state;
        for (size_t k = 0; k < POLICIES; k++) {
                run_long(&policies[k]);
                join(2, 40); /* nothing of a fixed share is left over until it goes */
                set_work(2, true);
                run(301 * SECOND);
                leave(2);
                before = received(0);
                run(10 * SECOND);
                assert_true(received(0) - before > 29 * SECOND / 10);
                assert_alike(0, 1);
        }
}

static void test_one_that_was_idle_takes_no_more_than_its_part(void **state)
{
        (void)state;
        for (size_t k = 0; k < POLICIES; k++) {
                set_up(&policies[k]);
                for (int i = 0; i < 3; i++) {
                        join(i, 30);
                        set_work(i, i < 2);
                }
                run(301 * SECOND);
                set_work(2, true);
                assert_alike(0, 2);
        }
}

/* For an instant nobody has work: who comes then is not the measure of all others. */
static void test_one_that_joins_where_all_are_idle(void **state)
{
        (void)state;
        for (size_t k = 0; k < POLICIES; k++) {
                run_long(&policies[k]);
                set_work(0, false);
                set_work(1, false);
                run(MS);
                join(2, 30);
                set_work(2, true);
                set_work(0, true);
                set_work(1, true);
                assert_alike(0, 2);
                assert_alike(1, 2);
        }
}

static const uint32_t some_shares[] = { 0, 1, 2, 5, 8 }; /* of all together no more than 100 */

static void do_anything(void)
{
        int i = (int)draw(VGPUS);
        uint32_t share = some_shares[draw(sizeof(some_shares) / sizeof(some_shares[0]))];

        if (!world.is_there[i]) {
                join(i, share);
                set_work(i, draw(2));
                return;
        }
        switch (draw(6)) {
        case 0:
                leave(i);
                return;
        case 1:
                scheduler_set_share(&world.scheduler, &world.member[i], share);
                return;
        default:
                set_work(i, draw(2));
        }
}

/* Long quiet times, in which differences build up, and short ones; settings now and then. */
static void test_whatever_happens_nobody_starves(void **state)
{
        (void)state;
        for (size_t k = 0; k < 4 * POLICIES; k++) {
                set_up(&policies[k % POLICIES]);
                world.random += k;
                for (int event = 0; event < 3000; event++) {
                        do_anything();
                        if (draw(200) == 0)
                                scheduler_configure(&world.scheduler, &policies[draw(POLICIES)]);
                        run(draw(100) ? draw(20 * MS) : 60 * SECOND);
                        if (world.longest_wait > WAIT_MAX)
                                fail_msg("policy %zu, event %d: somebody waited for %.3f s", k,
                                         event, (double)world.longest_wait / (double)SECOND);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_that_joins_takes_no_more_than_its_part),
                cmocka_unit_test(test_one_that_joins_without_work_takes_nothing_from_others),
                cmocka_unit_test(test_one_that_leaves_leaves_its_time_to_others),
                cmocka_unit_test(test_one_that_was_idle_takes_no_more_than_its_part),
                cmocka_unit_test(test_one_that_joins_where_all_are_idle),
                cmocka_unit_test(test_whatever_happens_nobody_starves),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
