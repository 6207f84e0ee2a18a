/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POOL_TEST_POOL_H
#define POOL_TEST_POOL_H

/* The pool with movers that the test plays: it decides when an action ends, and how. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/test.h"
#include "pool/pool.h"

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
        uint64_t watched; /* bytes */
        uid_t watched_user;
};

static inline int worker(const struct pool_work *work, void *userdata)
{
        struct fixture *fixture = userdata;

        if (fixture->refuse < 0)
                return fixture->refuse;
        assert_true(fixture->n_works < WORKS_MAX);
        assert_true(fcntl(work->fd, F_GETFD) >= 0);
        fixture->works[fixture->n_works++] = *work;
        return 0;
}

static inline int watch(int fd, uint64_t size, uid_t user, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_true(fcntl(fd, F_GETFD) >= 0);
        if (fixture->refuse < 0)
                return fixture->refuse;
        fixture->watched += size;
        fixture->watched_user = user;
        return 0;
}

static inline void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_non_null(reservation);
        fixture->n_told++;
        fixture->told_error = error;
}

static inline void new_pool(struct fixture *fixture, uint64_t limit)
{
        const struct pool_options options = { .limit = limit,
                                              .slab_size = SLAB,
                                              .worker = worker,
                                              .watch = watch,
                                              .userdata = fixture };

        assert_int_equal(pool_new(&fixture->pool, &options), 0);
}

static inline int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        new_pool(fixture, 8 * SLAB);
        *state = fixture;
        return 0;
}

static inline int teardown(void **state)
{
        struct fixture *fixture = *state;

        pool_free(fixture->pool);
        free(fixture);
        return 0;
}

static inline struct pool_work end_work(struct fixture *fixture, size_t index, int error)
{
        struct pool_work work = fixture->works[index];

        fixture->n_works--;
        memmove(fixture->works + index, fixture->works + index + 1,
                (fixture->n_works - index) * sizeof(work));
        pool_work_done(fixture->pool, work.action, work.device, work.slab, error);
        return work;
}

/* Ends all works, also those that follow; returns how many did @action. */
static inline unsigned int end_all(struct fixture *fixture, enum pool_action action)
{
        unsigned int n = 0;

        while (fixture->n_works > 0)
                n += end_work(fixture, 0, 0).action == action;
        return n;
}

static inline struct pool_reservation *reserve(struct fixture *fixture, const char *owner,
                                               uint64_t bytes)
{
        struct pool_reservation *reservation = NULL;

        assert_int_equal(pool_reserve(fixture->pool, &reservation, owner, 0, bytes), 0);
        return reservation;
}

/* Returns how many slabs were zeroed for it. */
static inline unsigned int prepare(struct fixture *fixture, struct pool_reservation *reservation,
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

static inline bool is_ready_at_once(struct fixture *fixture, struct pool_reservation *reservation)
{
        bool ready = false;

        assert_int_equal(pool_prepare(fixture->pool, reservation, 0, on_prepared, fixture, &ready),
                         0);
        return ready;
}

static inline struct pool_info info_of(const struct fixture *fixture)
{
        struct pool_info info;

        pool_get_info(fixture->pool, &info);
        return info;
}

static inline uint64_t sum_of(const struct pool_reservation *reservation)
{
        size_t n;
        const struct pool_extent *extents = pool_get_extents(reservation, &n);
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += extents[i].length;
        return sum;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

#endif
