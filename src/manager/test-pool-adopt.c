/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs as files: what the next manager finds, and what a client had. */
#include "manager/test-pool.h"

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

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_slabs_cannot_be_cut_off),
                TEST(test_a_restarted_manager_finds_data_and_extents_again),
                TEST(test_what_cannot_be_adopted_changes_nothing),
                TEST(test_an_adopted_slab_that_nobody_claims_is_zeroed_first),
                TEST(test_a_slab_that_a_client_had_goes_to_nobody_else),
                TEST(test_a_shared_slab_stays_shared_after_a_restart),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
