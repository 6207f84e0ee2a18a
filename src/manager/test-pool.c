/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with movers that the test plays: it decides when an action ends, and how. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/test.h"
#include "manager/pool.h"

#define SLAB      (2 * MIB)
#define WORKS_MAX 256

#define ALICE "11111111-1111-4111-8111-111111111111"
#define BOB   "22222222-2222-4222-8222-222222222222"

struct fixture {
        struct pool *pool;
        struct pool_work works[WORKS_MAX]; /* started and not ended, the oldest first */
        size_t n_works;
        int refuse; /* what the worker answers */
        unsigned int n_told;
        int told_error;
};

static int worker(const struct pool_work *work, void *userdata)
{
        struct fixture *fixture = userdata;

        if (fixture->refuse < 0)
                return fixture->refuse;
        assert_true(fixture->n_works < WORKS_MAX);
        assert_true(fcntl(work->fd, F_GETFD) >= 0);
        fixture->works[fixture->n_works++] = *work;
        return 0;
}

static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_non_null(reservation);
        fixture->n_told++;
        fixture->told_error = error;
}

static void new_pool(struct fixture *fixture, uint64_t limit)
{
        const struct pool_options options = { .limit = limit,
                                              .slab_size = SLAB,
                                              .no_huge_pages = true,
                                              .worker = worker,
                                              .userdata = fixture };

        assert_int_equal(pool_new(&fixture->pool, &options), 0);
}

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        new_pool(fixture, 8 * SLAB);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        pool_free(fixture->pool);
        free(fixture);
        return 0;
}

static struct pool_work end_work(struct fixture *fixture, size_t index, int error)
{
        struct pool_work work = fixture->works[index];

        fixture->n_works--;
        memmove(fixture->works + index, fixture->works + index + 1,
                (fixture->n_works - index) * sizeof(work));
        pool_work_done(fixture->pool, work.action, work.device, work.slab, error);
        return work;
}

/* Ends all works, also those that follow; returns how many did @action. */
static unsigned int end_all(struct fixture *fixture, enum pool_action action)
{
        unsigned int n = 0;

        while (fixture->n_works > 0)
                n += end_work(fixture, 0, 0).action == action;
        return n;
}

static struct pool_reservation *reserve(struct fixture *fixture, const char *owner, uint64_t bytes)
{
        struct pool_reservation *reservation = NULL;

        assert_int_equal(pool_reserve(fixture->pool, &reservation, owner, 0, bytes), 0);
        return reservation;
}

/* Returns how many slabs were zeroed for it. */
static unsigned int prepare(struct fixture *fixture, struct pool_reservation *reservation,
                            uint32_t device)
{
        unsigned int n_told = fixture->n_told, n_zeroed;
        bool ready;

        assert_int_equal(
                pool_prepare(fixture->pool, reservation, device, on_prepared, fixture, &ready), 0);
        if (ready)
                return 0;
        n_zeroed = end_all(fixture, POOL_ZERO);
        assert_int_equal(fixture->n_told, n_told + 1);
        assert_int_equal(fixture->told_error, 0);
        return n_zeroed;
}

static bool is_ready_at_once(struct fixture *fixture, struct pool_reservation *reservation)
{
        bool ready = false;

        assert_int_equal(pool_prepare(fixture->pool, reservation, 0, on_prepared, fixture, &ready),
                         0);
        return ready;
}

static struct pool_info info_of(const struct fixture *fixture)
{
        struct pool_info info;

        pool_get_info(fixture->pool, &info);
        return info;
}

static uint64_t sum_of(const struct pool_reservation *reservation)
{
        size_t n;
        const struct pool_extent *extents = pool_get_extents(reservation, &n);
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += extents[i].length;
        return sum;
}

static void test_a_reservation_gets_all_of_its_bytes_or_none(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *all, *more = NULL;

        all = reserve(fixture, ALICE, 8 * SLAB - 5);
        assert_true(sum_of(all) == 8 * SLAB - 5);
        assert_true(info_of(fixture).used == 8 * SLAB - 5);
        assert_true(info_of(fixture).size == 8 * SLAB);

        assert_int_equal(pool_reserve(fixture->pool, &more, BOB, 0, 1), -ENOSPC);
        assert_int_equal(pool_reserve(fixture->pool, &more, ALICE, 0, SLAB), -ENOSPC);
        assert_null(more);
        assert_true(info_of(fixture).used == 8 * SLAB - 5);
        pool_release(fixture->pool, all);
        assert_true(info_of(fixture).used == 0);
}

static void test_bad_reservations_are_refused(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = NULL;
        char name[POOL_OWNER_MAX + 1];

        memset(name, 'x', POOL_OWNER_MAX);
        name[POOL_OWNER_MAX] = '\0';
        assert_int_equal(pool_reserve(fixture->pool, &reservation, ALICE, 0, 0), -EINVAL);
        assert_int_equal(pool_reserve(fixture->pool, &reservation, "", 0, 1), -EINVAL);
        assert_int_equal(pool_reserve(fixture->pool, &reservation, ALICE, POOL_DEVICES_MAX, 1),
                         -EINVAL);
        assert_int_equal(pool_reserve(fixture->pool, &reservation, name, 0, 1), -ENAMETOOLONG);
        assert_int_equal(pool_reserve(fixture->pool, &reservation, ALICE, 0, UINT64_MAX), -ENOSPC);
        assert_null(reservation);
        assert_true(info_of(fixture).size == 0);
}

static void test_two_owners_never_share_a_slab_but_one_owner_fills_it(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *a = reserve(fixture, ALICE, SLAB / 4);
        struct pool_reservation *b = reserve(fixture, BOB, SLAB / 4);
        struct pool_reservation *a2 = reserve(fixture, ALICE, SLAB / 4);
        size_t n;

        assert_int_not_equal(pool_get_extents(a, &n)->slab, pool_get_extents(b, &n)->slab);
        assert_int_equal(pool_get_extents(a, &n)->slab, pool_get_extents(a2, &n)->slab);
        assert_true(info_of(fixture).size == 2 * SLAB);
        assert_true(pool_available(fixture->pool, ALICE) == 6 * SLAB + SLAB / 2);
}

static void test_slabs_are_pinned_before_the_reservation_is_ready(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 3 * SLAB);
        bool ready = true;

        assert_int_equal(pool_prepare(fixture->pool, reservation, 1, on_prepared, fixture, &ready),
                         0);
        assert_false(ready);
        assert_int_equal(fixture->n_works, 3);
        assert_int_equal(fixture->works[0].action, POOL_ADD);
        assert_int_equal(fixture->works[0].device, 1);
        assert_true(fixture->works[0].size == SLAB);
        assert_int_equal(pool_prepare(fixture->pool, reservation, 1, on_prepared, fixture, &ready),
                         -EBUSY);

        end_work(fixture, 2, 0);
        end_work(fixture, 0, 0);
        assert_int_equal(fixture->n_told, 0);
        end_work(fixture, 0, 0);
        assert_int_equal(fixture->n_told, 1);
        assert_true(info_of(fixture).ready == 3 * SLAB);
        assert_int_equal(pool_prepare(fixture->pool, reservation, 1, on_prepared, fixture, &ready),
                         0);
        assert_true(ready);
}

static void test_the_same_owner_gets_its_dirty_slab_at_once(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        prepare(fixture, reservation, 0);
        fixture->refuse = -EAGAIN; /* no zeroing in the background */
        pool_release(fixture->pool, reservation);
        fixture->refuse = 0;
        assert_true(is_ready_at_once(fixture, reserve(fixture, ALICE, 2 * SLAB)));
}

static void test_another_owner_gets_it_only_zeroed(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 8 * SLAB);

        prepare(fixture, reservation, 0);
        fixture->refuse = -EAGAIN;
        pool_release(fixture->pool, reservation);
        fixture->refuse = 0;
        assert_int_equal(prepare(fixture, reserve(fixture, BOB, 8 * SLAB), 0), 8);
}

static void test_a_dirty_slab_is_zeroed_in_the_background(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        prepare(fixture, reservation, 0);
        pool_release(fixture->pool, reservation);
        assert_int_equal(fixture->n_works, 1); /* one at a time */
        assert_int_equal(end_all(fixture, POOL_ZERO), 2);
        assert_true(is_ready_at_once(fixture, reserve(fixture, BOB, 2 * SLAB)));
}

static void test_a_slab_that_is_just_being_zeroed_is_not_ready_for_its_owner(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB);

        prepare(fixture, reservation, 0);
        pool_release(fixture->pool, reservation);
        assert_int_equal(fixture->works[0].action, POOL_ZERO);
        reservation = reserve(fixture, ALICE, SLAB);
        assert_false(is_ready_at_once(fixture, reservation));
        end_work(fixture, 0, 0);
        assert_int_equal(fixture->n_told, 2);
        assert_int_equal(fixture->n_works, 0);
}

static void test_a_slab_given_back_before_it_was_zeroed_is_zeroed_for_anyone(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 8 * SLAB);

        prepare(fixture, reservation, 0);
        fixture->refuse = -EAGAIN;
        pool_release(fixture->pool, reservation);
        pool_release(fixture->pool, reserve(fixture, BOB, 8 * SLAB)); /* never prepared */
        fixture->refuse = 0;
        assert_int_equal(prepare(fixture, reserve(fixture, BOB, 8 * SLAB), 0), 8);
}

static void test_what_is_ready_is_taken_before_what_has_to_be_made(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation;

        pool_want(fixture->pool, 0, 2 * SLAB);
        end_all(fixture, POOL_ADD);
        assert_true(info_of(fixture).ready == 2 * SLAB);
        reservation = reserve(fixture, ALICE, 2 * SLAB);
        assert_true(is_ready_at_once(fixture, reservation));
        assert_true(info_of(fixture).size == 2 * SLAB);
}

static void test_the_pool_grows_ahead_up_to_its_limit_one_slab_at_a_time(void **state)
{
        struct fixture *fixture = *state;

        pool_want(fixture->pool, 0, 100 * SLAB);
        assert_int_equal(fixture->n_works, 1);
        assert_int_equal(end_all(fixture, POOL_ADD), 8);
        assert_true(info_of(fixture).size == 8 * SLAB);

        pool_want(fixture->pool, 1, 3 * SLAB); /* the limit is reached: the slabs are shared */
        assert_int_equal(end_all(fixture, POOL_ADD), 3);
        assert_true(info_of(fixture).size == 8 * SLAB);
}

static void test_nothing_is_begun_ahead_in_a_pause(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation;

        pool_want(fixture->pool, 0, 3 * SLAB);
        pool_pause(fixture->pool);
        pool_pause(fixture->pool);
        assert_int_equal(end_all(fixture, POOL_ADD), 1); /* the one that was under way */
        reservation = reserve(fixture, ALICE, 2 * SLAB);
        assert_int_equal(prepare(fixture, reservation, 0), 0); /* somebody waits for this */
        pool_unpause(fixture->pool);
        assert_int_equal(fixture->n_works, 0);
        pool_unpause(fixture->pool);
        assert_int_equal(end_all(fixture, POOL_ADD), 3);
}

static void test_growing_ahead_rests_after_a_failure(void **state)
{
        struct fixture *fixture = *state;

        pool_want(fixture->pool, 0, 3 * SLAB);
        end_work(fixture, 0, -ENOMEM);
        assert_int_equal(fixture->n_works, 0);
        pool_want(fixture->pool, 0, 3 * SLAB);
        assert_int_equal(end_all(fixture, POOL_ADD), 3);
}

static void test_a_failed_pinning_fails_the_preparation_and_can_be_tried_again(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        assert_false(is_ready_at_once(fixture, reservation));
        end_work(fixture, 0, -EIO);
        assert_int_equal(fixture->n_told, 1);
        assert_int_equal(fixture->told_error, -EIO);
        end_work(fixture, 0, 0);
        assert_int_equal(fixture->n_told, 1);
        prepare(fixture, reservation, 0);
}

static void test_a_worker_that_refuses_fails_the_call_and_not_the_callback(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);
        bool ready;

        fixture->refuse = -ENODEV;
        assert_int_equal(pool_prepare(fixture->pool, reservation, 0, on_prepared, fixture, &ready),
                         -ENODEV);
        fixture->refuse = 0;
        assert_int_equal(fixture->n_told, 0);
        prepare(fixture, reservation, 0);
}

static void test_a_lost_device_fails_its_preparations_and_unpins_its_slabs(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *a = reserve(fixture, ALICE, 2 * SLAB);
        struct pool_reservation *b = reserve(fixture, BOB, SLAB);
        struct pool_work late;
        bool ready;

        prepare(fixture, b, 1);
        assert_false(is_ready_at_once(fixture, a));
        late = fixture->works[0];
        pool_device_lost(fixture->pool, 0);
        assert_int_equal(fixture->n_told, 2);
        assert_int_equal(fixture->told_error, -ECONNRESET);
        pool_work_done(fixture->pool, late.action, late.device, late.slab, 0);
        assert_true(info_of(fixture).ready == SLAB); /* b's */

        fixture->n_works = 0;
        prepare(fixture, a, 0);
        assert_int_equal(pool_prepare(fixture->pool, b, 1, on_prepared, fixture, &ready), 0);
        assert_true(ready);
}

static void test_a_lower_limit_lets_go_free_slabs_now_and_others_later(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        prepare(fixture, reservation, 0);
        pool_want(fixture->pool, 0, 2 * SLAB);
        end_all(fixture, POOL_ADD);
        assert_true(info_of(fixture).size == 4 * SLAB);

        pool_set_limit(fixture->pool, SLAB + 1);
        assert_true(info_of(fixture).limit == SLAB);
        assert_int_equal(end_all(fixture, POOL_REMOVE), 2);
        assert_true(info_of(fixture).size == 2 * SLAB);
        assert_true(pool_available(fixture->pool, ALICE) == 0);

        pool_release(fixture->pool, reservation);
        assert_int_equal(end_all(fixture, POOL_REMOVE), 1);
        assert_true(info_of(fixture).size == SLAB);
}

static void test_a_slab_that_leaves_is_nobodys(void **state)
{
        struct fixture *fixture = *state;

        pool_want(fixture->pool, 0, 8 * SLAB);
        end_all(fixture, POOL_ADD);
        pool_set_limit(fixture->pool, 0);
        assert_int_equal(fixture->n_works, 8);
        pool_set_limit(fixture->pool, 8 * SLAB);
        assert_true(pool_available(fixture->pool, ALICE) == 0);
        end_work(fixture, 0, -EIO); /* a mover that cannot let go: asked once is enough */
        assert_true(pool_available(fixture->pool, ALICE) == SLAB);
}

static void test_released_during_its_preparation_a_reservation_is_not_told(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB);

        assert_false(is_ready_at_once(fixture, reservation));
        pool_release(fixture->pool, reservation);
        end_all(fixture, POOL_ADD);
        assert_int_equal(fixture->n_told, 0);
        assert_true(info_of(fixture).used == 0);
}

static void test_slabs_cannot_be_cut_off(void **state)
{
        struct fixture *fixture = *state;
        size_t n;
        const struct pool_extent *extent = pool_get_extents(reserve(fixture, ALICE, 1), &n);
        int fd = pool_get_slab(fixture->pool, extent->slab);

        assert_int_equal(ftruncate(fd, 0), -1);
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(pool_get_slab(fixture->pool, 999), -1);
}

static void test_a_restarted_manager_finds_data_and_extents_again(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, 2 * SLAB + SLAB / 2);
        struct pool_extent extents[3];
        int fds[3], foreign;
        size_t n;

        memcpy(extents, pool_get_extents(reservation, &n), sizeof(extents));
        assert_int_equal(n, 3);
        for (size_t i = 0; i < 3; i++) {
                fds[i] = fcntl(pool_get_slab(fixture->pool, extents[i].slab), F_DUPFD_CLOEXEC, 3);
                assert_int_equal(pwrite(fds[i], "data", 4, 0), 4);
        }
        pool_free(fixture->pool);
        fixture->n_works = 0;
        new_pool(fixture, 8 * SLAB);

        foreign = memfd_create("foreign", MFD_CLOEXEC);
        assert_int_equal(pool_adopt(fixture->pool, 77, foreign), -EINVAL);
        close(foreign);
        assert_int_equal(pool_adopt_reservation(fixture->pool, &reservation, ALICE, extents, 3),
                         -ENOENT);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(pool_adopt(fixture->pool, extents[i].slab, fds[i]), 0);
        assert_int_equal(pool_adopt(fixture->pool, extents[0].slab, 0), -EEXIST);
        assert_int_equal(pool_adopt_reservation(fixture->pool, &reservation, ALICE, extents, 3), 0);
        assert_true(sum_of(reservation) == 2 * SLAB + SLAB / 2);
        assert_string_equal(pool_get_owner(reservation), ALICE);

        assert_int_equal(prepare(fixture, reservation, 1), 0); /* not zeroed */
        assert_true(info_of(fixture).used == 2 * SLAB + SLAB / 2);
        assert_true(pool_get_slab(fixture->pool, extents[0].slab) == fds[0]);
        reserve(fixture, BOB, SLAB); /* new ids do not collide */
}

static void test_what_cannot_be_adopted_changes_nothing(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = NULL, *good;
        size_t n;
        uint32_t slab;
        uint64_t used;

        good = reserve(fixture, ALICE, SLAB / 2);
        slab = pool_get_extents(good, &n)->slab;
        used = info_of(fixture).used;

        const struct {
                const char *owner;
                struct pool_extent extents[2];
        } bad[] = {
                { BOB, { { slab, SLAB / 2, 4096 } } },
                { ALICE, { { slab, 0, 4096 } } },
                { ALICE, { { slab, SLAB / 2, 8192 }, { slab, SLAB / 2 + 4096, 4096 } } },
                { ALICE, { { slab, SLAB / 2, 8192 }, { slab, SLAB / 2 - 4096, 8192 } } },
                { ALICE, { { slab, SLAB - 4096, 8192 } } },
                { ALICE, { { slab, UINT64_MAX, 2 } } },
                { ALICE, { { slab, SLAB / 2, 0 } } },
        };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(pool_adopt_reservation(fixture->pool, &reservation, bad[i].owner,
                                                        bad[i].extents,
                                                        bad[i].extents[1].slab ? 2 : 1),
                                 -EINVAL);
        assert_null(reservation);
        assert_true(info_of(fixture).used == used);
}

static void test_an_adopted_slab_that_nobody_claims_is_zeroed_first(void **state)
{
        struct fixture *fixture = *state;
        size_t n;
        uint32_t slab = pool_get_extents(reserve(fixture, ALICE, SLAB), &n)->slab;
        int fd = fcntl(pool_get_slab(fixture->pool, slab), F_DUPFD_CLOEXEC, 3);

        pool_free(fixture->pool);
        new_pool(fixture, SLAB);
        assert_int_equal(pool_adopt(fixture->pool, slab, fd), 0);
        assert_int_equal(prepare(fixture, reserve(fixture, ALICE, SLAB), 0), 1);
}

static uint32_t first_slab(const struct pool_reservation *reservation)
{
        size_t n;

        return pool_get_extents(reservation, &n)->slab;
}

/* It goes, also when there is room, and not by way of another owner. */
static void test_a_slab_that_a_client_had_goes_to_nobody_else(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve(fixture, ALICE, SLAB / 2), *again, *bob;
        uint32_t slab = first_slab(alice);
        struct stat status;

        assert_int_equal(pool_share(fixture->pool, slab), pool_get_slab(fixture->pool, slab));
        assert_int_equal(fstat(pool_get_slab(fixture->pool, slab), &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        again = reserve(fixture, ALICE, SLAB / 4); /* her own she may use */
        assert_int_equal(first_slab(again), slab);
        bob = reserve(fixture, BOB, SLAB);
        assert_int_not_equal(first_slab(bob), slab);

        pool_release(fixture->pool, alice);
        assert_true(pool_get_slab(fixture->pool, slab) >= 0);
        pool_release(fixture->pool, again);
        assert_int_equal(pool_get_slab(fixture->pool, slab), -1);
        assert_int_equal(pool_share(fixture->pool, slab), -ENOENT);
}

/* The next manager knows it by its file. */
static void test_a_shared_slab_stays_shared_after_a_restart(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve(fixture, ALICE, SLAB / 2), *bob;
        uint32_t slab = first_slab(alice);
        const struct pool_extent extent = { slab, 0, SLAB / 2 };
        int fd;

        assert_true(pool_share(fixture->pool, slab) >= 0);
        fd = fcntl(pool_get_slab(fixture->pool, slab), F_DUPFD_CLOEXEC, 3);
        pool_free(fixture->pool);
        new_pool(fixture, 8 * SLAB);
        assert_int_equal(pool_adopt(fixture->pool, slab, fd), 0);
        assert_int_equal(pool_adopt_reservation(fixture->pool, &alice, ALICE, &extent, 1), 0);
        pool_release(fixture->pool, alice);
        bob = reserve(fixture, BOB, SLAB);
        assert_int_equal(pool_get_slab(fixture->pool, slab), -1);
        assert_int_not_equal(first_slab(bob), slab);
}

static void test_segments_cover_every_byte_in_order(void **state)
{
        static const uint64_t sizes[] = { 10, 0, 5, 20 };
        static const struct pool_extent extents[] = { { 1, 100, 12 }, { 2, 0, 3 }, { 3, 50, 40 } };
        static const struct mover_segment expected[] = {
                { .memory = 0, .slab = 1, .slab_offset = 100, .length = 10 },
                { .memory = 2, .slab = 1, .slab_offset = 110, .length = 2 },
                { .memory = 2, .slab = 2, .memory_offset = 2, .length = 3 },
                { .memory = 3, .slab = 3, .slab_offset = 50, .length = 20 },
        };
        struct mover_segment *segments = NULL;
        size_t n = 0;
        (void)state;

        assert_int_equal(pool_make_segments(&segments, &n, sizes, 4, extents, 3), 0);
        assert_int_equal(n, 4);
        assert_memory_equal(segments, expected, sizeof(expected));
        free(segments);
        segments = NULL;
        assert_int_equal(pool_make_segments(&segments, &n, sizes, 4, extents, 2), -ENOSPC);
        assert_null(segments);
}

/*
 * Random life of a pool. The model knows whose data is in each slab; the property is that no owner
 * is ever given a slab that has data of another, whatever fails or is lost in between.
 */

#define OWNERS       3
#define RESERVATIONS 12
#define IDS_MAX      65536

struct model {
        struct fixture *fixture;
        struct pool_reservation *reservation[RESERVATIONS];
        uint32_t device[RESERVATIONS];
        bool is_prepared[RESERVATIONS];
        uint8_t data[IDS_MAX]; /* a bit for each owner with data in the slab */
        uint32_t seed;
};

static const char *const owner_names[OWNERS] = { "one", "two", "three" };

static uint32_t random_below(struct model *model, uint32_t n)
{
        model->seed = model->seed * 1664525u + 1013904223u;
        return (model->seed >> 8) % n;
}

static uint8_t owner_bit(const struct pool_reservation *reservation)
{
        for (unsigned int i = 0; i < OWNERS; i++)
                if (strcmp(pool_get_owner(reservation), owner_names[i]) == 0)
                        return (uint8_t)(1u << i);
        fail();
        return 0;
}

/* The mover writes, now and at any time until it is released. */
static void write_data(struct model *model, size_t i)
{
        size_t n;
        const struct pool_extent *extents = pool_get_extents(model->reservation[i], &n);
        uint8_t owner = owner_bit(model->reservation[i]);

        model->is_prepared[i] = true;
        for (size_t k = 0; k < n; k++) {
                assert_true((model->data[extents[k].slab] & ~owner) == 0);
                model->data[extents[k].slab] = owner;
        }
}

static void on_model_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct model *model = userdata;

        for (size_t i = 0; i < RESERVATIONS && error == 0; i++)
                if (model->reservation[i] == reservation)
                        write_data(model, i);
}

static void step_reserve(struct model *model, size_t i)
{
        const char *owner = owner_names[random_below(model, OWNERS)];
        uint64_t bytes = 1 + random_below(model, 3 * SLAB);
        uint64_t available = pool_available(model->fixture->pool, owner);
        int r;

        model->device[i] = random_below(model, 3);
        model->is_prepared[i] = false;
        r = pool_reserve(model->fixture->pool, &model->reservation[i], owner, model->device[i],
                         bytes);
        assert_int_equal(r, bytes > available ? -ENOSPC : 0);
}

static void step_prepare(struct model *model, size_t i)
{
        bool ready = false;
        int r;

        r = pool_prepare(model->fixture->pool, model->reservation[i], random_below(model, 3),
                         on_model_prepared, model, &ready);
        if (r == 0 && ready)
                write_data(model, i);
}

static void step_end_work(struct model *model)
{
        struct fixture *fixture = model->fixture;
        size_t index = random_below(model, (uint32_t)fixture->n_works);
        bool fails = random_below(model, 8) == 0;

        if (fixture->works[index].action == POOL_ZERO && !fails) {
                for (size_t i = 0; i < RESERVATIONS; i++) { /* nobody's data is lost by it */
                        size_t n;
                        const struct pool_extent *extents;

                        if (!model->reservation[i] || !model->is_prepared[i])
                                continue;
                        extents = pool_get_extents(model->reservation[i], &n);
                        for (size_t k = 0; k < n; k++)
                                assert_int_not_equal(extents[k].slab, fixture->works[index].slab);
                }
                model->data[fixture->works[index].slab] = 0;
        }
        end_work(fixture, index, fails ? -EIO : 0);
}

static void step_lose_device(struct model *model)
{
        uint32_t device = random_below(model, 3);
        struct fixture *fixture = model->fixture;

        pool_device_lost(fixture->pool, device);
        for (size_t i = fixture->n_works; i-- > 0;)
                if (fixture->works[i].device == device) {
                        fixture->n_works--;
                        memmove(fixture->works + i, fixture->works + i + 1,
                                (fixture->n_works - i) * sizeof(fixture->works[0]));
                }
        if (random_below(model, 2))
                pool_want(fixture->pool, device, SLAB * random_below(model, 6));
}

static void assert_disjoint(const struct model *model)
{
        uint64_t used = 0;

        for (size_t i = 0; i < RESERVATIONS; i++) {
                size_t n;
                const struct pool_extent *a;

                if (!model->reservation[i])
                        continue;
                used += sum_of(model->reservation[i]);
                a = pool_get_extents(model->reservation[i], &n);
                for (size_t j = 0; j < i; j++) {
                        size_t m;
                        const struct pool_extent *b;

                        if (!model->reservation[j])
                                continue;
                        b = pool_get_extents(model->reservation[j], &m);
                        for (size_t k = 0; k < n * m; k++) {
                                const struct pool_extent *x = &a[k / m], *y = &b[k % m];

                                if (x->slab != y->slab)
                                        continue;
                                assert_int_equal(owner_bit(model->reservation[i]),
                                                 owner_bit(model->reservation[j]));
                                assert_true(x->offset + x->length <= y->offset ||
                                            y->offset + y->length <= x->offset);
                        }
                }
        }
        assert_true(info_of(model->fixture).used == used);
}

static void take_random_step(struct model *model, uint64_t *limit)
{
        struct fixture *fixture = model->fixture;
        size_t i = random_below(model, RESERVATIONS);
        uint32_t what = random_below(model, 100);

        fixture->refuse = random_below(model, 20) == 0 ? -ENODEV : 0;
        if (what < 40 && fixture->n_works > 0)
                step_end_work(model);
        else if (what < 60 && !model->reservation[i])
                step_reserve(model, i);
        else if (what < 75 && model->reservation[i])
                step_prepare(model, i);
        else if (what < 95 && model->reservation[i])
                model->reservation[i] = pool_release(fixture->pool, model->reservation[i]);
        else if (what == 95)
                step_lose_device(model);
        else if (what == 96)
                pool_set_limit(fixture->pool, *limit = SLAB * random_below(model, 20));
        else if (what == 97)
                pool_want(fixture->pool, random_below(model, 3), 4 * SLAB);
}

/* Everything is free again then, and the pool is within its limit. */
static void come_to_rest(struct model *model, uint64_t limit)
{
        struct fixture *fixture = model->fixture;

        fixture->refuse = 0;
        for (size_t i = 0; i < RESERVATIONS; i++)
                model->reservation[i] = pool_release(fixture->pool, model->reservation[i]);
        while (fixture->n_works > 0) {
                if (fixture->works[0].action == POOL_ZERO)
                        model->data[fixture->works[0].slab] = 0;
                end_work(fixture, 0, 0);
        }
        assert_true(info_of(fixture).used == 0);
        assert_true(info_of(fixture).size <= limit);
        assert_true(pool_available(fixture->pool, owner_names[0]) == limit);
}

static void test_whatever_happens_nobody_is_given_data_of_another(void **state)
{
        struct model model = { .fixture = *state };
        uint64_t limit = 8 * SLAB;

        for (model.seed = 1; model.seed < 1000; model.seed += 100) {
                uint32_t seed = model.seed;

                for (unsigned int step = 0; step < 10000; step++) {
                        take_random_step(&model, &limit);
                        if (step % 16 == 0)
                                assert_disjoint(&model);
                }
                come_to_rest(&model, limit);
                model.seed = seed;
        }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_a_reservation_gets_all_of_its_bytes_or_none),
                TEST(test_bad_reservations_are_refused),
                TEST(test_two_owners_never_share_a_slab_but_one_owner_fills_it),
                TEST(test_slabs_are_pinned_before_the_reservation_is_ready),
                TEST(test_the_same_owner_gets_its_dirty_slab_at_once),
                TEST(test_another_owner_gets_it_only_zeroed),
                TEST(test_a_dirty_slab_is_zeroed_in_the_background),
                TEST(test_a_slab_that_is_just_being_zeroed_is_not_ready_for_its_owner),
                TEST(test_a_slab_given_back_before_it_was_zeroed_is_zeroed_for_anyone),
                TEST(test_what_is_ready_is_taken_before_what_has_to_be_made),
                TEST(test_the_pool_grows_ahead_up_to_its_limit_one_slab_at_a_time),
                TEST(test_nothing_is_begun_ahead_in_a_pause),
                TEST(test_growing_ahead_rests_after_a_failure),
                TEST(test_a_failed_pinning_fails_the_preparation_and_can_be_tried_again),
                TEST(test_a_worker_that_refuses_fails_the_call_and_not_the_callback),
                TEST(test_a_lost_device_fails_its_preparations_and_unpins_its_slabs),
                TEST(test_a_lower_limit_lets_go_free_slabs_now_and_others_later),
                TEST(test_a_slab_that_leaves_is_nobodys),
                TEST(test_released_during_its_preparation_a_reservation_is_not_told),
                TEST(test_slabs_cannot_be_cut_off),
                TEST(test_a_restarted_manager_finds_data_and_extents_again),
                TEST(test_what_cannot_be_adopted_changes_nothing),
                TEST(test_an_adopted_slab_that_nobody_claims_is_zeroed_first),
                TEST(test_a_slab_that_a_client_had_goes_to_nobody_else),
                TEST(test_a_shared_slab_stays_shared_after_a_restart),
                TEST(test_segments_cover_every_byte_in_order),
                TEST(test_whatever_happens_nobody_is_given_data_of_another),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
