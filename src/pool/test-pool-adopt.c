/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs as files: what the next manager finds, and what a client had. */
#include "pool/test-pool.h"

/* As of a release that had no stamps. */
static int adopt(struct fixture *fixture, struct pool_reservation **ret_reservation,
                 const char *owner, const struct pool_extent *extents, size_t n)
{
        struct pool_mark mark = { 0 };

        snprintf(mark.owner, sizeof(mark.owner), "%s", owner);
        return pool_adopt_reservation(fixture->pool, ret_reservation, mark.owner, &mark, extents,
                                      n);
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
        assert_int_equal(adopt(fixture, &reservation, ALICE, extents, 3), -ENOENT);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(pool_adopt(fixture->pool, extents[i].slab, fds[i]), 0);
        assert_int_equal(pool_adopt(fixture->pool, extents[0].slab, 0), -EEXIST);
        assert_int_equal(adopt(fixture, &reservation, ALICE, extents, 3), 0);
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
                assert_int_equal(adopt(fixture, &reservation, bad[i].owner, bad[i].extents,
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

/* Stamps. */

#define GUEST     77, 1000 /* pid, start time */
#define NEIGHBOUR 78, 1000

static int adopt_marked(struct fixture *fixture, const char *owner, uint64_t generation,
                        const struct pool_extent *extent)
{
        struct pool_mark mark = { .generation = generation, .start_time = 1000, .pid = 77 };
        struct pool_reservation *reservation;
        int r;

        snprintf(mark.owner, sizeof(mark.owner), "%s", owner);
        r = pool_adopt_reservation(fixture->pool, &reservation, mark.owner, &mark, extent, 1);
        if (r == 0)
                r = pool_check(fixture->pool, reservation, GUEST, &(uint32_t){ 0 });
        return r;
}

/* The slab of the only extent in the hands of the next manager. */
static void restart(struct fixture *fixture, uint32_t slab)
{
        int fd = fcntl(pool_get_slab(fixture->pool, slab), F_DUPFD_CLOEXEC, 3);

        pool_free(fixture->pool);
        fixture->n_works = 0;
        new_pool(fixture, 8 * SLAB);
        assert_int_equal(pool_adopt(fixture->pool, slab, fd), 0);
}

static void test_only_what_was_stamped_is_taken_for_a_process_memory(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB + 4096);
        uint32_t slab;

        assert_int_equal(pool_check(fixture->pool, reservation, GUEST, &slab), -ESTALE);
        assert_int_equal(pool_stamp(fixture->pool, reservation, GUEST), 0);
        assert_int_equal(pool_check(fixture->pool, reservation, GUEST, &slab), 0);
        assert_int_equal(pool_check(fixture->pool, reservation, NEIGHBOUR, &slab), -ESTALE);
        assert_int_equal(pool_stamp(fixture->pool, reservation, GUEST), 0);
        assert_int_equal(pool_check(fixture->pool, reservation, GUEST, &slab), 0);
}

static void test_what_is_taken_anew_has_no_stamp_of_before(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB);
        uint64_t generation = pool_get_generation(reservation);
        struct pool_extent extent;
        uint32_t slab;
        size_t n;

        extent = *pool_get_extents(reservation, &n);
        assert_int_equal(pool_stamp(fixture->pool, reservation, GUEST), 0);
        pool_release(fixture->pool, reservation);
        reservation = reserve(fixture, ALICE, SLAB);
        assert_int_equal(pool_get_extents(reservation, &n)->slab, extent.slab);
        assert_true(pool_get_generation(reservation) != generation);
        assert_int_equal(pool_check(fixture->pool, reservation, GUEST, &slab), -ESTALE);
        restart(fixture, extent.slab);
        assert_int_equal(adopt_marked(fixture, ALICE, generation, &extent), -ESTALE);
}

static void test_after_a_restart_the_slab_says_whose_memory_it_has(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB / 2);
        uint64_t generation = pool_get_generation(reservation);
        struct pool_extent extent, part;
        size_t n;

        extent = part = *pool_get_extents(reservation, &n);
        part.length -= 4096;
        assert_int_equal(pool_stamp(fixture->pool, reservation, GUEST), 0);
        restart(fixture, extent.slab);
        assert_int_equal(adopt_marked(fixture, BOB, generation, &extent), -ESTALE);
        assert_int_equal(adopt_marked(fixture, ALICE, generation + 1, &extent), -ESTALE);
        assert_int_equal(adopt_marked(fixture, ALICE, 0, &extent), -ESTALE);
        assert_int_equal(adopt_marked(fixture, ALICE, generation, &part), -ESTALE);
        assert_int_equal(info_of(fixture).used, 0);
        assert_int_equal(adopt_marked(fixture, ALICE, generation, &extent), 0);
}

/* Without the part behind the data: what it had is found, and nobody gets it after that. */
static void test_a_slab_of_a_release_without_stamps_is_used_up(void **state)
{
        const struct pool_extent extent = { 5, 0, SLAB / 2 };
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = NULL;
        uint32_t slab;
        int fd = memfd_create("openvgpu-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert_int_equal(ftruncate(fd, SLAB), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
        assert_int_equal(pool_adopt(fixture->pool, 5, fd), 0);
        assert_int_equal(adopt(fixture, &reservation, ALICE, &extent, 1), 0);
        assert_int_equal(pool_check(fixture->pool, reservation, GUEST, &slab), 0);
        assert_int_equal(pool_available(fixture->pool, ALICE), 7 * SLAB);
        pool_release(fixture->pool, reservation);
        end_all(fixture, POOL_REMOVE);
        assert_int_equal(pool_get_slab(fixture->pool, 5), -1);
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

        assert_int_equal(pool_share(fixture->pool, slab, 1000), pool_get_slab(fixture->pool, slab));
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
        assert_int_equal(pool_share(fixture->pool, slab, 1000), -ENOENT);
}

/* Whoever has it keeps the memory: as long as that is so, there is less for all. */
static void test_what_a_client_keeps_counts_until_it_is_gone(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve(fixture, ALICE, 3 * SLAB), *other;
        const struct pool_extent *extents;
        size_t n;

        extents = pool_get_extents(alice, &n);
        assert_int_equal(n, 3);
        for (size_t i = 0; i < 2; i++) {
                assert_true(pool_share(fixture->pool, extents[i].slab, 1000) >= 0);
                assert_true(pool_share(fixture->pool, extents[i].slab, 0) >= 0);
        }
        pool_release(fixture->pool, alice);
        assert_int_equal(fixture->watched, 2 * SLAB);
        assert_int_equal(fixture->watched_user, 1000); /* and not root, who has no limit */
        assert_int_equal(info_of(fixture).held, 2 * SLAB);
        assert_int_equal(pool_available(fixture->pool, ALICE), 6 * SLAB);
        assert_int_equal(pool_reserve(fixture->pool, &other, BOB, 0, 7 * SLAB), -ENOSPC);
        pool_gone(fixture->pool, SLAB);
        other = reserve(fixture, BOB, 7 * SLAB);
        pool_release(fixture->pool, other);
        pool_gone(fixture->pool, SLAB);
        assert_int_equal(pool_available(fixture->pool, ALICE), 8 * SLAB);
}

/* The next manager knows it by its file. */
static void test_a_shared_slab_stays_shared_after_a_restart(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve(fixture, ALICE, SLAB / 2), *bob;
        uint32_t slab = first_slab(alice);
        const struct pool_extent extent = { slab, 0, SLAB / 2 };
        int fd;

        assert_true(pool_share(fixture->pool, slab, 1000) >= 0);
        fd = fcntl(pool_get_slab(fixture->pool, slab), F_DUPFD_CLOEXEC, 3);
        pool_free(fixture->pool);
        new_pool(fixture, 8 * SLAB);
        assert_int_equal(pool_adopt(fixture->pool, slab, fd), 0);
        assert_int_equal(adopt(fixture, &alice, ALICE, &extent, 1), 0);
        pool_release(fixture->pool, alice);
        bob = reserve(fixture, BOB, SLAB);
        assert_int_equal(pool_get_slab(fixture->pool, slab), -1);
        assert_int_not_equal(first_slab(bob), slab);
}

/* What clients had, and what is above the limit, goes when it is free; but not while it may be claimed. */
static void test_a_claim_that_fails_costs_nobody_else_his_memory(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *reservation = reserve(fixture, ALICE, SLAB);
        struct pool_extent alice, bad = { .slab = 999, .length = 4096 };
        size_t n;
        int fd;

        alice = pool_get_extents(reservation, &n)[0];
        assert_true(pool_share(fixture->pool, alice.slab, 1000) >= 0);
        fd = fcntl(pool_get_slab(fixture->pool, alice.slab), F_DUPFD_CLOEXEC, 3);
        pool_free(fixture->pool);
        new_pool(fixture, 8 * SLAB);

        assert_int_equal(pool_adopt(fixture->pool, alice.slab, fd), 0);
        assert_int_equal(adopt(fixture, &reservation, BOB, &bad, 1), -ENOENT);
        assert_int_equal(adopt(fixture, &reservation, ALICE, &alice, 1), 0);
        assert_true(sum_of(reservation) == SLAB);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_slabs_cannot_be_cut_off),
                TEST(test_a_restarted_manager_finds_data_and_extents_again),
                TEST(test_what_cannot_be_adopted_changes_nothing),
                TEST(test_only_what_was_stamped_is_taken_for_a_process_memory),
                TEST(test_what_is_taken_anew_has_no_stamp_of_before),
                TEST(test_after_a_restart_the_slab_says_whose_memory_it_has),
                TEST(test_a_slab_of_a_release_without_stamps_is_used_up),
                TEST(test_an_adopted_slab_that_nobody_claims_is_zeroed_first),
                TEST(test_a_slab_that_a_client_had_goes_to_nobody_else),
                TEST(test_what_a_client_keeps_counts_until_it_is_gone),
                TEST(test_a_shared_slab_stays_shared_after_a_restart),
                TEST(test_a_claim_that_fails_costs_nobody_else_his_memory),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
