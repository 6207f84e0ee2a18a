/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "gate/block.h"

static int setup(void **state)
{
        *state = block_new();
        return *state ? 0 : -1;
}

static int teardown(void **state)
{
        free(*state);
        return 0;
}

static void test_a_block_holds_as_many_small_ones_as_fit_and_no_more(void **state)
{
        struct block *block = *state;
        uint32_t offset;

        for (uint32_t i = 0; i < BLOCK_GRANULES; i++) {
                assert_true(block_take(block, 1 + i % BLOCK_GRANULE, &offset));
                assert_int_equal(offset, i * BLOCK_GRANULE);
        }
        assert_false(block_take(block, 1, &offset));
        assert_int_equal(block->n_allocations, BLOCK_GRANULES);
}

static void test_the_first_gap_that_is_large_enough_is_taken(void **state)
{
        struct block *block = *state;
        uint32_t a, b, c, offset;

        assert_true(block_take(block, 1000, &a));
        assert_true(block_take(block, 5000, &b));
        assert_true(block_take(block, 1000, &c));
        block_give_back(block, b);
        assert_true(block_take(block, 5121, &offset)); /* one granule more than the gap */
        assert_true(offset > c);
        assert_true(block_take(block, 5120, &offset));
        assert_int_equal(offset, b);
}

static void test_neighbours_that_are_given_back_become_one_gap(void **state)
{
        struct block *block = *state;
        uint32_t offset[8], whole;

        for (int i = 0; i < 8; i++)
                assert_true(block_take(block, BLOCK_SIZE / 8, &offset[i]));
        assert_false(block_take(block, 1, &whole));
        block_give_back(block, offset[3]);
        assert_false(block_take(block, BLOCK_SIZE / 4, &whole));
        block_give_back(block, offset[4]);
        assert_true(block_take(block, BLOCK_SIZE / 4, &whole));
        assert_int_equal(whole, offset[3]);
}

static void test_what_is_asked_for_is_what_is_found_and_padding_belongs_to_nobody(void **state)
{
        struct block *block = *state;
        uint32_t first, second, start, bytes;

        assert_true(block_take(block, 700, &first));
        assert_true(block_take(block, 100000, &second));
        assert_true(block_find(block, first + 699, &start, &bytes));
        assert_int_equal(start, first);
        assert_int_equal(bytes, 700);
        assert_false(block_find(block, first + 700, &start, &bytes));
        assert_true(block_find(block, second + 99999, &start, &bytes));
        assert_int_equal(start, second);
        assert_int_equal(bytes, 100000);
        assert_false(block_find(block, BLOCK_SIZE, &start, &bytes));
        block_give_back(block, first);
        assert_false(block_find(block, first, &start, &bytes));
}

static void test_nothing_and_too_much_are_refused(void **state)
{
        uint32_t offset;

        assert_false(block_take(*state, 0, &offset));
        assert_false(block_take(*state, BLOCK_SIZE + 1, &offset));
        assert_true(block_take(*state, BLOCK_SIZE, &offset));
}

/* Against the plainest bookkeeping there is: an owner for each granule. */
static void test_random_use_never_overlaps_and_ends_empty(void **state)
{
        struct block *block = *state;
        static unsigned short owner[BLOCK_GRANULES];
        static uint32_t offset[1000], bytes[1000];
        uint32_t n_live = 0;

        memset(owner, 0, sizeof(owner));
        memset(bytes, 0, sizeof(bytes));
        srand(7);
        for (int round = 0; round < 20000; round++) {
                uint32_t i = (uint32_t)rand() % 1000;
                uint32_t first = offset[i] / BLOCK_GRANULE,
                         n = (bytes[i] + BLOCK_GRANULE - 1) / BLOCK_GRANULE;

                if (bytes[i]) {
                        for (uint32_t g = first; g < first + n; g++) {
                                assert_int_equal(owner[g], i + 1);
                                owner[g] = 0;
                        }
                        block_give_back(block, offset[i]);
                        bytes[i] = 0;
                        n_live--;
                        continue;
                }
                bytes[i] = 1 + (uint32_t)rand() % (rand() % 10 ? 2000 : 60000);
                if (!block_take(block, bytes[i], &offset[i])) {
                        bytes[i] = 0;
                        continue;
                }
                n_live++;
                first = offset[i] / BLOCK_GRANULE;
                n = (bytes[i] + BLOCK_GRANULE - 1) / BLOCK_GRANULE;
                for (uint32_t g = first; g < first + n; g++) {
                        assert_int_equal(owner[g], 0);
                        owner[g] = (unsigned short)(i + 1);
                }
                assert_int_equal(block->n_allocations, n_live);
        }
        for (uint32_t i = 0; i < 1000; i++)
                if (bytes[i])
                        block_give_back(block, offset[i]);
        assert_int_equal(block->n_free, BLOCK_GRANULES);
        assert_int_equal(block->n_allocations, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_a_block_holds_as_many_small_ones_as_fit_and_no_more),
                TEST(test_the_first_gap_that_is_large_enough_is_taken),
                TEST(test_neighbours_that_are_given_back_become_one_gap),
                TEST(test_what_is_asked_for_is_what_is_found_and_padding_belongs_to_nobody),
                TEST(test_nothing_and_too_much_are_refused),
                TEST(test_random_use_never_overlaps_and_ends_empty),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
