/* SPDX-License-Identifier: Apache-2.0 */
/* vGPUs of several devices that come in and leave, beside those of one, in virtual time. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "scheduler/stay.h"

#define MS     1000000ull
#define SECOND 1000000000ull
#define GIB    (1ull << 30)

static struct stay make(enum stay_place place, uint32_t device, uint64_t bytes)
{
        return (struct stay){
                .takes_turns = true,
                .weight = 1,
                .place = place,
                .last_work = 50 * SECOND,
                .wants = place == STAY_AWAY ? 1 : 0,
                .part[0] = { .device = device, .bytes = bytes, .needs = bytes },
        };
}

static struct stay make_two(enum stay_place place, uint32_t one, uint32_t other, uint64_t bytes)
{
        struct stay stay = make(place, one, bytes);

        stay.part[1] = (struct stay_part){ .device = other, .bytes = bytes, .needs = bytes };
        stay.n_more = 1;
        return stay;
}

#define decide(free, ...)                                                             \
        stay_decide((struct stay *[]){ __VA_ARGS__ },                                 \
                    sizeof((struct stay *[]){ __VA_ARGS__ }) / sizeof(struct stay *), \
                    (const int64_t[]){ free, free, free }, 3, 50 * SECOND)

/* Nobody leaves before enough may leave on each of its devices; and then all at once. */
static void test_all_or_nothing(void **state)
{
        struct stay job = make_two(STAY_AWAY, 0, 1, 4 * GIB);
        struct stay old = make(STAY_HERE, 0, 5 * GIB), young = make(STAY_HERE, 1, 5 * GIB);

        (void)state;
        young.since = 49 * SECOND;
        young.guaranteed = 9 * SECOND;
        assert_true(decide(GIB, &job, &old, &young) == 58 * SECOND);
        assert_int_equal(job.verdict, STAY_LATER);
        assert_false(old.is_chosen || young.is_chosen);
        young.since = 20 * SECOND;
        (void)decide(GIB, &job, &old, &young);
        assert_int_equal(job.verdict, STAY_HELD);
        assert_true(old.is_chosen && young.is_chosen);
        (void)decide(4 * GIB, &job, &old, &young);
        assert_int_equal(job.verdict, STAY_COMES);
        assert_false(old.is_chosen || young.is_chosen);
}

/* What may leave on one device leaves for nobody else while it waits for the other one. */
static void test_nobody_takes_the_room_of_its_first_device(void **state)
{
        struct stay job = make_two(STAY_AWAY, 0, 1, 4 * GIB), one = make(STAY_AWAY, 0, 4 * GIB);
        struct stay old = make(STAY_HERE, 0, 5 * GIB), young = make(STAY_HERE, 1, 5 * GIB);

        (void)state;
        young.since = 49 * SECOND;
        young.guaranteed = 9 * SECOND;
        one.wants = 2;
        (void)decide(GIB, &one, &job, &old, &young);
        assert_int_equal(job.verdict, STAY_LATER);
        assert_int_equal(one.verdict, STAY_LATER);
        assert_false(old.is_chosen);
        /* Not even what is free there now. */
        one.part[0].needs = GIB;
        (void)decide(GIB, &one, &job, &old, &young);
        assert_int_equal(one.verdict, STAY_LATER);
        /* But who came before it does. */
        one.wants = 1;
        job.wants = 2;
        (void)decide(GIB, &one, &job, &old, &young);
        assert_int_equal(one.verdict, STAY_COMES);
        /* And so it does where no room will ever be on its other device. */
        one.wants = 3;
        young.is_held = true;
        (void)decide(GIB, &one, &job, &old, &young);
        assert_int_equal(job.verdict, STAY_STUCK);
        assert_int_equal(job.part[1].verdict, STAY_STUCK);
        assert_int_equal(one.verdict, STAY_COMES);
}

/* One that is behind another on one of its devices keeps nothing free on the other one. */
static void test_who_is_not_first_keeps_nothing(void **state)
{
        struct stay first = make(STAY_AWAY, 0, 4 * GIB), job = make_two(STAY_AWAY, 0, 1, 4 * GIB);
        struct stay one = make(STAY_AWAY, 1, 4 * GIB), young = make(STAY_HERE, 0, 5 * GIB);

        (void)state;
        job.wants = 2;
        one.wants = 3;
        young.since = 49 * SECOND;
        young.guaranteed = 9 * SECOND;
        (void)stay_decide((struct stay *[]){ &one, &job, &first, &young }, 4,
                          (const int64_t[]){ GIB, 5 * GIB }, 2, 50 * SECOND);
        assert_int_equal(first.verdict, STAY_LATER);
        assert_int_equal(job.verdict, STAY_LATER);
        assert_int_equal(job.part[1].verdict, STAY_COMES);
        assert_int_equal(one.verdict, STAY_COMES);
}

/* It is on two devices: one that leaves from both is enough for what lacks on both. */
static void test_who_leaves_leaves_all_of_its_devices(void **state)
{
        struct stay job = make_two(STAY_AWAY, 0, 1, 4 * GIB),
                    other = make_two(STAY_HERE, 2, 1, 4 * GIB);
        struct stay twin = make_two(STAY_HERE, 1, 0, 4 * GIB), one = make(STAY_HERE, 1, 4 * GIB);

        (void)state;
        other.since = 1 * SECOND;
        one.since = 2 * SECOND;
        twin.since = 3 * SECOND;
        (void)decide(0, &job, &other, &one, &twin);
        assert_int_equal(job.verdict, STAY_HELD);
        assert_true(twin.is_chosen);
        assert_false(one.is_chosen || other.is_chosen);
        /* What it leaves on a third device is for who waits there. */
        job = make_two(STAY_AWAY, 1, 2, 3 * GIB);
        one = make(STAY_AWAY, 2, GIB);
        one.wants = 2;
        (void)decide(0, &job, &other, &one);
        assert_true(other.is_chosen);
        assert_int_equal(one.verdict, STAY_HELD);
}

/* Each has on its first device what the other one needs on its second. */
static void test_two_that_cross_do_not_wait_for_each_other(void **state)
{
        struct stay a = make_two(STAY_HERE, 0, 1, 4 * GIB), b = make_two(STAY_HERE, 1, 0, 4 * GIB);

        (void)state;
        a.wants = 1;
        b.wants = 2;
        a.part[0].is_content = b.part[0].is_content = true;
        (void)decide(0, &b, &a);
        assert_true(b.is_chosen && !a.is_chosen);
        assert_int_equal(a.part[1].verdict, STAY_HELD);
        assert_int_equal(a.part[0].verdict, STAY_NOTHING);
        assert_int_equal(b.verdict, STAY_NOTHING);
}

/* An allocation waits for its own device, whatever the others of its vGPU have. */
static void test_an_allocation_is_of_one_device(void **state)
{
        struct stay a = make_two(STAY_HERE, 0, 1, 4 * GIB), held = make(STAY_HERE, 0, 4 * GIB);

        (void)state;
        a.wants = 1;
        a.part[1].needs = GIB;
        held.is_held = true;
        (void)decide(GIB, &a, &held);
        assert_int_equal(a.part[0].verdict, STAY_STUCK);
        assert_int_equal(a.part[1].verdict, STAY_COMES);
}

/* Who is on its way will be able to leave: nobody passes by one that waits for that. */
static void test_one_that_comes_will_be_able_to_leave(void **state)
{
        struct stay job = make_two(STAY_AWAY, 0, 1, 4 * GIB),
                    coming = make(STAY_COMING, 0, 4 * GIB);
        struct stay one = make(STAY_AWAY, 1, GIB);
        static const int64_t free[] = { 0, 4 * GIB };

        (void)state;
        one.wants = 2;
        assert_true(stay_decide((struct stay *[]){ &one, &job, &coming }, 3, free, 2,
                                50 * SECOND) == STAY_NEVER);
        assert_int_equal(job.verdict, STAY_LATER);
        assert_int_equal(one.verdict, STAY_LATER);
        coming.is_held = true;
        (void)stay_decide((struct stay *[]){ &one, &job, &coming }, 3, free, 2, 50 * SECOND);
        assert_int_equal(job.verdict, STAY_STUCK);
        assert_int_equal(one.verdict, STAY_COMES);
}

/* Behind interactive ones that are on one device without end, it is next when it was away for long. */
static void test_batch_is_shut_out_where_it_has_a_device(void **state)
{
        struct stay job = make_two(STAY_AWAY, 0, 1, 4 * GIB), one = make(STAY_HERE, 1, GIB);
        struct stay interactive = make(STAY_AWAY, 0, 4 * GIB);

        (void)state;
        interactive.class = STAY_INTERACTIVE;
        interactive.wants = 2;
        job.since = 45 * SECOND;
        (void)decide(4 * GIB, &job, &one, &interactive);
        assert_int_equal(interactive.verdict, STAY_COMES);
        assert_int_not_equal(job.verdict, STAY_COMES);
        job.since = 40 * SECOND;
        (void)decide(4 * GIB, &job, &one, &interactive);
        assert_int_equal(job.verdict, STAY_COMES);
        assert_int_not_equal(interactive.verdict, STAY_COMES);
}

/* Away for long from a device that nobody else has: that lets it pass by none of its class on the other one. */
static void test_within_the_class_nobody_passes_by(void **state)
{
        struct stay job = make_two(STAY_AWAY, 0, 1, 4 * GIB), one = make(STAY_AWAY, 0, 4 * GIB);
        struct stay here = make(STAY_HERE, 0, GIB), interactive = make(STAY_AWAY, 0, 4 * GIB);

        (void)state;
        interactive.class = STAY_INTERACTIVE;
        interactive.wants = one.wants = 1;
        job.wants = 2;
        (void)decide(4 * GIB, &interactive, &job, &one, &here);
        assert_int_not_equal(job.verdict, STAY_COMES);
        (void)decide(4 * GIB, &job, &one, &here);
        assert_int_equal(one.verdict, STAY_COMES);
        assert_int_not_equal(job.verdict, STAY_COMES);
}

/* Devices and vGPUs that always have work, played. */

#define STEP    (50 * MS)
#define DEVICES 4
#define HAS     (10 * GIB)

struct played {
        struct stay stay;
        uint64_t base[STAY_PARTS_MAX];
        uint64_t cost, until;
        uint64_t resident, swapping, waited_most, asks;
        unsigned int n_swaps, n_cut, n_grown;
};

struct play {
        struct played *guests;
        size_t n;
        uint64_t now, seed;
};

/* Pseudorandom, the same each time. */
static uint64_t next_number(uint64_t *seed, uint64_t n)
{
        *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
        return (*seed >> 33) % n;
}

static void get_free(const struct play *play, int64_t free[DEVICES])
{
        for (size_t i = 0; i < DEVICES; i++)
                free[i] = (int64_t)HAS;
        for (size_t i = 0; i < play->n; i++)
                for (size_t k = 0; k <= play->guests[i].stay.n_more; k++)
                        if (play->guests[i].stay.place != STAY_AWAY)
                                free[play->guests[i].stay.part[k].device] -=
                                        (int64_t)play->guests[i].stay.part[k].bytes;
        for (size_t i = 0; i < DEVICES; i++)
                assert_true(free[i] >= 0);
}

static void set_parts(struct played *guest)
{
        for (size_t i = 0; i <= guest->stay.n_more; i++) {
                guest->stay.part[i].bytes = guest->stay.part[i].needs = guest->base[i];
                guest->stay.part[i].is_content = true;
        }
}

static void end_moves(const struct play *play, struct played *guest)
{
        if (guest->until > play->now)
                return;
        if (guest->stay.place == STAY_LEAVING) {
                guest->stay.place = STAY_AWAY;
                set_parts(guest);
        } else if (guest->stay.place == STAY_COMING) {
                guest->stay.place = STAY_HERE;
                guest->stay.wants = 0;
                guest->stay.since = play->now;
                guest->stay.guaranteed = stay_get_guaranteed(guest->cost, 10);
        }
}

static void work(const struct play *play, struct played *guest)
{
        struct stay *stay = &guest->stay;

        if (stay->place == STAY_HERE) {
                guest->resident += STEP;
                stay->last_work = play->now;
        } else if (stay->place == STAY_AWAY) {
                stay->wants = stay->wants ? stay->wants : play->now;
        } else {
                guest->swapping += STEP;
        }
        if (stay->wants && play->now - stay->wants > guest->waited_most)
                guest->waited_most = play->now - stay->wants;
}

/* Now and then one needs a little more on one of its devices. */
static void grow(struct play *play, struct played *guest)
{
        struct stay *stay = &guest->stay;
        struct stay_part *part = &stay->part[next_number(&play->seed, stay->n_more + 1)];

        if (stay->place != STAY_HERE || stay->wants || next_number(&play->seed, 200) > 0 ||
            part->bytes + GIB / 4 > HAS)
                return;
        stay->wants = play->now;
        part->needs = GIB / 4;
        part->is_content = false;
}

static void end_growth(struct played *guest)
{
        for (size_t i = 0; i <= guest->stay.n_more; i++) {
                struct stay_part *part = &guest->stay.part[i];

                if (part->is_content || part->verdict != STAY_COMES)
                        continue;
                part->bytes += part->needs;
                part->is_content = true;
                guest->stay.wants = 0;
                guest->n_grown++;
        }
}

static void move(const struct play *play, struct played *guest)
{
        struct stay *stay = &guest->stay;

        if (stay->place == STAY_HERE)
                end_growth(guest);
        if (stay->is_chosen) {
                guest->n_cut += play->now < stay->since + stay->guaranteed;
                stay->place = STAY_LEAVING;
                stay->since = stay->wants = play->now;
                guest->n_swaps++;
        } else if (stay->place == STAY_AWAY && stay->verdict == STAY_COMES) {
                stay->place = STAY_COMING;
        } else {
                return;
        }
        guest->until = play->now + guest->cost / 2;
}

static void play_until(struct play *play, uint64_t end, bool grows)
{
        struct stay **stays = calloc(play->n, sizeof(struct stay *));
        int64_t free_bytes[DEVICES];

        assert_non_null(stays);
        for (; play->now < end; play->now += STEP) {
                for (size_t i = 0; i < play->n; i++) {
                        end_moves(play, &play->guests[i]);
                        work(play, &play->guests[i]);
                        if (grows)
                                grow(play, &play->guests[i]);
                        stays[i] = &play->guests[i].stay;
                }
                get_free(play, free_bytes);
                (void)stay_decide(stays, play->n, free_bytes, DEVICES, play->now);
                for (size_t i = 0; i < play->n; i++)
                        move(play, &play->guests[i]);
        }
        free(stays);
}

static struct played make_played(const uint32_t *devices, size_t n, uint64_t bytes, uint64_t cost)
{
        struct played guest = {
                .stay = { .takes_turns = true, .place = STAY_AWAY, .weight = 1, .n_more = n - 1 },
                .cost = cost,
        };

        for (size_t i = 0; i < n; i++) {
                guest.stay.part[i].device = devices[i];
                guest.base[i] = bytes;
        }
        set_parts(&guest);
        return guest;
}

/* What holds for each of a crowd that always has work. */
static void check_all(const struct play *play, uint64_t waited_most)
{
        for (size_t i = 0; i < play->n; i++) {
                const struct played *guest = &play->guests[i];

                assert_int_equal(guest->n_cut, 0);
                assert_true(guest->resident > 0);
                assert_true(guest->waited_most < waited_most);
                assert_true(guest->swapping <=
                            guest->resident / 9 + 2 * guest->cost + guest->n_swaps * 4 * STEP);
        }
}

/* 0,1 and 1,0; and a ring of three, of which no two fit beside each other: each has its part of the time. */
static void test_those_that_cross_take_turns(void **state)
{
        static const uint32_t devices[][2] = { { 0, 1 }, { 1, 0 }, { 1, 2 }, { 2, 0 } };

        (void)state;
        for (size_t with_ring = 0; with_ring < 2; with_ring++) {
                struct played guests[4];
                struct play play = { guests, 0, SECOND, 5 };
                uint64_t all = 0;

                for (size_t i = 0; i < 4; i++)
                        if (with_ring ? i != 1 : i < 2)
                                guests[play.n++] = make_played(devices[i], 2, 6 * GIB, SECOND);
                play_until(&play, 2000 * SECOND, false);
                check_all(&play, 12 * play.n * SECOND);
                for (size_t i = 0; i < play.n; i++)
                        all += guests[i].resident;
                for (size_t i = 0; i < play.n; i++)
                        assert_in_range(guests[i].resident * 100 * play.n / all, 97, 103);
                assert_true(all >= 2000 * SECOND / 100 * 85);
        }
}

/* One on both devices beside those of one, which never fit with it: all have a part of the time. */
static void test_one_of_two_beside_those_of_one(void **state)
{
        static const uint32_t devices[] = { 0, 1 };
        struct played guests[5];
        struct play play = { guests, 5, SECOND, 3 };

        (void)state;
        guests[0] = make_played(devices, 2, 8 * GIB, SECOND);
        for (size_t i = 1; i < 5; i++)
                guests[i] = make_played(&devices[i % 2], 1, 7 * GIB, (200 + 300 * i) * MS);
        play_until(&play, 3000 * SECOND, false);
        check_all(&play, 60 * SECOND);
        for (size_t i = 0; i < 5; i++)
                assert_true(guests[i].resident > 3000 * SECOND / 5);
}

/* Hundreds of one to four devices, of all sizes and speeds, some of which ask for more while they are there. */
static void test_a_mixed_crowd(void **state)
{
        enum { CROWD = 240 };
        static struct played guests[CROWD];
        struct play play = { guests, CROWD, SECOND, 11 };

        (void)state;
        for (size_t i = 0; i < CROWD; i++) {
                uint32_t devices[DEVICES] = { 0, 1, 2, 3 };
                size_t n = 1 + (next_number(&play.seed, 3) == 0 ? next_number(&play.seed, 4) : 0);

                for (size_t k = 0; k < DEVICES; k++) {
                        size_t other = next_number(&play.seed, DEVICES);
                        uint32_t device = devices[k];

                        devices[k] = devices[other];
                        devices[other] = device;
                }
                guests[i] = make_played(devices, n, (1 + next_number(&play.seed, 9)) * GIB,
                                        (100 + next_number(&play.seed, 900)) * MS);
                guests[i].stay.class = i % 7 == 1 ? STAY_INTERACTIVE : STAY_BATCH;
        }
        play_until(&play, 3000 * SECOND, true);
        check_all(&play, 1500 * SECOND);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_or_nothing),
                cmocka_unit_test(test_nobody_takes_the_room_of_its_first_device),
                cmocka_unit_test(test_who_is_not_first_keeps_nothing),
                cmocka_unit_test(test_who_leaves_leaves_all_of_its_devices),
                cmocka_unit_test(test_two_that_cross_do_not_wait_for_each_other),
                cmocka_unit_test(test_an_allocation_is_of_one_device),
                cmocka_unit_test(test_one_that_comes_will_be_able_to_leave),
                cmocka_unit_test(test_batch_is_shut_out_where_it_has_a_device),
                cmocka_unit_test(test_within_the_class_nobody_passes_by),
                cmocka_unit_test(test_those_that_cross_take_turns),
                cmocka_unit_test(test_one_of_two_beside_those_of_one),
                cmocka_unit_test(test_a_mixed_crowd),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
