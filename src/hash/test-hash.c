/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "hash/hash.h"

static struct hash_key key;

static int set_up(void **state)
{
        assert_int_equal(hash_key_make(&key), 0);
        *state = aligned_alloc(16, HASH_BLOCK);
        assert_non_null(*state);
        for (size_t i = 0; i < HASH_BLOCK; i++)
                ((unsigned char *)*state)[i] = (unsigned char)(i * 2654435761u >> 13);
        return 0;
}

static int tear_down(void **state)
{
        free(*state);
        return 0;
}

static bool is_below_prime(const struct hash_value *value)
{
        return value->half[0] < HASH_PRIME && value->half[1] < HASH_PRIME;
}

static void test_equal_blocks_have_equal_hashes(void **state)
{
        CLEANUP(freep) void *copy = aligned_alloc(16, HASH_BLOCK);
        struct hash_value a = hash_block(&key, *state), b;

        assert_non_null(copy);
        memcpy(copy, *state, HASH_BLOCK);
        b = hash_block(&key, copy);
        assert_true(hash_is_equal(&a, &b));
        assert_true(is_below_prime(&a));
}

/* In the first and the last vector, at the borders of lanes and rows, and in between. */
static void test_each_bit_counts(void **state)
{
        static const size_t places[] = { 0,      1,       15,      16,      8191,    8192,   8207,
                                         524288, 1048576, 1234567, 2097136, 2097150, 2097151 };
        unsigned char *block = *state;
        const struct hash_value before = hash_block(&key, block);

        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                struct hash_value value;

                block[places[i]] ^= (unsigned char)(1u << i % 8);
                value = hash_block(&key, block);
                assert_true(value.half[0] != before.half[0]);
                assert_true(value.half[1] != before.half[1]);
                block[places[i]] ^= (unsigned char)(1u << i % 8);
        }
}

static void swap(unsigned char *block, size_t a, size_t b, size_t size)
{
        unsigned char held[8192];

        memcpy(held, block + a, size);
        memcpy(block + a, block + b, size);
        memcpy(block + b, held, size);
}

/* What a plain sum would not see. */
static void test_order_counts(void **state)
{
        static const struct {
                size_t a, b, size;
        } swaps[] = {
                { 0, 16, 16 }, { 0, 8192, 16 }, { 0, 8192, 8192 }, { 4, 12, 4 }, { 0, 8, 4 }
        };
        unsigned char *block = *state;
        const struct hash_value before = hash_block(&key, block);

        for (size_t i = 0; i < sizeof(swaps) / sizeof(swaps[0]); i++) {
                struct hash_value value;

                swap(block, swaps[i].a, swaps[i].b, swaps[i].size);
                value = hash_block(&key, block);
                assert_false(hash_is_equal(&value, &before));
                swap(block, swaps[i].a, swaps[i].b, swaps[i].size);
        }
}

static void test_another_key_gives_another_hash(void **state)
{
        struct hash_key other;
        struct hash_value a = hash_block(&key, *state), b;

        assert_int_equal(hash_key_make(&other), 0);
        b = hash_block(&other, *state);
        assert_true(a.half[0] != b.half[0]);
        assert_true(a.half[1] != b.half[1]);
}

static void test_weights_are_below_the_prime(void **state)
{
        const uint64_t *weights = &key.weight[0][0][0];
        (void)state;

        for (size_t i = 0; i < sizeof(key.weight) / sizeof(*weights); i++)
                assert_true(weights[i] < HASH_PRIME);
}

/* Straight from the definition, with another order of the sums: what the fast code must equal. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
        uint64_t product = 0;

        for (; b; b >>= 1, a = 2 * a % HASH_PRIME)
                if (b & 1)
                        product = (product + a) % HASH_PRIME;
        return product;
}

static void find_words(uint64_t words[HASH_WORDS], const uint32_t *block, size_t lane)
{
        memset(words, 0, HASH_WORDS * sizeof(*words));
        for (size_t pass = 0; pass < HASH_PASSES; pass++) {
                uint64_t sum = 0;

                for (size_t i = 0; i < 2 * HASH_VECTORS; i++) {
                        const uint32_t *word =
                                block + 4 * (HASH_LANES * (i / 2) + lane) + 2 * (i % 2);

                        sum += (uint64_t)(word[0] + key.nh[4 * pass + 2 * i]) *
                               (uint32_t)(word[1] + key.nh[4 * pass + 2 * i + 1]);
                }
                words[pass] = sum / 16;
                words[HASH_WORDS - 1] += sum % 16 << 4 * pass;
        }
}

static void test_it_is_what_the_definition_says(void **state)
{
        const struct hash_value value = hash_block(&key, *state);
        uint64_t words[HASH_WORDS], sum[2] = { 0, 0 };

        for (size_t lane = HASH_LANES; lane-- > 0;) {
                find_words(words, *state, lane);
                for (size_t i = 0; i < HASH_WORDS; i++)
                        for (size_t half = 0; half < 2; half++)
                                sum[half] = (sum[half] +
                                             multiply(words[i], key.weight[half][i][lane])) %
                                            HASH_PRIME;
        }
        assert_true(value.half[0] == sum[0]);
        assert_true(value.half[1] == sum[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_equal_blocks_have_equal_hashes),
                cmocka_unit_test(test_each_bit_counts),
                cmocka_unit_test(test_order_counts),
                cmocka_unit_test(test_another_key_gives_another_hash),
                cmocka_unit_test(test_weights_are_below_the_prime),
                cmocka_unit_test(test_it_is_what_the_definition_says),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
