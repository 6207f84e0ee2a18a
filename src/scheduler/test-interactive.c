/* SPDX-License-Identifier: Apache-2.0 */
/* The class interactive in virtual time: how long requests take beside those that always have work, and who pays. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "scheduler/credit.h"
#include "scheduler/scheduler.h"

#define MS       1000000ull
#define SECOND   1000000000ull
#define SWITCH   (MS * 9 / 10)
#define MEMBERS  4
#define REQUESTS 4000
#define SEEN_NS  (MS / 10) /* after so long the scheduler is told that work has come or is done */

/* One that answers requests, as they come; one that always has work has none of them. */
struct server {
        uint64_t arrival[REQUESTS], size[REQUESTS], took[REQUESTS];
        uint32_t n, n_come, n_done;
        uint64_t left; /* of the first request that is not done */
};

struct world {
        struct scheduler scheduler;
        struct scheduler_member member[MEMBERS];
        struct server *server[MEMBERS];
        uint32_t n;
        uint64_t now, random;
        uint64_t work[MEMBERS]; /* ns that were computed */
};

static const struct scheduler_settings best_effort = { .policy = SCHEDULER_BEST_EFFORT };
static const struct scheduler_settings adaptive = { .policy = SCHEDULER_BEST_EFFORT,
                                                    .is_adaptive = true,
                                                    .frequency = 100 };

static uint64_t draw(struct world *world, uint64_t below)
{
        world->random ^= world->random << 13;
        world->random ^= world->random >> 7;
        world->random ^= world->random << 17;
        return world->random % below;
}

static void world_init(struct world *world, const struct scheduler_settings *settings, uint32_t n,
                       const uint32_t *shares)
{
        memset(world, 0, sizeof(*world));
        world->random = 88172645463325252u;
        world->n = n;
        scheduler_init(&world->scheduler);
        scheduler_configure(&world->scheduler, settings);
        for (uint32_t i = 0; i < n; i++) {
                world->member[i].id = i + 1;
                world->member[i].share = shares[i];
                world->member[i].devices = 1;
                scheduler_add(&world->scheduler, &world->member[i]);
        }
}

/* Requests of 5 to 50 ms, of which the members' share is busy for @percent of the time. */
static void world_serve(struct world *world, uint32_t i, uint32_t percent)
{
        struct server *server = test_calloc(1, sizeof(*server));
        uint64_t mean = 27 * MS * 100 / percent * 100 / world->member[i].share, at = 0;

        for (server->n = 0; server->n < REQUESTS; server->n++) {
                at += 2 * draw(world, mean);
                server->arrival[server->n] = at;
                server->size[server->n] = 5 * MS + draw(world, 45 * MS);
        }
        world->server[i] = server;
}

static void world_free(struct world *world)
{
        for (uint32_t i = 0; i < world->n; i++)
                test_free(world->server[i]);
}

static void server_look(struct server *server, uint64_t now)
{
        while (server->n_come < server->n && server->arrival[server->n_come] <= now) {
                if (server->n_come == server->n_done)
                        server->left = server->size[server->n_done];
                server->n_come++;
        }
}

static bool has_work(const struct world *world, uint32_t i)
{
        const struct server *server = world->server[i];

        return !server || server->n_done < server->n_come;
}

/* Until something happens to those with requests: one comes, or the one under way is done if @on computes. */
static uint64_t next_event(const struct world *world, uint32_t on, uint64_t until)
{
        for (uint32_t i = 0; i < world->n; i++) {
                const struct server *server = world->server[i];

                if (!server)
                        continue;
                if (server->n_come < server->n && server->arrival[server->n_come] < until)
                        until = server->arrival[server->n_come];
                if (i == on && has_work(world, i) && world->now + server->left < until)
                        until = world->now + server->left;
        }
        return until;
}

static void compute(struct world *world, uint32_t on, uint64_t until)
{
        uint64_t ns = until - world->now;
        struct server *server = on < world->n ? world->server[on] : NULL;

        world->now = until;
        if (on < world->n && has_work(world, on))
                world->work[on] += ns;
        if (!server || !has_work(world, on))
                return;
        server->left -= ns;
        if (server->left > 0)
                return;
        server->took[server->n_done] = world->now - server->arrival[server->n_done];
        if (++server->n_done < server->n_come)
                server->left = server->size[server->n_done];
}

/* Whoever is on computes; where all are free it is the first with work, so that it is never better than with turns. */
static uint32_t who_is_on(const struct world *world, const struct scheduler_order *order)
{
        for (uint32_t i = 0; i < world->n; i++)
                if (scheduler_runs(order, &world->member[i]) && has_work(world, i))
                        return i;
        return MEMBERS;
}

static void see(struct world *world)
{
        for (uint32_t i = 0; i < world->n; i++) {
                if (world->server[i])
                        server_look(world->server[i], world->now);
                scheduler_set_work(&world->scheduler, &world->member[i], has_work(world, i));
        }
}

static void world_run(struct world *world, uint64_t duration)
{
        uint64_t end = world->now + duration;

        while (world->now < end) {
                struct scheduler_member *before = world->scheduler.order.owner;
                struct scheduler_order order;
                uint64_t until;

                see(world);
                if (scheduler_decide(&world->scheduler, world->now, &order)) {
                        world->now += order.owner != before ? SWITCH : 0;
                        scheduler_begin(&world->scheduler, &order, world->now);
                }
                until = next_event(world, who_is_on(world, &order),
                                   order.until_ns < end ? order.until_ns : end);
                compute(world, who_is_on(world, &order), until > world->now ? until : world->now);
                world->now += until < order.until_ns ? SEEN_NS : 0;
        }
}

static int compare(const void *one, const void *other)
{
        const uint64_t *a = one, *b = other;

        return (*a > *b) - (*a < *b);
}

static double percentile(const struct server *server, uint32_t percent)
{
        static uint64_t took[REQUESTS];

        memcpy(took, server->took, server->n_done * sizeof(*took));
        qsort(took, server->n_done, sizeof(*took), compare);
        return (double)took[server->n_done * percent / 100] / (double)MS;
}

static double part(const struct world *world, uint32_t i)
{
        return (double)world->work[i] / (double)world->now;
}

static double tail(const struct scheduler_settings *settings, bool is_alone, bool is_interactive,
                   uint32_t percent, double *ret_training)
{
        const uint32_t shares[] = { 50, 50 };
        struct world world;
        double p99;

        world_init(&world, settings, is_alone ? 1 : 2, shares);
        world_serve(&world, 0, percent);
        scheduler_set_class(&world.scheduler, &world.member[0], is_interactive);
        world_run(&world, 200 * SECOND);
        p99 = percentile(world.server[0], 99);
        assert_true(world.server[0]->n_done > 100);
        *ret_training = is_alone ? 0 : part(&world, 1) / (1 - part(&world, 0));
        world_free(&world);
        return p99;
}

static void check_tail(const struct scheduler_settings *settings, uint32_t percent, double limit)
{
        double training, alone = tail(settings, true, false, percent, &training);
        double batch = tail(settings, false, false, percent, &training);
        double interactive = tail(settings, false, true, percent, &training);

        if (interactive > limit * alone || interactive > batch || training < 0.9)
                fail_msg("%u %%: 99 of 100 within %.1f ms alone, %.1f ms, %.1f ms interactive; the "
                         "other one has %.2f of what is left",
                         percent, alone, batch, interactive, training);
}

static void test_a_request_takes_as_long_as_alone(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                check_tail(i ? &adaptive : &best_effort, 20, 1.15);
                check_tail(i ? &adaptive : &best_effort, 50, 1.2);
                check_tail(i ? &adaptive : &best_effort, 80, 1.3);
        }
}

/* Always at work, it has its share and no more, whoever else is there. */
static void test_the_class_is_no_way_to_get_more(void **state)
{
        const uint32_t shares[] = { 30, 50, 20 };
        struct world world;

        (void)state;
        for (int i = 0; i < 2; i++) {
                world_init(&world, i ? &adaptive : &best_effort, 3, shares);
                scheduler_set_class(&world.scheduler, &world.member[0], true);
                world_run(&world, 100 * SECOND);
                for (uint32_t k = 0; k < 3; k++)
                        assert_in_range(world.member[k].received / MS, shares[k] * 985,
                                        shares[k] * 1015);
        }
}

/* Nor is waking at every moment: what its jumps take from the others is paid for too. */
static void test_waking_often_is_paid_for(void **state)
{
        const uint32_t shares[] = { 50, 50 };
        struct world world;

        (void)state;
        world_init(&world, &adaptive, 2, shares);
        scheduler_set_class(&world.scheduler, &world.member[0], true);
        scheduler_set_work(&world.scheduler, &world.member[1], true);
        while (world.now < 100 * SECOND) {
                struct scheduler_order order;
                bool is_on = draw(&world, 2) == 0;

                scheduler_set_work(&world.scheduler, &world.member[0], is_on);
                if (scheduler_decide(&world.scheduler, world.now, &order))
                        scheduler_begin(&world.scheduler, &order, world.now + SWITCH);
                world.now += SWITCH + draw(&world, 3 * MS);
        }
        assert_true(world.member[1].received >= 48 * SECOND);
}

/* What was cut short goes on: of two with always work neither loses more than the other. */
static void test_a_turn_that_was_cut_goes_on(void **state)
{
        const uint32_t shares[] = { 40, 30, 30 };
        struct world world;
        uint64_t one, other;

        (void)state;
        world_init(&world, &adaptive, 3, shares);
        world_serve(&world, 0, 50);
        scheduler_set_class(&world.scheduler, &world.member[0], true);
        world_run(&world, 100 * SECOND);
        one = world.member[1].received;
        other = world.member[2].received;
        assert_in_range(100 * one / other, 98, 102);
        world_free(&world);
}

/* Two with requests and two with always work, on one schedule of several devices too. */
static void test_two_and_two(void **state)
{
        const uint32_t shares[] = { 25, 25, 25, 25 };
        double together[2];
        struct world world;

        (void)state;
        for (int is_joint = 0; is_joint < 2; is_joint++) {
                world_init(&world, &best_effort, 4, shares);
                for (uint32_t i = 0; i < 2; i++) {
                        world_serve(&world, i, 50);
                        scheduler_set_class(&world.scheduler, &world.member[i], true);
                }
                if (is_joint)
                        scheduler_set_devices(&world.scheduler, &world.member[3], 3);
                world_run(&world, 200 * SECOND);
                for (uint32_t i = 0; i < 2; i++)
                        together[i] = percentile(world.server[i], 99);
                assert_true(together[0] < 110 && together[1] < 110);
                assert_true(part(&world, 2) + part(&world, 3) >
                            0.88 * (1 - part(&world, 0) - part(&world, 1)));
                world_free(&world);
        }
}

/* On several devices as on one: work that has had its turn is not new any more. */
static void test_old_work_does_not_jump(void **state)
{
        const uint32_t shares[] = { 50, 50 };
        struct world world;

        (void)state;
        world_init(&world, &best_effort, 2, shares);
        scheduler_set_devices(&world.scheduler, &world.member[1], 3);
        scheduler_set_class(&world.scheduler, &world.member[0], true);
        for (int i = 0; i < 200; i++) {
                world_run(&world, MS);
                assert_false(world.member[0].is_urgent);
        }
}

static void test_fixed_shares_know_no_classes(void **state)
{
        const struct scheduler_settings fixed = { .policy = SCHEDULER_FIXED_SHARE,
                                                  .is_adaptive = true,
                                                  .frequency = 100 };
        const uint32_t shares[] = { 50, 50 };
        struct world world;

        (void)state;
        world_init(&world, &fixed, 2, shares);
        world_serve(&world, 0, 50);
        scheduler_set_class(&world.scheduler, &world.member[0], true);
        world_run(&world, 20 * SECOND);
        assert_int_equal(world.member[0].credit, 0);
        assert_in_range(world.member[1].received / MS, 9500, 10500);
        world_free(&world);
}

static void decide(struct world *world)
{
        struct scheduler_order order;

        if (scheduler_decide(&world->scheduler, world->now, &order))
                scheduler_begin(&world->scheduler, &order, world->now);
}

/* Nor do they know what was saved before they were set: it would never be spent. */
static void test_fixed_shares_forget_what_was_saved(void **state)
{
        const struct scheduler_settings fixed = { .policy = SCHEDULER_FIXED_SHARE,
                                                  .is_adaptive = true,
                                                  .frequency = 100 };
        const uint32_t shares[] = { 50, 50 };
        struct world world;

        (void)state;
        world_init(&world, &adaptive, 2, shares);
        scheduler_set_class(&world.scheduler, &world.member[0], true);
        scheduler_set_work(&world.scheduler, &world.member[1], true);
        for (; world.now < SECOND; world.now += 5 * MS)
                decide(&world);
        assert_true(world.member[0].credit > 0);
        scheduler_configure(&world.scheduler, &fixed);
        world_run(&world, 10 * SECOND);
        assert_in_range(world.work[1] / MS, 4000, 5500);
}

static void test_nobody_waits_for_longer_than_half_a_second(void **state)
{
        (void)state;
        for (uint32_t share = 2; share < 100; share += 16) {
                const uint32_t shares[] = { share, 100 - share };
                struct world world;
                uint64_t start;

                world_init(&world, &best_effort, 2, shares);
                scheduler_set_class(&world.scheduler, &world.member[0], true);
                scheduler_set_work(&world.scheduler, &world.member[1], true);
                for (; world.now < 50 * SECOND; world.now += 5 * MS)
                        decide(&world);
                start = world.now;
                scheduler_set_work(&world.scheduler, &world.member[0], true);
                decide(&world);
                assert_ptr_equal(world.scheduler.order.member, &world.member[0]);
                for (; world.scheduler.order.member == &world.member[0]; world.now += MS)
                        decide(&world);
                assert_in_range((world.now - start) / MS, 1, 500 + 50);
        }
}

static void test_whoever_leaves_leaves_nothing(void **state)
{
        const uint32_t shares[] = { 20, 40, 40 };
        struct scheduler_member *cut;
        struct world world;

        (void)state;
        world_init(&world, &adaptive, 3, shares);
        scheduler_set_class(&world.scheduler, &world.member[0], true);
        for (uint32_t i = 1; i < 3; i++)
                scheduler_set_work(&world.scheduler, &world.member[i], true);
        decide(&world);
        for (; world.now < SECOND; world.now = world.scheduler.order.until_ns)
                decide(&world);
        decide(&world);
        cut = world.scheduler.order.owner;
        world.now += 2 * MS;
        scheduler_set_work(&world.scheduler, &world.member[0], true);
        decide(&world);
        assert_ptr_equal(world.scheduler.order.owner, &world.member[0]);
        assert_ptr_equal(world.scheduler.cut, cut);
        scheduler_remove(&world.scheduler, cut);
        assert_null(world.scheduler.cut);
        world.now = world.scheduler.order.until_ns;
        decide(&world);
        assert_ptr_not_equal(world.scheduler.order.owner, cut);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_request_takes_as_long_as_alone),
                cmocka_unit_test(test_the_class_is_no_way_to_get_more),
                cmocka_unit_test(test_waking_often_is_paid_for),
                cmocka_unit_test(test_a_turn_that_was_cut_goes_on),
                cmocka_unit_test(test_two_and_two),
                cmocka_unit_test(test_old_work_does_not_jump),
                cmocka_unit_test(test_fixed_shares_know_no_classes),
                cmocka_unit_test(test_fixed_shares_forget_what_was_saved),
                cmocka_unit_test(test_nobody_waits_for_longer_than_half_a_second),
                cmocka_unit_test(test_whoever_leaves_leaves_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
