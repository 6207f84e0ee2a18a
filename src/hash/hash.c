/* SPDX-License-Identifier: Apache-2.0 */
#include "hash/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/size.h"

_Static_assert(HASH_BLOCK == 2 * MIB && HASH_LANES * HASH_VECTORS * 16 == HASH_BLOCK,
               "the lanes are the block");
_Static_assert(offsetof(struct hash_key, weight) == 4144 && sizeof(struct hash_key) == 45104,
               "as hash.ptx has it");

static int fill(void *place, size_t size)
{
        for (size_t done = 0; done < size;) {
                ssize_t n = getrandom((char *)place + done, size - done, 0);

                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t)n : 0;
        }
        return 0;
}

/* Uniform below the prime: the one number of 61 bits that is not is drawn again. */
static int draw(uint64_t *ret_weight)
{
        int r;

        do {
                r = fill(ret_weight, sizeof(*ret_weight));
                *ret_weight &= HASH_PRIME;
        } while (r == 0 && *ret_weight == HASH_PRIME);
        return r;
}

int hash_key_make(struct hash_key *ret_key)
{
        uint64_t *weights = &ret_key->weight[0][0][0];
        int r = fill(ret_key, sizeof(*ret_key));

        for (size_t i = 0; i < sizeof(ret_key->weight) / sizeof(*weights) && r == 0; i++) {
                weights[i] &= HASH_PRIME;
                if (weights[i] == HASH_PRIME)
                        r = draw(&weights[i]);
        }
        return r;
}

/* Of all lanes, pass by pass: the inner loop runs over the lanes, for the compiler's vectors. */
struct sums {
        uint64_t of[HASH_PASSES][HASH_LANES];
};

static void add_row(uint64_t *sums, const uint32_t *row, const uint32_t *key)
{
        const uint32_t a = key[0], b = key[1], c = key[2], d = key[3];

        for (size_t lane = 0; lane < HASH_LANES; lane++) {
                const uint32_t *word = row + 4 * lane;

                sums[lane] += (uint64_t)(word[0] + a) * (uint32_t)(word[1] + b) +
                              (uint64_t)(word[2] + c) * (uint32_t)(word[3] + d);
        }
}

static void sum_up(struct sums *sums, const struct hash_key *key, const uint32_t *words)
{
        memset(sums, 0, sizeof(*sums));
        for (size_t i = 0; i < HASH_VECTORS; i++)
                for (size_t pass = 0; pass < HASH_PASSES; pass++)
                        add_row(sums->of[pass], words + i * 4 * HASH_LANES,
                                key->nh + 4 * (i + pass));
}

static uint64_t reduce(unsigned __int128 n)
{
        uint64_t r = (uint64_t)(n & HASH_PRIME) + (uint64_t)(n >> 61);

        r = (r & HASH_PRIME) + (r >> 61);
        return r >= HASH_PRIME ? r - HASH_PRIME : r;
}

/* The 256 bits of a lane, in words that are all below the prime. */
static void cut(uint64_t words[HASH_WORDS], const struct sums *sums, size_t lane)
{
        words[HASH_WORDS - 1] = 0;
        for (size_t pass = 0; pass < HASH_PASSES; pass++) {
                words[pass] = sums->of[pass][lane] >> 4;
                words[HASH_WORDS - 1] |= (sums->of[pass][lane] & 15) << (4 * pass);
        }
}

struct hash_value hash_block(const struct hash_key *key, const void *block)
{
        struct hash_value value = { { 0, 0 } };
        uint64_t words[HASH_WORDS];
        struct sums sums;

        sum_up(&sums, key, block);
        for (size_t lane = 0; lane < HASH_LANES; lane++) {
                cut(words, &sums, lane);
                for (size_t half = 0; half < 2; half++) {
                        unsigned __int128 sum = value.half[half];

                        for (size_t i = 0; i < HASH_WORDS; i++)
                                sum += (unsigned __int128)words[i] * key->weight[half][i][lane];
                        value.half[half] = reduce(sum);
                }
        }
        return value;
}
