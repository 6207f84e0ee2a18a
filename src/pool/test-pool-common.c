/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that several reservations hold: nobody loses one, nobody writes to one, the last gives it back. */
#include "pool/test-pool.h"

#define USER   "user 1000"
#define OTHER  "user 1001"
#define CARL   "33333333-3333-4333-8333-333333333333"
#define BLOCK  (SLAB / 8)
#define BLOCKS 24 /* of a reservation */
#define GUEST  4711, 99

static struct pool_reservation *reserve_in(struct fixture *fixture, const char *owner,
                                           const char *vgpu)
{
        struct pool_reservation *reservation = NULL;

        assert_int_equal(
                pool_reserve_in(fixture->pool, &reservation, owner, vgpu, 0, BLOCKS * BLOCK), 0);
        (void)prepare(fixture, reservation, 0);
        return reservation;
}

static void on_given_up(void *userdata)
{
        (*(unsigned int *)userdata)++;
}

static void places_of(const struct pool_reservation *reservation, struct pool_place *places)
{
        pool_get_places(reservation, BLOCK, places, BLOCKS);
        for (size_t i = 0; i < BLOCKS; i++)
                assert_int_not_equal(places[i].slab, 0);
}

/* The bytes of block @i. */
static void access_block(struct fixture *fixture, const struct pool_reservation *reservation,
                         size_t i, unsigned char *to, unsigned char from)
{
        struct pool_place places[BLOCKS];
        unsigned char *address;

        places_of(reservation, places);
        address = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED,
                       pool_get_slab(fixture->pool, places[i].slab), (off_t)places[i].offset);
        assert_ptr_not_equal(address, MAP_FAILED);
        if (to)
                *to = address[BLOCK - 1];
        else
                memset(address, from, BLOCK);
        munmap(address, BLOCK);
}

/* What a mover does: only to what nobody else holds. */
static void fill(struct fixture *fixture, const struct pool_reservation *reservation,
                 const char *values)
{
        assert_true(pool_is_lone(fixture->pool, reservation));
        for (size_t i = 0; i < BLOCKS; i++)
                access_block(fixture, reservation, i, NULL, (unsigned char)values[i]);
}

static void check(struct fixture *fixture, const struct pool_reservation *reservation,
                  const char *values)
{
        for (size_t i = 0; i < BLOCKS; i++) {
                unsigned char value = 0;

                access_block(fixture, reservation, i, &value, 0);
                assert_int_equal(value, values[i]);
        }
        assert_true(pool_get_length(reservation) == BLOCKS * BLOCK);
}

/* Each block of @reservation that has the value of one of @other joins that. */
static void join_equal(struct fixture *fixture, struct pool_reservation *reservation,
                       const char *values, const struct pool_reservation *other,
                       const char *other_values)
{
        struct pool_place places[BLOCKS] = { 0 }, others[BLOCKS];

        places_of(other, others);
        for (size_t i = 0; i < BLOCKS; i++)
                for (size_t k = 0; k < BLOCKS && !places[i].slab; k++)
                        if (values[i] == other_values[k] && (reservation != other || k < i))
                                places[i] = others[k];
        assert_int_equal(pool_join(fixture->pool, reservation, BLOCK, places, BLOCKS), 0);
        check(fixture, reservation, values);
}

#define FIRST  "abcdefghijklmnopqrstuvwx"
#define SECOND "abcdefghiJKLmnopqrstuvwx"
#define MIXED  "xxxxabcdQRSTUVWXabcdefgh"

static void test_equal_blocks_are_kept_once(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE);
        struct pool_reservation *bob = reserve_in(fixture, USER, BOB);
        uint64_t room;

        fill(fixture, alice, FIRST);
        fill(fixture, bob, SECOND);
        join_equal(fixture, bob, SECOND, alice, FIRST);
        check(fixture, alice, FIRST);
        assert_true(info_of(fixture).used == (BLOCKS + 3) * BLOCK);
        assert_true(info_of(fixture).saved == (BLOCKS - 3) * BLOCK);
        assert_false(pool_is_lone(fixture->pool, alice));
        assert_false(pool_is_lone(fixture->pool, bob));
        assert_true(pool_get_owned(fixture->pool, USER, &room) == 4 * SLAB);
        assert_true(room == SLAB - 3 * BLOCK);
        assert_true(pool_available(fixture->pool, OTHER) == 4 * SLAB);

        pool_release(fixture->pool, bob);
        check(fixture, alice, FIRST);
        assert_true(pool_is_lone(fixture->pool, alice));
        assert_true(info_of(fixture).used == BLOCKS * BLOCK);
        assert_true(info_of(fixture).saved == 0);
}

static void test_who_came_first_may_go_first(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE);
        struct pool_reservation *bob = reserve_in(fixture, USER, BOB), *other;

        fill(fixture, alice, FIRST);
        fill(fixture, bob, SECOND);
        assert_int_equal(pool_stamp(fixture->pool, alice, GUEST), 0);
        join_equal(fixture, bob, SECOND, alice, FIRST);
        assert_int_equal(pool_stamp(fixture->pool, bob, GUEST), 0);
        assert_int_equal(pool_check(fixture->pool, alice, GUEST, &(uint32_t){ 0 }), 0);
        pool_release(fixture->pool, alice);

        /* What is free of it is taken and overwritten; what Bob holds is not. */
        other = reserve_in(fixture, USER, CARL);
        fill(fixture, other, MIXED);
        check(fixture, bob, SECOND);
        assert_int_equal(pool_check(fixture->pool, bob, GUEST, &(uint32_t){ 0 }), 0);
        assert_true(pool_is_lone(fixture->pool, bob));
}

static void test_blocks_of_one_that_are_equal_are_one_too(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE);

        fill(fixture, alice, MIXED);
        join_equal(fixture, alice, MIXED, alice, MIXED);
        assert_int_equal(pool_stamp(fixture->pool, alice, GUEST), 0);
        assert_int_equal(pool_check(fixture->pool, alice, GUEST, &(uint32_t){ 0 }), 0);
        assert_true(info_of(fixture).used == 17 * BLOCK);
        assert_false(pool_is_lone(fixture->pool, alice));
        pool_release(fixture->pool, alice);
        assert_true(info_of(fixture).used == 0);
}

static void test_who_parts_writes_to_nobody_elses(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE), *others = NULL;
        struct pool_reservation *bob = reserve_in(fixture, USER, BOB);
        struct pool_place places[BLOCKS];

        fill(fixture, alice, FIRST);
        fill(fixture, bob, MIXED);
        join_equal(fixture, bob, MIXED, alice, FIRST);
        assert_int_equal(pool_part(fixture->pool, alice, 0, BLOCK, BLOCKS, places, &others), 0);
        assert_non_null(others);
        assert_true(pool_is_lone(fixture->pool, alice));
        for (size_t i = 0; i < BLOCKS; i++)
                assert_int_equal(places[i].slab != 0, strchr(MIXED, FIRST[i]) != NULL);
        (void)prepare(fixture, alice, 0);
        fill(fixture, alice, SECOND);
        check(fixture, bob, MIXED);

        /* What has not changed is what it was. */
        for (size_t i = 0; i < BLOCKS; i++)
                if (FIRST[i] != SECOND[i])
                        places[i].slab = 0;
        assert_int_equal(pool_join(fixture->pool, alice, BLOCK, places, BLOCKS), 0);
        pool_release(fixture->pool, others);
        check(fixture, alice, SECOND);
        check(fixture, bob, MIXED);
}

static void test_what_has_no_other_holder_is_not_parted(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE), *others = alice;
        struct pool_place places[BLOCKS];

        assert_int_equal(pool_part(fixture->pool, alice, 0, BLOCK, BLOCKS, places, &others), 0);
        assert_null(others);
        for (size_t i = 0; i < BLOCKS; i++)
                assert_int_equal(places[i].slab, 0);
}

static void test_parting_without_room_changes_nothing(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE), *others;
        struct pool_reservation *bob = reserve_in(fixture, USER, BOB);
        struct pool_place places[BLOCKS];

        fill(fixture, alice, FIRST);
        fill(fixture, bob, FIRST);
        join_equal(fixture, bob, FIRST, alice, FIRST);
        (void)reserve(fixture, CARL, 5 * SLAB);
        assert_int_equal(pool_part(fixture->pool, alice, 0, BLOCK, BLOCKS, places, &others),
                         -ENOSPC);
        assert_null(others);
        check(fixture, alice, FIRST);
        check(fixture, bob, FIRST);
        assert_true(info_of(fixture).saved == BLOCKS * BLOCK);
}

static void test_nobody_joins_another_user_or_what_is_free(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE);
        struct pool_reservation *bob = reserve_in(fixture, OTHER, BOB);
        struct pool_place places[BLOCKS];

        places_of(alice, places);
        assert_int_equal(pool_join(fixture->pool, bob, BLOCK, places, BLOCKS), -EINVAL);
        assert_true(pool_is_lone(fixture->pool, alice));
        pool_release(fixture->pool, bob);

        bob = reserve_in(fixture, USER, BOB);
        pool_release(fixture->pool, alice);
        assert_int_equal(pool_join(fixture->pool, bob, BLOCK, places, BLOCKS), -EINVAL);
        assert_true(pool_is_lone(fixture->pool, bob));
        assert_true(info_of(fixture).saved == 0);
}

static void test_what_is_spare_for_one_is_needed_for_another(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE);
        struct pool_reservation *bob = reserve_in(fixture, USER, BOB);
        unsigned int n = 0;

        fill(fixture, alice, FIRST);
        fill(fixture, bob, SECOND);
        join_equal(fixture, bob, SECOND, alice, FIRST);
        assert_int_equal(pool_stamp(fixture->pool, bob, GUEST), 0);
        assert_int_equal(pool_spare(fixture->pool, alice, 1000, on_given_up, &n), 0);
        assert_int_equal(pool_check(fixture->pool, bob, GUEST, &(uint32_t){ 0 }), 0);
        assert_true(info_of(fixture).used == BLOCKS * BLOCK);
        assert_true(info_of(fixture).spare == 3 * BLOCK);
        assert_true(info_of(fixture).saved == 0);

        (void)reserve(fixture, CARL, 4 * SLAB);
        check(fixture, bob, SECOND);
        pool_set_limit(fixture->pool, SLAB);
        assert_int_equal(n, 1);
        check(fixture, bob, SECOND);
        assert_int_equal(pool_check(fixture->pool, bob, GUEST, &(uint32_t){ 0 }), 0);
        assert_true(info_of(fixture).spare == 0);
}

/* Its stamp would stay behind on what others hold, and be nobody's. */
static void test_who_parts_takes_his_stamps_along(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE), *others;
        struct pool_reservation *bob = reserve_in(fixture, USER, BOB);
        struct pool_place places[BLOCKS];

        fill(fixture, alice, FIRST);
        fill(fixture, bob, SECOND);
        assert_int_equal(pool_stamp(fixture->pool, alice, GUEST), 0);
        join_equal(fixture, bob, SECOND, alice, FIRST);
        assert_int_equal(pool_stamp(fixture->pool, bob, GUEST), 0);
        assert_int_equal(pool_get_common(fixture->pool, bob, BLOCK, BLOCKS, places), BLOCKS - 3);
        assert_int_equal(pool_part(fixture->pool, bob, 0, BLOCK, BLOCKS, places, &others), 0);
        assert_int_equal(pool_check(fixture->pool, bob, GUEST, &(uint32_t){ 0 }), -ESTALE);
        assert_int_equal(pool_check(fixture->pool, alice, GUEST, &(uint32_t){ 0 }), 0);
        pool_release(fixture->pool, others);
        pool_release(fixture->pool, bob);
        assert_int_equal(pool_check(fixture->pool, alice, GUEST, &(uint32_t){ 0 }), 0);
}

#define PAGE  4096u
#define PAGES (SLAB / PAGE)

/* Each holds every other page of one slab, until that has no room for the stamps of one more. */
static void test_nobody_joins_what_has_no_room_for_his_stamps(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *first = NULL, *next = NULL;
        struct pool_place places[PAGES];
        int r = 0;

        pool_set_limit(fixture->pool, 128 * SLAB);
        assert_int_equal(pool_reserve_in(fixture->pool, &first, USER, ALICE, 0, SLAB), 0);
        pool_get_places(first, PAGE, places, PAGES);
        for (size_t i = 1; i < PAGES; i += 2)
                places[i].slab = 0;
        for (unsigned int i = 0; i < 100 && r == 0; i++) {
                assert_int_equal(pool_reserve_in(fixture->pool, &next, USER, BOB, 0, SLAB), 0);
                r = pool_join(fixture->pool, next, PAGE, places, PAGES);
                assert_int_equal(pool_stamp(fixture->pool, next, GUEST), 0);
        }
        assert_int_equal(r, -ENOSPC);
        assert_true(pool_is_lone(fixture->pool, next));
}

/* The next manager, with descriptors of the same slabs. */
static void restart(struct fixture *fixture)
{
        struct pool *former = fixture->pool;

        new_pool(fixture, 8 * SLAB);
        for (uint32_t id = 1; id <= 8; id++)
                if (pool_get_slab(former, id) >= 0)
                        assert_int_equal(
                                pool_adopt(fixture->pool, id, dup(pool_get_slab(former, id))), 0);
        pool_free(former);
        fixture->n_works = 0;
}

struct remembered {
        struct pool_mark mark;
        struct pool_extent extents[BLOCKS];
        size_t n;
};

static void remember(const struct pool_reservation *reservation, const char *vgpu,
                     struct remembered *remembered)
{
        const struct pool_extent *extents = pool_get_extents(reservation, &remembered->n);

        memset(&remembered->mark, 0, sizeof(remembered->mark));
        strcpy(remembered->mark.owner, vgpu);
        remembered->mark.generation = pool_get_generation(reservation);
        remembered->mark.pid = 4711;
        remembered->mark.start_time = 99;
        memcpy(remembered->extents, extents, remembered->n * sizeof(*extents));
}

static int adopt(struct fixture *fixture, const char *owner, const struct remembered *remembered,
                 struct pool_reservation **ret_reservation)
{
        return pool_adopt_reservation(fixture->pool, ret_reservation, owner, &remembered->mark,
                                      remembered->extents, remembered->n);
}

static void test_the_next_manager_counts_anew(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE);
        struct pool_reservation *bob = reserve_in(fixture, USER, BOB);
        struct remembered of_alice, of_bob;

        fill(fixture, alice, FIRST);
        fill(fixture, bob, MIXED);
        assert_int_equal(pool_stamp(fixture->pool, alice, GUEST), 0);
        join_equal(fixture, bob, MIXED, alice, FIRST);
        join_equal(fixture, bob, MIXED, bob, MIXED);
        assert_int_equal(pool_stamp(fixture->pool, bob, GUEST), 0);
        remember(alice, ALICE, &of_alice);
        remember(bob, BOB, &of_bob);

        for (unsigned int order = 0; order < 2; order++) {
                struct pool_info before = info_of(fixture);

                restart(fixture);
                if (order == 0)
                        assert_int_equal(adopt(fixture, USER, &of_alice, &alice), 0);
                assert_int_equal(adopt(fixture, USER, &of_bob, &bob), 0);
                if (order == 1)
                        assert_int_equal(adopt(fixture, USER, &of_alice, &alice), 0);
                check(fixture, alice, FIRST);
                check(fixture, bob, MIXED);
                assert_int_equal(pool_check(fixture->pool, alice, GUEST, &(uint32_t){ 0 }), 0);
                assert_int_equal(pool_check(fixture->pool, bob, GUEST, &(uint32_t){ 0 }), 0);
                assert_true(info_of(fixture).used == before.used);
                assert_true(info_of(fixture).saved == before.saved);
        }
        pool_release(fixture->pool, alice);
        check(fixture, bob, MIXED);
        assert_int_equal(pool_check(fixture->pool, bob, GUEST, &(uint32_t){ 0 }), 0);
        pool_release(fixture->pool, bob);
        assert_true(info_of(fixture).used == 0);
}

/* Two processes of one vGPU, whose slabs are its own and nobody's group's. */
static void test_the_next_manager_finds_what_processes_of_one_vgpu_share(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *one = reserve_in(fixture, ALICE, ALICE);
        struct pool_reservation *two = reserve_in(fixture, ALICE, ALICE);
        struct remembered of_one, of_two;
        struct pool_info before;

        fill(fixture, one, FIRST);
        fill(fixture, two, SECOND);
        assert_int_equal(pool_stamp(fixture->pool, one, GUEST), 0);
        join_equal(fixture, two, SECOND, one, FIRST);
        assert_int_equal(pool_stamp(fixture->pool, two, GUEST), 0);
        before = info_of(fixture);
        remember(one, ALICE, &of_one);
        remember(two, ALICE, &of_two);
        restart(fixture);
        assert_int_equal(adopt(fixture, ALICE, &of_one, &one), 0);
        assert_int_equal(adopt(fixture, ALICE, &of_two, &two), 0);
        check(fixture, one, FIRST);
        check(fixture, two, SECOND);
        assert_true(info_of(fixture).saved == before.saved);
        pool_release(fixture->pool, one);
        check(fixture, two, SECOND);
        assert_int_equal(pool_check(fixture->pool, two, GUEST, &(uint32_t){ 0 }), 0);
}

static void test_nobody_is_adopted_into_what_has_not_his_stamp(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE), *bob = NULL;
        struct remembered of_alice, of_bob;

        assert_int_equal(pool_stamp(fixture->pool, alice, GUEST), 0);
        remember(alice, ALICE, &of_alice);
        of_bob = of_alice;
        strcpy(of_bob.mark.owner, BOB);
        restart(fixture);
        assert_true(pool_has_none_but(fixture->pool, of_alice.extents, of_alice.n, ALICE));
        assert_false(pool_has_none_but(fixture->pool, of_alice.extents, of_alice.n, BOB));
        assert_int_equal(adopt(fixture, USER, &of_alice, &alice), 0);
        assert_int_equal(adopt(fixture, USER, &of_bob, &bob), -ESTALE);
        assert_int_equal(adopt(fixture, USER, &of_alice, &bob), 0); /* the same: it has the stamp */
        assert_int_equal(adopt(fixture, OTHER, &of_alice, &bob), -EINVAL);
        assert_int_equal(adopt(fixture, ALICE, &of_alice, &bob), -EINVAL);
}

static void test_a_slab_that_a_client_had_is_given_to_nobody_of_the_group(void **state)
{
        struct fixture *fixture = *state;
        struct pool_reservation *alice = reserve_in(fixture, USER, ALICE), *bob;
        struct pool_place places[BLOCKS], mine[BLOCKS];

        places_of(alice, places);
        assert_true(pool_share(fixture->pool, places[0].slab, 1000) >= 0);
        pool_release(fixture->pool, alice);
        bob = reserve_in(fixture, USER, BOB);
        places_of(bob, mine);
        for (size_t i = 0; i < BLOCKS; i++)
                assert_int_not_equal(mine[i].slab, places[0].slab);
}

/* Whatever is done, everybody who holds something still has what he wrote. */
#define MANY 6

struct holder {
        struct pool_reservation *reservation;
        char values[BLOCKS + 1];
        bool is_spare;
};

static void note_given_up(void *userdata)
{
        struct holder *holder = userdata;

        holder->reservation = NULL;
        holder->is_spare = false;
}

static unsigned int draw(unsigned int *seed, unsigned int n)
{
        *seed = *seed * 1103515245 + 12345;
        return (*seed >> 16) % n;
}

static void make_values(char *values, unsigned int *seed)
{
        for (size_t i = 0; i < BLOCKS; i++)
                values[i] = (char)('a' + draw(seed, 12));
        values[BLOCKS] = '\0';
}

/* Comes back: parts, changes some blocks, and joins again what has not changed. */
static void come_again(struct fixture *fixture, struct holder *holder, unsigned int *seed)
{
        struct pool_reservation *others = NULL;
        struct pool_place places[BLOCKS];
        char values[BLOCKS + 1];

        if (pool_need(fixture->pool, holder->reservation) < 0)
                return;
        holder->is_spare = false;
        if (pool_part(fixture->pool, holder->reservation, 0, BLOCK, BLOCKS, places, &others) < 0) {
                holder->reservation = pool_release(fixture->pool, holder->reservation);
                return;
        }
        (void)prepare(fixture, holder->reservation, 0);
        assert_true(pool_is_lone(fixture->pool, holder->reservation));
        make_values(values, seed);
        for (size_t i = 0; i < BLOCKS; i++) {
                if (draw(seed, 2) && (!others || places[i].slab)) {
                        values[i] = holder->values[i]; /* has not changed, and is not copied */
                        continue;
                }
                access_block(fixture, holder->reservation, i, NULL, (unsigned char)values[i]);
                places[i].slab = 0;
        }
        if (!others)
                for (size_t i = 0; i < BLOCKS; i++)
                        access_block(fixture, holder->reservation, i, NULL,
                                     (unsigned char)values[i]);
        assert_int_equal(pool_join(fixture->pool, holder->reservation, BLOCK, places, BLOCKS), 0);
        pool_release(fixture->pool, others);
        memcpy(holder->values, values, sizeof(values));
}

static void do_something(struct fixture *fixture, struct holder *holders, unsigned int *seed)
{
        struct holder *holder = &holders[draw(seed, MANY)], *other = &holders[draw(seed, MANY)];

        if (!holder->reservation) {
                if (pool_reserve_in(fixture->pool, &holder->reservation, USER, ALICE, 0,
                                    BLOCKS * BLOCK) < 0)
                        return;
                (void)prepare(fixture, holder->reservation, 0);
                make_values(holder->values, seed);
                fill(fixture, holder->reservation, holder->values);
        } else if (holder->is_spare) {
                come_again(fixture, holder, seed);
        } else if (draw(seed, 4) == 0) {
                holder->reservation = pool_release(fixture->pool, holder->reservation);
        } else if (draw(seed, 3) == 0) {
                holder->is_spare = true;
                assert_int_equal(
                        pool_spare(fixture->pool, holder->reservation, 1000, note_given_up, holder),
                        0);
        } else if (other->reservation) {
                join_equal(fixture, holder->reservation, holder->values, other->reservation,
                           other->values);
                assert_int_equal(pool_stamp(fixture->pool, holder->reservation, GUEST), 0);
        }
}

static void test_whatever_happens_everybody_has_what_he_wrote(void **state)
{
        struct fixture *fixture = *state;

        for (unsigned int seed = 1; seed <= 20; seed++) {
                struct holder holders[MANY] = { 0 };
                unsigned int random = seed;

                pool_set_limit(fixture->pool, (4 + seed % 12) * SLAB);
                for (unsigned int i = 0; i < 120; i++) {
                        do_something(fixture, holders, &random);
                        for (size_t k = 0; k < MANY; k++)
                                if (holders[k].reservation)
                                        check(fixture, holders[k].reservation, holders[k].values);
                }
                for (size_t k = 0; k < MANY; k++)
                        pool_release(fixture->pool, holders[k].reservation);
                assert_true(info_of(fixture).used == 0);
                assert_true(info_of(fixture).spare == 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_equal_blocks_are_kept_once),
                TEST(test_who_came_first_may_go_first),
                TEST(test_blocks_of_one_that_are_equal_are_one_too),
                TEST(test_who_parts_writes_to_nobody_elses),
                TEST(test_what_has_no_other_holder_is_not_parted),
                TEST(test_who_parts_takes_his_stamps_along),
                TEST(test_nobody_joins_what_has_no_room_for_his_stamps),
                TEST(test_parting_without_room_changes_nothing),
                TEST(test_nobody_joins_another_user_or_what_is_free),
                TEST(test_what_is_spare_for_one_is_needed_for_another),
                TEST(test_the_next_manager_counts_anew),
                TEST(test_the_next_manager_finds_what_processes_of_one_vgpu_share),
                TEST(test_nobody_is_adopted_into_what_has_not_his_stamp),
                TEST(test_a_slab_that_a_client_had_is_given_to_nobody_of_the_group),
                TEST(test_whatever_happens_everybody_has_what_he_wrote),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
