/* SPDX-License-Identifier: Apache-2.0 */
/* Who leaves when and who comes, in virtual time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "scheduler/stay.h"

#define MS     1000000ull
#define SECOND 1000000000ull
#define GIB    (1ull << 30)

/* One stay at a time. */

static void test_it_leaves_when_it_had_no_work_for_its_time(void **state)
{
        struct stay stay = { .after = 30 * SECOND, .last_work = 100 * SECOND };

        (void)state;
        assert_true(stay_get_end(&stay) == 130 * SECOND);
        stay.last_work = 120 * SECOND;
        assert_true(stay_get_end(&stay) == 150 * SECOND);
        stay.not_before = 200 * SECOND;
        assert_true(stay_get_end(&stay) == 200 * SECOND);
}

static const struct stay_contest nobody = { .turn = STAY_TURN_MIN, .weight = 1 };

static uint64_t end_for(const struct stay *stay, enum stay_class class)
{
        const struct stay coming = { .place = STAY_AWAY, .class = class, .weight = 1 };

        return stay_get_end_for(stay, &coming, &nobody);
}

static void test_who_did_not_ask_for_it_never_leaves(void **state)
{
        struct stay stay = { .last_work = SECOND };

        (void)state;
        assert_true(stay_get_end(&stay) == STAY_NEVER);
        assert_true(end_for(&stay, STAY_BATCH) == STAY_NEVER);
        stay = (struct stay){ .after = SECOND, .is_held = true, .takes_turns = true, .weight = 1 };
        assert_true(stay_get_end(&stay) == STAY_NEVER);
        assert_true(end_for(&stay, STAY_INTERACTIVE) == STAY_NEVER);
}

static void test_it_may_leave_early_but_not_between_two_kernels(void **state)
{
        struct stay stay = { .after = 30 * SECOND, .last_work = 100 * SECOND };

        (void)state;
        assert_true(end_for(&stay, STAY_BATCH) == 103 * SECOND);
        stay.after = 500 * MS;
        assert_true(end_for(&stay, STAY_BATCH) == 100 * SECOND + 100 * MS);
        stay.after = 20 * MS;
        assert_true(end_for(&stay, STAY_BATCH) == 100 * SECOND + 20 * MS);
}

/* Measured with four model servers on an H200: with a time of 20 h an idle one kept others waiting for 14 s. */
static void test_where_turns_are_taken_a_long_time_keeps_nobody_waiting(void **state)
{
        struct stay stay = { .after = 20 * 3600 * SECOND,
                             .takes_turns = true,
                             .class = STAY_INTERACTIVE,
                             .weight = 1,
                             .since = 100 * SECOND,
                             .last_work = 100 * SECOND,
                             .guaranteed = 14 * SECOND };

        (void)state;
        assert_true(end_for(&stay, STAY_INTERACTIVE) == 100 * SECOND + STAY_EARLY_MIN);
        assert_true(end_for(&stay, STAY_BATCH) == 110 * SECOND);
        stay.last_work = 107 * SECOND;
        assert_true(end_for(&stay, STAY_BATCH) == 114 * SECOND);
        assert_true(stay_get_end(&stay) == 107 * SECOND + stay.after);
}

static void test_a_stay_is_guaranteed(void **state)
{
        struct stay stay = { .after = SECOND, .since = 100 * SECOND, .last_work = 110 * SECOND };

        (void)state;
        stay.guaranteed = stay_get_guaranteed(2 * SECOND, 10);
        assert_true(stay_get_end(&stay) == 118 * SECOND);
        assert_true(end_for(&stay, STAY_BATCH) == 118 * SECOND);
        assert_true(end_for(&stay, STAY_INTERACTIVE) == 118 * SECOND);
        assert_true(stay_get_guaranteed(2 * SECOND, 50) == 2 * SECOND);
        assert_true(stay_get_guaranteed(2 * SECOND, 100) == 0);
        stay.guaranteed = stay_get_guaranteed(STAY_NEVER / 2, 10);
        assert_true(stay_get_end(&stay) == STAY_NEVER);
}

/* Seen on a busy host: a swap of 88 s, and then an idle vGPU kept the other one waiting for as long. */
static void test_a_slow_swap_keeps_no_other_waiting_for_an_idle_one(void **state)
{
        struct stay stay = { .takes_turns = true,
                             .weight = 1,
                             .since = 100 * SECOND,
                             .last_work = 100 * SECOND,
                             .guaranteed = 88 * SECOND };

        (void)state;
        assert_true(end_for(&stay, STAY_BATCH) == 100 * SECOND + STAY_PATIENCE);
        stay.last_work = 150 * SECOND;
        assert_true(end_for(&stay, STAY_BATCH) == 150 * SECOND + STAY_PATIENCE);
        stay.last_work = 187 * SECOND;
        assert_true(end_for(&stay, STAY_BATCH) == 188 * SECOND);
        stay.last_work = 90 * SECOND; /* before it left last */
        assert_true(end_for(&stay, STAY_BATCH) == 100 * SECOND + STAY_PATIENCE);
}

/* As measured on an H100: 26 GiB left in 12.3 s, of which 11.7 s were to pin host memory, and came back in 0.6 s. */
static void test_waiting_for_host_memory_makes_no_stay_longer(void **state)
{
        uint64_t cost = stay_get_cost(12300 * MS, 11700 * MS) + stay_get_cost(600 * MS, 0);

        (void)state;
        assert_true(cost == 1200 * MS);
        assert_true(stay_get_guaranteed(cost, 10) == 10800 * MS);
        assert_true(stay_get_cost(SECOND, 2 * SECOND) == 0);
}

/* Idle and interactive: it leaves at once for its like; with work its stay is as guaranteed as any. */
static void test_an_interactive_stay_ends_when_it_is_idle(void **state)
{
        struct stay stay = { .takes_turns = true,
                             .class = STAY_INTERACTIVE,
                             .weight = 1,
                             .since = 100 * SECOND,
                             .last_work = 101 * SECOND,
                             .guaranteed = 9 * SECOND };

        (void)state;
        assert_true(end_for(&stay, STAY_INTERACTIVE) == 101 * SECOND + STAY_EARLY_MIN);
        assert_true(end_for(&stay, STAY_BATCH) == 109 * SECOND);
        stay.last_work = 200 * SECOND;
        assert_true(end_for(&stay, STAY_INTERACTIVE) == 109 * SECOND);
}

/* With work a turn ends: for the batch class after its weight, for interactive ones after the guaranteed stay. */
static void test_a_turn_is_as_long_as_its_weight(void **state)
{
        const struct stay_contest contest = { .turn = 10 * SECOND, .weight = 20 };
        const struct stay batch = { .place = STAY_AWAY, .weight = 20 };
        const struct stay interactive = { .place = STAY_AWAY,
                                          .class = STAY_INTERACTIVE,
                                          .weight = 20 };
        struct stay stay = { .takes_turns = true,
                             .weight = 60,
                             .last_work = 1000 * SECOND,
                             .guaranteed = 5 * SECOND };

        (void)state;
        assert_true(stay_get_end_for(&stay, &batch, &contest) == 30 * SECOND);
        assert_true(stay_get_end_for(&stay, &interactive, &contest) == 5 * SECOND);
        stay.guaranteed = 0;
        assert_true(stay_get_end_for(&stay, &interactive, &contest) == STAY_TURN_MIN);
        stay.takes_turns = false;
        assert_true(stay_get_end_for(&stay, &interactive, &contest) == STAY_NEVER);
}

static uint64_t decide_one_device(struct stay **stays, size_t n, int64_t free, uint64_t now)
{
        return stay_decide(stays, n, &free, 1, now);
}

/* Who leaves. */

#define N 4

/* The last one wants to come in. */
static enum stay_verdict decide(struct stay stay[N + 1], uint64_t bytes, uint64_t now)
{
        struct stay *stays[N + 1];

        stay[N] = (struct stay){
                .place = STAY_AWAY, .wants = 1, .part[0].needs = bytes, .weight = 1
        };
        for (size_t i = 0; i <= N; i++)
                stays[i] = &stay[i];
        (void)decide_one_device(stays, N + 1, 0, now);
        return stay[N].verdict;
}

static void test_the_least_recently_used_leaves_first(void **state)
{
        struct stay stay[N + 1] = {
                { .after = SECOND, .last_work = 30 * SECOND, .part[0].bytes = GIB },
                { .after = SECOND, .last_work = 10 * SECOND, .part[0].bytes = GIB },
                { .after = SECOND, .last_work = 99 * SECOND, .part[0].bytes = 8 * GIB },
                { .after = 0, .last_work = 0, .part[0].bytes = 8 * GIB },
        };

        (void)state;
        assert_int_equal(decide(stay, GIB, 50 * SECOND), STAY_HELD);
        assert_true(stay[1].is_chosen);
        assert_false(stay[0].is_chosen || stay[2].is_chosen || stay[3].is_chosen);
        assert_int_equal(decide(stay, GIB + 1, 50 * SECOND), STAY_HELD);
        assert_true(stay[0].is_chosen && stay[1].is_chosen && !stay[2].is_chosen);
}

static void test_nobody_leaves_for_nothing(void **state)
{
        struct stay stay[N + 1] = {
                { .after = SECOND, .last_work = 10 * SECOND, .part[0].bytes = GIB },
                { .after = SECOND, .last_work = 20 * SECOND, .part[0].bytes = 4 * GIB },
                { .after = SECOND,
                  .last_work = 50 * SECOND,
                  .part[0].bytes = 9 * GIB }, /* has work */
                { .after = SECOND,
                  .since = 49 * SECOND,
                  .guaranteed = 9 * SECOND,
                  .part[0].bytes = 9 * GIB },
        };

        (void)state;
        assert_int_equal(decide(stay, 6 * GIB, 50 * SECOND), STAY_LATER);
        for (size_t i = 0; i < N; i++)
                assert_false(stay[i].is_chosen);
        assert_int_equal(decide(stay, 15 * GIB, 50 * SECOND), STAY_STUCK);
        /* The older one is not enough alone, and the other one is: it stays. */
        assert_int_equal(decide(stay, 4 * GIB, 50 * SECOND), STAY_HELD);
        assert_true(stay[1].is_chosen && !stay[0].is_chosen);
}

static void test_idle_ones_leave_before_those_with_work(void **state)
{
        struct stay stay[N + 1] = {
                { .takes_turns = true,
                  .last_work = 50 * SECOND,
                  .part[0].bytes = GIB,
                  .weight = 1 },
                { .takes_turns = true,
                  .class = STAY_INTERACTIVE,
                  .last_work = 49 * SECOND,
                  .part[0].bytes = GIB,
                  .weight = 1 },
                { .takes_turns = true,
                  .class = STAY_INTERACTIVE,
                  .last_work = 50 * SECOND,
                  .part[0].bytes = GIB,
                  .weight = 1 },
                { .takes_turns = true, .is_held = true, .part[0].bytes = 9 * GIB, .weight = 1 },
        };

        (void)state;
        assert_int_equal(decide(stay, GIB, 50 * SECOND), STAY_HELD);
        assert_true(stay[1].is_chosen);
        assert_int_equal(decide(stay, 2 * GIB, 50 * SECOND), STAY_HELD);
        assert_true(stay[1].is_chosen && stay[0].is_chosen && !stay[2].is_chosen);
        assert_int_equal(decide(stay, 4 * GIB, 50 * SECOND), STAY_STUCK);
}

/* What leaves for one is not for who came later; and nobody passes by one that others will make room for. */
static void test_room_is_held(void **state)
{
        struct stay big = {
                .place = STAY_AWAY, .wants = 1, .part[0].needs = 10 * GIB, .weight = 1
        };
        struct stay small = { .place = STAY_AWAY, .wants = 2, .part[0].needs = GIB, .weight = 1 };
        struct stay going = { .place = STAY_LEAVING, .part[0].bytes = 8 * GIB, .weight = 1 };
        struct stay busy = { .takes_turns = true,
                             .since = 40 * SECOND,
                             .last_work = 50 * SECOND,
                             .guaranteed = 20 * SECOND,
                             .part[0].bytes = 9 * GIB,
                             .weight = 1 };
        struct stay *stays[] = { &small, &going, &big, &busy };

        (void)state;
        assert_true(decide_one_device(stays, 4, 2 * GIB, 50 * SECOND) == 60 * SECOND);
        assert_int_equal(big.verdict, STAY_HELD);
        assert_int_equal(small.verdict, STAY_LATER);
        (void)decide_one_device(stays, 4, 3 * GIB, 50 * SECOND);
        assert_int_equal(small.verdict, STAY_HELD);
        going.place = STAY_AWAY;
        assert_true(decide_one_device(stays, 4, 2 * GIB, 50 * SECOND) == 60 * SECOND);
        assert_int_equal(big.verdict, STAY_LATER);
        assert_int_equal(small.verdict, STAY_LATER);
        /* Interactive: it came first, in effect. */
        small.class = STAY_INTERACTIVE;
        (void)decide_one_device(stays, 4, 2 * GIB, 50 * SECOND);
        assert_int_equal(small.verdict, STAY_COMES);
        /* One for whom all together are not enough is in nobody's way. */
        small.class = STAY_BATCH;
        busy.is_held = true;
        (void)decide_one_device(stays, 4, 2 * GIB, 50 * SECOND);
        assert_int_equal(big.verdict, STAY_STUCK);
        assert_int_equal(small.verdict, STAY_COMES);
}

/* It is a victim as any other; but not its own. */
static void test_two_that_allocate_do_not_wait_for_each_other(void **state)
{
        struct stay a = { .takes_turns = true,
                          .wants = 1,
                          .part[0].needs = GIB,
                          .part[0].bytes = GIB,
                          .weight = 1 };
        struct stay b = { .takes_turns = true,
                          .wants = 2,
                          .part[0].needs = GIB,
                          .part[0].bytes = GIB,
                          .weight = 1 };
        struct stay *stays[] = { &a, &b };

        (void)state;
        (void)decide_one_device(stays, 2, 0, SECOND);
        assert_int_equal(a.verdict, STAY_HELD);
        assert_true(b.is_chosen && !a.is_chosen);
        assert_int_equal(b.verdict, STAY_NOTHING); /* it leaves, and wants all of it then */
        b.place = STAY_AWAY;
        (void)decide_one_device((struct stay *[]){ &a, &b }, 2, 0, SECOND);
        a.part[0].needs = 4 * GIB;
        b.place = STAY_HERE;
        b.is_held = true;
        (void)decide_one_device((struct stay *[]){ &a, &b }, 2, 0, SECOND);
        assert_int_equal(a.verdict, STAY_STUCK);
}

/*
 * A device and its vGPUs, played. What a vGPU has to do with its time on the device: all of it (saturated),
 * or a request now and then, which takes a while.
 */

struct played {
        struct stay stay;
        bool is_saturated;
        uint64_t cost, until, request, work, every; /* of a swap; of its move; of requests */
        uint64_t resident, swapping, waited_most;
        uint64_t busy_left;
        unsigned int n_swaps, n_cut;
};

struct play {
        struct played *guests;
        size_t n;
        uint64_t capacity, now;
        uint32_t percent;
};

#define STEP (20 * MS)

static int64_t get_free(const struct play *play)
{
        int64_t free = (int64_t)play->capacity;

        for (size_t i = 0; i < play->n; i++)
                if (play->guests[i].stay.place != STAY_AWAY)
                        free -= (int64_t)play->guests[i].stay.part[0].bytes;
        assert_true(free >= 0);
        return free;
}

static void end_moves(const struct play *play, struct played *guest)
{
        if (guest->until > play->now)
                return;
        if (guest->stay.place == STAY_LEAVING) {
                guest->stay.place = STAY_AWAY;
        } else if (guest->stay.place == STAY_COMING) {
                guest->stay.place = STAY_HERE;
                guest->stay.since = guest->stay.last_work = play->now;
                guest->stay.guaranteed = stay_get_guaranteed(guest->cost, play->percent);
        }
}

static void work(const struct play *play, struct played *guest)
{
        struct stay *stay = &guest->stay;
        bool has_work;

        if (!guest->is_saturated && guest->busy_left == 0 && play->now >= guest->request) {
                guest->busy_left = guest->work;
                guest->request += guest->every;
        }
        has_work = guest->is_saturated || guest->busy_left > 0;
        if (stay->place == STAY_HERE) {
                stay->wants = 0;
                guest->resident += STEP;
                if (has_work)
                        stay->last_work = play->now;
                guest->busy_left -= guest->busy_left < STEP ? guest->busy_left : STEP;
        } else if (has_work && stay->wants == 0) {
                stay->wants = play->now;
        }
        if (stay->place == STAY_LEAVING || stay->place == STAY_COMING)
                guest->swapping += STEP;
        if (stay->wants && play->now - stay->wants > guest->waited_most)
                guest->waited_most = play->now - stay->wants;
}

static void move(const struct play *play, struct played *guest)
{
        struct stay *stay = &guest->stay;

        if (stay->is_chosen) {
                bool has_work = guest->is_saturated || guest->busy_left > 0;

                guest->n_cut += has_work && play->now < stay->since + stay->guaranteed;
                stay->place = STAY_LEAVING;
                stay->since = play->now;
                stay->wants = has_work ? play->now : 0;
                guest->n_swaps++;
        } else if (stay->verdict == STAY_COMES) {
                stay->place = STAY_COMING;
        } else {
                return;
        }
        guest->until = play->now + guest->cost / 2;
}

static void play_until(struct play *play, uint64_t end)
{
        struct stay **stays = calloc(play->n, sizeof(struct stay *));

        assert_non_null(stays);
        for (; play->now < end; play->now += STEP) {
                for (size_t i = 0; i < play->n; i++) {
                        end_moves(play, &play->guests[i]);
                        work(play, &play->guests[i]);
                        stays[i] = &play->guests[i].stay;
                }
                (void)decide_one_device(stays, play->n, get_free(play), play->now);
                for (size_t i = 0; i < play->n; i++)
                        move(play, &play->guests[i]);
        }
        free(stays);
}

static struct played make_saturated(uint64_t bytes, uint64_t cost, uint32_t weight)
{
        return (struct played){
                .stay = { .takes_turns = true,
                          .place = STAY_AWAY,
                          .part[0].bytes = bytes,
                          .part[0].needs = bytes,
                          .weight = weight },
                .is_saturated = true,
                .cost = cost,
        };
}

/* Whatever a swap costs, two that want the device all the time and do not fit lose no more than a tenth. */
static void test_swapping_takes_a_tenth_of_the_time_at_most(void **state)
{
        static const uint64_t costs[] = { 200 * MS, SECOND, 20 * SECOND };

        (void)state;
        for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
                struct played guests[] = { make_saturated(6 * GIB, costs[i], 1),
                                           make_saturated(6 * GIB, costs[i], 1) };
                struct play play = { guests, 2, 10 * GIB, SECOND, 10 };
                uint64_t end = 400 * costs[i] + 100 * SECOND, on;

                play_until(&play, end);
                on = guests[0].resident + guests[1].resident;
                assert_true(on >= (end - play.guests[0].cost) / 100 * 88);
                assert_true(guests[0].n_swaps >= 5 && guests[0].n_cut == 0);
                assert_true(labs((long)(guests[0].resident - guests[1].resident)) <=
                            (long)(11 * costs[i] + SECOND));
        }
}

/* Two with shares of 3 and 1, and three that do not fit two at a time: time on the device as their shares. */
static void test_turns_are_as_the_shares(void **state)
{
        struct played guests[] = { make_saturated(6 * GIB, SECOND, 60),
                                   make_saturated(7 * GIB, SECOND / 2, 20),
                                   make_saturated(8 * GIB, SECOND, 20) };
        struct play play = { guests, 3, 10 * GIB, SECOND, 10 };
        uint64_t all;

        (void)state;
        play_until(&play, 3000 * SECOND);
        all = guests[0].resident + guests[1].resident + guests[2].resident;
        assert_in_range(guests[0].resident * 100 / all, 57, 63);
        assert_in_range(guests[1].resident * 100 / all, 18, 22);
        assert_in_range(guests[2].resident * 100 / all, 18, 22);
}

/* Pseudorandom, the same each time. */
static uint64_t next_number(uint64_t *seed, uint64_t n)
{
        *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
        return (*seed >> 33) % n;
}

#define CROWD 300

static void make_crowd(struct played *guests, uint64_t seed)
{
        for (size_t i = 0; i < CROWD; i++) {
                struct played *guest = &guests[i];

                *guest = make_saturated((1 + next_number(&seed, 20)) * GIB,
                                        (100 + next_number(&seed, 900)) * MS, 1);
                guest->is_saturated = i % 10 == 0;
                guest->work = (50 + next_number(&seed, 400)) * MS;
                guest->every = (400 + next_number(&seed, 600)) * SECOND;
                guest->request = next_number(&seed, 400) * SECOND;
                guest->stay.class = i % 3 == 1 ? STAY_INTERACTIVE : STAY_BATCH;
        }
}

static void check_crowd(const struct played *guests, const struct play *play, uint64_t seconds)
{
        double used = 0; /* bytes, for so many seconds */

        for (size_t i = 0; i < CROWD; i++) {
                const struct played *guest = &guests[i];
                bool is_interactive = guest->stay.class == STAY_INTERACTIVE;

                assert_int_equal(guest->n_cut, 0);
                assert_true(guest->resident > 0);
                assert_true(guest->waited_most <
                            (is_interactive && !guest->is_saturated ? 30 : 150) * SECOND);
                if (!is_interactive)
                        assert_true(guest->swapping <= guest->resident / 9 + 2 * guest->cost +
                                                               guest->n_swaps * 2 * STEP);
                used += (double)guest->stay.part[0].bytes * (double)guest->resident /
                        (double)SECOND;
        }
        assert_true(used > 0.8 * (double)play->capacity * (double)seconds);
}

/*
 * Hundreds, of which some always wait: nobody starves, no stay is cut short, nobody of the batch class swaps for more
 * than a tenth of its time there, who is interactive waits for seconds, and the device is full nearly all the time.
 */
static void test_a_crowd(void **state)
{
        static struct played guests[CROWD];

        (void)state;
        for (uint64_t seed = 1; seed <= 3; seed++) {
                struct play play = { guests, CROWD, 80 * GIB, SECOND, 10 };

                make_crowd(guests, seed);
                play_until(&play, 1000 * SECOND);
                check_crowd(guests, &play, 999);
        }
}

/* Beside saturated batch guests who is interactive comes in before the others, and in a moment. */
static void test_interactive_comes_first(void **state)
{
        struct played guests[12];
        struct play play = { guests, 12, 10 * GIB, SECOND, 10 };

        (void)state;
        for (size_t i = 0; i < 12; i++)
                guests[i] = make_saturated(6 * GIB, 400 * MS, 1);
        guests[11].is_saturated = false;
        guests[11].stay.class = STAY_INTERACTIVE;
        guests[11].work = 100 * MS;
        guests[11].every = 31 * SECOND;
        guests[11].request = 40 * SECOND;
        play_until(&play, 1000 * SECOND);
        /* One guaranteed stay, both ways of a swap, and two looks. */
        assert_true(guests[11].waited_most <= 9 * guests[0].cost + 2 * guests[0].cost + 2 * STEP);
        assert_true(guests[0].waited_most > 30 * SECOND);
        assert_true(guests[11].n_swaps >= 25);
}

/* Cut off from the end of its work; who wants the device again only a while later is no reason to call it batch. */
static void test_who_rests_away_is_interactive_again(void **state)
{
        struct stay here = { .takes_turns = true,
                             .class = STAY_INTERACTIVE,
                             .weight = 1,
                             .part[0].bytes = GIB,
                             .since = 9 * SECOND,
                             .last_work = 9 * SECOND,
                             .guaranteed = 90 * SECOND };
        struct stay away = { .takes_turns = true,
                             .class = STAY_INTERACTIVE,
                             .weight = 1,
                             .place = STAY_AWAY,
                             .since = 9 * SECOND,
                             .part[0].needs = GIB,
                             .was_cut = true };

        (void)state;
        away.wants = away.since + STAY_EARLY_MIN / 2;
        (void)decide_one_device((struct stay *[]){ &here, &away }, 2, 0, 12 * SECOND);
        assert_true(away.was_cut);
        assert_false(here.is_chosen);
        away.wants = away.since + STAY_EARLY_MIN;
        (void)decide_one_device((struct stay *[]){ &here, &away }, 2, 0, 12 * SECOND);
        assert_false(away.was_cut);
        assert_true(here.is_chosen);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_leaves_when_it_had_no_work_for_its_time),
                cmocka_unit_test(test_who_did_not_ask_for_it_never_leaves),
                cmocka_unit_test(test_it_may_leave_early_but_not_between_two_kernels),
                cmocka_unit_test(test_a_stay_is_guaranteed),
                cmocka_unit_test(test_a_slow_swap_keeps_no_other_waiting_for_an_idle_one),
                cmocka_unit_test(test_waiting_for_host_memory_makes_no_stay_longer),
                cmocka_unit_test(test_where_turns_are_taken_a_long_time_keeps_nobody_waiting),
                cmocka_unit_test(test_an_interactive_stay_ends_when_it_is_idle),
                cmocka_unit_test(test_a_turn_is_as_long_as_its_weight),
                cmocka_unit_test(test_the_least_recently_used_leaves_first),
                cmocka_unit_test(test_nobody_leaves_for_nothing),
                cmocka_unit_test(test_idle_ones_leave_before_those_with_work),
                cmocka_unit_test(test_room_is_held),
                cmocka_unit_test(test_two_that_allocate_do_not_wait_for_each_other),
                cmocka_unit_test(test_swapping_takes_a_tenth_of_the_time_at_most),
                cmocka_unit_test(test_turns_are_as_the_shares),
                cmocka_unit_test(test_a_crowd),
                cmocka_unit_test(test_interactive_comes_first),
                cmocka_unit_test(test_who_rests_away_is_interactive_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
