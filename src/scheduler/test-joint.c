/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of several devices at once: each device's shares, never two on one device, and nobody waits for ever. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "scheduler/scheduler.h"

#define MS      1000000ull
#define SECOND  1000000000ull
#define MEMBERS 12
#define DEVICES 4

static struct {
        struct scheduler scheduler;
        struct scheduler_member member[MEMBERS];
        uint32_t n;
        uint64_t now, overrun_ns;
        uint64_t waits_since[MEMBERS], longest_wait;
} world;

static int set_up(void **state)
{
        const struct scheduler_settings settings = { .policy = SCHEDULER_BEST_EFFORT };
        (void)state;

        memset(&world, 0, sizeof(world));
        scheduler_init(&world.scheduler);
        scheduler_configure(&world.scheduler, &settings);
        return 0;
}

static uint32_t add(uint64_t devices, uint32_t share)
{
        struct scheduler_member *member = &world.member[world.n];

        member->id = world.n + 1;
        member->devices = devices;
        member->share = share;
        world.waits_since[world.n] = world.now;
        scheduler_add(&world.scheduler, member);
        scheduler_set_work(&world.scheduler, member, true);
        return world.n++;
}

static void set_work(uint32_t i, bool has_work)
{
        scheduler_set_work(&world.scheduler, &world.member[i], has_work);
        world.waits_since[i] = world.now;
}

/* What the hardware is told: two that want one device never run at once, and who runs runs on all of its own. */
static void check(const struct scheduler_order *order)
{
        uint64_t taken = 0;

        for (uint32_t i = 0; i < world.n; i++) {
                const struct scheduler_member *member = &world.member[i];
                uint64_t waited = world.now - world.waits_since[i];

                if (!member->has_work)
                        continue;
                if (!scheduler_runs(order, member)) {
                        world.longest_wait =
                                waited > world.longest_wait ? waited : world.longest_wait;
                        continue;
                }
                assert_int_equal(taken & member->devices, 0);
                taken |= member->devices;
                world.waits_since[i] = world.now;
        }
}

static void run(uint64_t duration)
{
        uint64_t end = world.now + duration;
        struct scheduler_order order;

        while (world.now < end) {
                if (scheduler_decide(&world.scheduler, world.now, &order))
                        scheduler_begin(&world.scheduler, &order, world.now);
                check(&order);
                world.now = order.until_ns < end ? order.until_ns + world.overrun_ns : end;
        }
}

static uint64_t received(uint32_t i)
{
        return scheduler_get_received(&world.scheduler, &world.member[i], world.now);
}

/* In percent, within one. */
static void expect(uint32_t i, uint64_t before, uint64_t duration, uint64_t percent)
{
        assert_in_range((received(i) - before) * 1000 / duration, percent * 10 - 10,
                        percent * 10 + 10);
}

static void test_each_device_has_its_shares(void **state)
{
        uint32_t job = add(3, 50), a = add(1, 50), b = add(2, 25), c = add(2, 0);
        (void)state;

        run(20 * SECOND);
        expect(job, 0, 20 * SECOND, 50);
        expect(a, 0, 20 * SECOND, 50);
        expect(b, 0, 20 * SECOND, 25);
        expect(c, 0, 20 * SECOND, 25);
        assert_int_equal(scheduler_get_entitled(&world.member[job]), 500000);
        assert_int_equal(scheduler_get_entitled(&world.member[c]), 250000);
}

/* Alone on its first device, it gets no more than what it may have on its second. */
static void test_no_more_than_on_the_most_crowded_device(void **state)
{
        uint32_t job = add(3, 50), a = add(1, 50), b = add(2, 25), c = add(2, 25);
        (void)state;

        set_work(a, false);
        run(20 * SECOND);
        expect(job, 0, 20 * SECOND, 50);
        expect(b, 0, 20 * SECOND, 25);
        expect(c, 0, 20 * SECOND, 25);
}

static void test_what_it_cannot_use_others_get(void **state)
{
        uint32_t job = add(3, 20), a = add(1, 20), b = add(2, 60), c = add(2, 20);
        (void)state;

        run(20 * SECOND);
        expect(job, 0, 20 * SECOND, 20);
        expect(a, 0, 20 * SECOND, 80);
        expect(b, 0, 20 * SECOND, 60);
        expect(c, 0, 20 * SECOND, 20);
        assert_int_equal(scheduler_get_entitled(&world.member[a]), 800000);
}

/* Turns that always end late, as at the gates: what one ran too long is charged. */
static void test_overruns_change_no_share(void **state)
{
        uint32_t job = add(3, 75), a = add(1, 25), b = add(2, 25);
        (void)state;

        world.overrun_ns = 7 * MS;
        run(20 * SECOND);
        expect(job, 0, 20 * SECOND, 75);
        expect(a, 0, 20 * SECOND, 25);
        expect(b, 0, 20 * SECOND, 25);
}

/* Each holds what another one needs: no two can run, and each gets its third. */
static void test_a_circle_of_them_goes_round(void **state)
{
        uint32_t one = add(3, 10), two = add(6, 10), three = add(5, 10);
        (void)state;

        run(20 * SECOND);
        expect(one, 0, 20 * SECOND, 33);
        expect(two, 0, 20 * SECOND, 33);
        expect(three, 0, 20 * SECOND, 33);
        assert_in_range(world.longest_wait, 0, 30 * MS);
}

static void test_who_is_in_nobodys_way_need_not_wait(void **state)
{
        uint32_t job = add(3, 50), a = add(1, 50), far = add(4, 0);
        struct scheduler_order order;
        (void)state;

        set_work(far, false);
        run(SECOND + 3 * MS);
        set_work(far, true);
        assert_true(scheduler_decide(&world.scheduler, world.now, &order));
        assert_true(scheduler_runs(&order, &world.member[far]));
        set_work(a, false);
        scheduler_begin(&world.scheduler, &order, world.now);
        assert_true(scheduler_decide(&world.scheduler, world.now, &order) ||
                    order.mode == SCHEDULER_FREE);
        assert_true(scheduler_runs(&order, &world.member[job]));
}

static void test_who_comes_late_gets_its_part_and_no_more(void **state)
{
        uint32_t job = add(3, 20), a = add(1, 20), b = add(2, 80), late;
        uint64_t before_a, before_job;
        (void)state;

        run(60 * SECOND);
        late = add(1, 20);
        run(2 * SECOND);
        before_a = received(a);
        before_job = received(job);
        run(10 * SECOND);
        expect(a, before_a, 10 * SECOND, 40);
        expect(job, before_job, 10 * SECOND, 20);
        assert_in_range(received(late), 4 * SECOND, 6 * SECOND);
        (void)b;
}

static void test_it_ends_with_the_last_of_several_devices(void **state)
{
        uint32_t job = add(3, 50), a = add(1, 60), b = add(1, 20);
        uint64_t before;
        (void)state;

        run(SECOND);
        scheduler_remove(&world.scheduler, &world.member[job]);
        world.member[job].has_work = false;
        before = received(a);
        run(10 * SECOND);
        expect(a, before, 10 * SECOND, 75);
        scheduler_set_devices(&world.scheduler, &world.member[b], 2);
        before = received(a);
        run(10 * SECOND);
        expect(a, before, 10 * SECOND, 100);
}

/* Whoever comes, goes and sleeps: nobody with one percent waits for longer than some rounds. */
static void test_nobody_starves_whatever_happens(void **state)
{
        (void)state;

        srandom(15);
        for (uint32_t i = 0; i < MEMBERS; i++)
                add((uint64_t)(random() % 15 + 1), (uint32_t)(random() % 8));
        for (int i = 0; i < 20000; i++) {
                uint32_t k = (uint32_t)random() % MEMBERS;

                if (random() % 4 == 0)
                        set_work(k, !world.member[k].has_work);
                if (random() % 50 == 0)
                        scheduler_set_devices(&world.scheduler, &world.member[k],
                                              (uint64_t)(random() % 15 + 1));
                run((uint64_t)(random() % 40) * MS + 1);
        }
        assert_true(world.longest_wait < 4 * SECOND);
}

/* What joint.h promises, by a computation that is as slow as it is simple: see test_weights_are_those_of_the_words. */

static uint64_t wants(uint32_t i, const bool *takes_part, uint64_t spared)
{
        uint64_t least = SCHEDULER_WHOLE;

        if (world.member[i].share > 0)
                return world.member[i].share * (SCHEDULER_WHOLE / 100);
        for (int device = 0; device < DEVICES; device++) {
                uint64_t taken = 0, n = 0, part;

                if (!(world.member[i].devices >> device & 1))
                        continue;
                for (uint32_t k = 0; k < world.n; k++)
                        if (takes_part[k] && (world.member[k].devices >> device & 1)) {
                                taken += world.member[k].share * (SCHEDULER_WHOLE / 100);
                                n += world.member[k].share == 0;
                        }
                part = (taken + spared < SCHEDULER_WHOLE ? SCHEDULER_WHOLE - taken : spared) / n;
                least = part < least ? part : least;
        }
        return least;
}

/* Of @device: what those have not taken whose weight is known, and what the others want. */
static void look(int device, const bool *takes_part, uint64_t spared, const uint64_t *weight,
                 uint64_t *ret_left, uint64_t *ret_wanted)
{
        *ret_left = SCHEDULER_WHOLE;
        *ret_wanted = 0;
        for (uint32_t i = 0; i < world.n; i++) {
                if (!takes_part[i] || !(world.member[i].devices >> device & 1))
                        continue;
                if (weight[i] == UINT64_MAX)
                        *ret_wanted += wants(i, takes_part, spared);
                else
                        *ret_left -= weight[i] < *ret_left ? weight[i] : *ret_left;
        }
}

static void divide(const bool *takes_part, uint64_t spared, uint64_t *weight)
{
        uint64_t left = 0, wanted = 0, least_left = 0, least_wanted = 0;

        for (uint32_t i = 0; i < world.n; i++)
                weight[i] = UINT64_MAX;
        for (;;) {
                int tightest = -1;

                for (int device = 0; device < DEVICES; device++) {
                        look(device, takes_part, spared, weight, &left, &wanted);
                        if (wanted == 0 ||
                            (tightest >= 0 && left * least_wanted >= least_left * wanted))
                                continue;
                        tightest = device;
                        least_left = left;
                        least_wanted = wanted;
                }
                if (tightest < 0)
                        return;
                for (uint32_t i = 0; i < world.n; i++)
                        if (takes_part[i] && weight[i] == UINT64_MAX &&
                            (world.member[i].devices >> tightest & 1))
                                weight[i] =
                                        wants(i, takes_part, spared) * least_left / least_wanted;
        }
}

static void compare_weights(void)
{
        uint64_t now[MEMBERS], entitled[MEMBERS];
        bool has_work[MEMBERS], all[MEMBERS];

        for (uint32_t i = 0; i < world.n; i++) {
                has_work[i] = world.member[i].has_work;
                all[i] = true;
        }
        divide(has_work, SCHEDULER_WHOLE / 400, now);
        divide(all, 0, entitled);
        for (uint32_t i = 0; i < world.n; i++) {
                assert_int_equal(scheduler_get_entitled(&world.member[i]),
                                 entitled[i] == UINT64_MAX ? 0 : entitled[i]);
                if (has_work[i])
                        assert_int_equal(world.member[i].weight, now[i] ? now[i] : 1);
        }
}

/* Also of those that were asked for before something changed. */
static void test_weights_are_those_of_the_words(void **state)
{
        (void)state;

        srandom(16);
        for (uint32_t i = 0; i < MEMBERS; i++)
                add((uint64_t)(random() % 15 + 1), (uint32_t)(random() % 3 * 10));
        for (int i = 0; i < 2000; i++) {
                struct scheduler_member *member = &world.member[random() % MEMBERS];

                if (random() % 3 == 0)
                        scheduler_set_devices(&world.scheduler, member,
                                              (uint64_t)(random() % 15 + 1));
                else if (random() % 2 == 0)
                        scheduler_set_share(&world.scheduler, member,
                                            (uint32_t)(random() % 3 * 10));
                else
                        scheduler_set_work(&world.scheduler, member, !member->has_work);
                compare_weights();
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_each_device_has_its_shares, set_up),
                cmocka_unit_test_setup(test_no_more_than_on_the_most_crowded_device, set_up),
                cmocka_unit_test_setup(test_what_it_cannot_use_others_get, set_up),
                cmocka_unit_test_setup(test_overruns_change_no_share, set_up),
                cmocka_unit_test_setup(test_a_circle_of_them_goes_round, set_up),
                cmocka_unit_test_setup(test_who_is_in_nobodys_way_need_not_wait, set_up),
                cmocka_unit_test_setup(test_who_comes_late_gets_its_part_and_no_more, set_up),
                cmocka_unit_test_setup(test_it_ends_with_the_last_of_several_devices, set_up),
                cmocka_unit_test_setup(test_nobody_starves_whatever_happens, set_up),
                cmocka_unit_test_setup(test_weights_are_those_of_the_words, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
