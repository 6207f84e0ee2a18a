/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/stock.h"

static struct stock stock;
static struct stock_mark *unused_marks;
static uint64_t next_moment;
static CUdeviceptr next_address;

/* Streams are told apart by their handles only. */
static const char handles[8];

static struct stock_key key(int stream)
{
        return (struct stock_key){ .stream = &handles[stream] };
}

static struct stock_mark *mark(int stream)
{
        struct stock_mark *mark = calloc(1, sizeof(*mark));

        assert_non_null(mark);
        *mark = (struct stock_mark){ .home = &unused_marks, .key = key(stream), .n_users = 1 };
        mark->begin = ++next_moment;
        mark->end = ++next_moment;
        return mark;
}

static int setup(void **state)
{
        (void)state;
        stock = (struct stock){ .used = 0 };
        next_address = GIB;
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        while (stock.chunks) {
                struct stock_chunk *chunk = stock.chunks;

                stock_take_chunk(&stock, chunk);
                free(chunk);
        }
        while (unused_marks) {
                struct stock_mark *next = unused_marks->next;

                free(unused_marks);
                unused_marks = next;
        }
        return 0;
}

static struct stock_range *add(uint64_t bytes)
{
        struct stock_range *range = stock_add(&stock, NULL, next_address, bytes);

        assert_non_null(range);
        next_address += stock_chunk_size(bytes);
        return range;
}

/* In the order of @stream; the mark is still the caller's to tell that it is done. */
static struct stock_mark *free_in(int stream, struct stock_range *range)
{
        struct stock_mark *of = mark(stream);

        stock_give_back(&stock, range, of);
        stock_mark_drop(of);
        return of;
}

static struct stock_range *take_in(int stream, uint64_t bytes, unsigned int how)
{
        struct stock_key of = key(stream);
        struct stock_mark *wait;
        struct stock_range *range = stock_take(&stock, bytes, &of, how, &wait);

        if (!(how & STOCK_AFTER_OTHERS))
                assert_null(wait);
        stock_mark_drop(wait);
        return range;
}

static void reap_all(uint64_t keep)
{
        struct stock_chunk *chunk;

        while ((chunk = stock_reap(&stock, keep)))
                free(chunk);
}

static void test_a_stream_may_have_at_once_what_it_has_freed_and_others_may_not(void **state)
{
        struct stock_range *range = add(3 * MIB);
        uint64_t address = range->address;
        struct stock_mark *freed = free_in(1, range), *later;

        (void)state;
        assert_null(take_in(2, 3 * MIB, STOCK_AT_ONCE));
        range = take_in(1, 4 * MIB, STOCK_AT_ONCE);
        assert_non_null(range);
        assert_int_equal(range->address, address);
        assert_int_equal(freed->n_users, 1); /* should it be given back without another one */
        later = free_in(1, range);
        assert_int_equal(freed->n_users, 0);
        later->is_done = true;
        stock_settle(&stock);
        assert_non_null(take_in(2, 3 * MIB, STOCK_AT_ONCE));
}

static void test_who_takes_what_another_has_freed_is_told_what_to_wait_for(void **state)
{
        const struct stock_key second = key(2);
        struct stock_mark *freed = free_in(1, add(3 * MIB)), *wait;

        (void)state;
        assert_non_null(stock_take(&stock, 3 * MIB, &second, STOCK_AFTER_OTHERS, &wait));
        assert_ptr_equal(wait, freed);
        assert_int_equal(wait->n_users, 2);
        stock_mark_drop(wait);
}

static void test_a_stream_that_is_no_more_has_nothing_at_once(void **state)
{
        const struct stock_key none = { .stream = NULL };
        struct stock_mark *wait;

        (void)state;
        (void)free_in(1, add(2 * MIB));
        stock_drop_stream(&stock, &handles[1]);
        assert_null(take_in(1, 2 * MIB, STOCK_AT_ONCE));
        assert_null(stock_take(&stock, 2 * MIB, &none, STOCK_AT_ONCE, &wait));
}

static void test_neighbours_that_one_stream_has_freed_become_one(void **state)
{
        struct stock_range *all = add(8 * MIB), *half[2], *whole;
        struct stock_mark *late;

        (void)state;
        free_in(1, all);
        half[0] = take_in(1, 4 * MIB, STOCK_AT_ONCE);
        half[1] = take_in(1, 4 * MIB, STOCK_AT_ONCE);
        assert_int_equal(half[0]->address + 4 * MIB, half[1]->address);
        free_in(1, half[1]);
        late = free_in(1, half[0]);
        assert_int_equal(late->n_users, 1);
        whole = take_in(1, 8 * MIB, STOCK_AT_ONCE);
        assert_non_null(whole);
        assert_int_equal(whole->size, 8 * MIB);
}

static void test_neighbours_that_two_threads_have_freed_at_the_same_time_stay_two(void **state)
{
        struct stock_range *all = add(8 * MIB), *half[2];
        struct stock_mark *freed[2] = { mark(1), mark(1) };

        (void)state;
        freed[0]->end = freed[1]->begin; /* any of them may be the later one */
        free_in(1, all);
        half[0] = take_in(1, 4 * MIB, STOCK_AT_ONCE);
        half[1] = take_in(1, 4 * MIB, STOCK_AT_ONCE);
        for (int i = 0; i < 2; i++) {
                stock_give_back(&stock, half[i], freed[i]);
                stock_mark_drop(freed[i]);
        }
        assert_null(take_in(1, 8 * MIB, STOCK_AFTER_OTHERS));
        freed[0]->is_done = freed[1]->is_done = true;
        stock_settle(&stock);
        assert_non_null(take_in(1, 8 * MIB, STOCK_AT_ONCE));
}

static void test_neighbours_of_two_streams_become_one_when_both_are_done(void **state)
{
        struct stock_range *all = add(8 * MIB), *half[2];
        struct stock_mark *freed[2];

        (void)state;
        free_in(1, all);
        half[0] = take_in(1, 4 * MIB, STOCK_AT_ONCE);
        half[1] = take_in(1, 4 * MIB, STOCK_AT_ONCE);
        freed[0] = free_in(1, half[0]);
        freed[1] = free_in(2, half[1]);
        assert_null(take_in(1, 8 * MIB, STOCK_AFTER_OTHERS));
        freed[1]->is_done = true;
        stock_settle(&stock);
        assert_null(take_in(2, 8 * MIB, STOCK_AT_ONCE));
        freed[0]->is_done = true;
        stock_settle(&stock);
        assert_non_null(take_in(2, 8 * MIB, STOCK_AT_ONCE));
}

static void test_a_chunk_leaves_when_all_of_it_is_free_and_done(void **state)
{
        struct stock_range *range = add(1000), *other = take_in(1, 5000, STOCK_AT_ONCE);
        struct stock_mark *last;

        (void)state;
        assert_ptr_equal(range->chunk, other->chunk);
        assert_int_equal(stock.reserved, 2 * MIB);
        assert_int_equal(stock.used, 1024 + 5120);
        stock_give_back(&stock, range, NULL);
        assert_null(stock_reap(&stock, 0));
        last = free_in(1, other);
        assert_null(stock_reap(&stock, 0));
        last->is_done = true;
        stock_settle(&stock);
        assert_int_equal(stock.n_unused, 1);
        assert_null(stock_reap(&stock, 2 * MIB));
        reap_all(2 * MIB - 1);
        assert_int_equal(stock.reserved, 0);
        assert_int_equal(stock.reserved_high, 2 * MIB);
        assert_int_equal(stock.used_high, 1024 + 5120);
}

static void test_small_and_large_ones_do_not_mix_and_little_is_wasted(void **state)
{
        struct stock_range *large = add(64 * MIB);

        (void)state;
        stock_give_back(&stock, large, NULL);
        assert_null(take_in(1, 100, STOCK_AT_ONCE | STOCK_WASTEFUL));
        assert_null(take_in(1, 4 * MIB, STOCK_AT_ONCE));
        assert_non_null(take_in(1, 4 * MIB, STOCK_WASTEFUL));
        assert_non_null(take_in(1, 30 * MIB, STOCK_AT_ONCE));
}

static void test_a_chunk_that_must_leave_is_not_used_again(void **state)
{
        struct stock_range *range = add(4 * MIB);

        (void)state;
        stock_hurry(range->chunk);
        stock_give_back(&stock, range, NULL);
        assert_null(take_in(1, 4 * MIB, STOCK_AFTER_OTHERS | STOCK_WASTEFUL));
        reap_all(UINT64_MAX);
        assert_int_equal(stock.reserved, 0);
}

#define LIVE  200
#define STEPS 20000

struct live {
        struct stock_range *range;
        uint64_t bytes;
};

static void check_apart(const struct live *live, size_t n)
{
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; live[i].range && j < i; j++)
                        if (live[j].range)
                                assert_true(live[i].range->address + live[i].bytes <=
                                                    live[j].range->address ||
                                            live[j].range->address + live[j].bytes <=
                                                    live[i].range->address);
}

static void check_sums(const struct live *live)
{
        uint64_t used = 0, n_unused = 0;

        for (size_t i = 0; i < LIVE; i++)
                if (live[i].range)
                        used += (live[i].bytes + STOCK_GRANULE - 1) / STOCK_GRANULE * STOCK_GRANULE;
        assert_int_equal(used, stock.used);
        for (const struct stock_chunk *it = stock.chunks; it; it = it->next)
                n_unused += !it->first->requested && !it->first->mark && !it->first->behind;
        assert_int_equal(n_unused, stock.n_unused);
}

#define MANY 50000

/* Looking at each that is too small would take minutes. */
static void test_an_allocation_beside_many_free_ranges_does_not_look_at_them(void **state)
{
        static struct stock_range *small[2 * MANY];
        struct stock_mark *none;
        struct stock_key of = key(1);

        (void)state;
        for (size_t i = 0; i < 2 * MANY; i++) {
                small[i] = stock_take(&stock, 1024, &of, STOCK_AT_ONCE, &none);
                if (!small[i])
                        small[i] = add(1024);
        }
        for (size_t i = 0; i < 2 * MANY; i += 2)
                stock_give_back(&stock, small[i], NULL);
        for (size_t i = 0; i < MANY; i++) {
                struct stock_range *range = stock_take(&stock, 1536, &of, STOCK_AT_ONCE, &none);

                assert_non_null(range ? range : add(1536));
        }
        assert_int_equal(stock.used, (uint64_t)MANY * (1024 + 1536));
}

/* As on the device: what a stream has freed is done in its order. */
static void finish_some(unsigned int random)
{
        for (struct stock_chunk *chunk = stock.chunks; chunk; chunk = chunk->next)
                for (struct stock_range *it = chunk->first; it; it = it->behind)
                        if (it->mark && it->mark->key.stream == &handles[random % 4])
                                it->mark->is_done = true;
        stock_settle(&stock);
}

static void test_random_use_never_overlaps_and_ends_empty(void **state)
{
        static struct live live[LIVE];
        unsigned int seed = 1;

        (void)state;
        for (int step = 0; step < STEPS; step++) {
                unsigned int random = (unsigned int)rand_r(&seed);
                struct live *one = &live[random % LIVE];
                int stream = (int)(random >> 8) % 4;

                if (one->range) {
                        free_in(stream, one->range);
                        one->range = NULL;
                } else {
                        one->bytes = random % 3 ? 1 + random % 50000 : 1 + random % (9 * MIB);
                        one->range = take_in(stream, one->bytes, random >> 12 & 3);
                        if (!one->range)
                                one->range = add(one->bytes);
                }
                if (step % 17 == 0)
                        finish_some(random >> 5);
                if (step % 500 == 0) {
                        reap_all(0);
                        check_apart(live, LIVE);
                        check_sums(live);
                }
        }
        for (size_t i = 0; i < LIVE; i++)
                if (live[i].range)
                        stock_give_back(&stock, live[i].range, NULL);
        for (unsigned int i = 0; i < 4; i++)
                finish_some(i);
        reap_all(0);
        assert_int_equal(stock.used, 0);
        assert_int_equal(stock.reserved, 0);
        assert_null(stock.chunks);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_a_stream_may_have_at_once_what_it_has_freed_and_others_may_not),
                TEST(test_who_takes_what_another_has_freed_is_told_what_to_wait_for),
                TEST(test_a_stream_that_is_no_more_has_nothing_at_once),
                TEST(test_neighbours_that_one_stream_has_freed_become_one),
                TEST(test_neighbours_that_two_threads_have_freed_at_the_same_time_stay_two),
                TEST(test_neighbours_of_two_streams_become_one_when_both_are_done),
                TEST(test_a_chunk_leaves_when_all_of_it_is_free_and_done),
                TEST(test_small_and_large_ones_do_not_mix_and_little_is_wasted),
                TEST(test_an_allocation_beside_many_free_ranges_does_not_look_at_them),
                TEST(test_a_chunk_that_must_leave_is_not_used_again),
                TEST(test_random_use_never_overlaps_and_ends_empty),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
