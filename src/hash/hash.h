/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HASH_HASH_H
#define HASH_HASH_H

/*
 * The keyed hash that tells whether a block of device memory has changed.
 *
 * It is universal: for any two different blocks, whatever they are, at most one key in 2^120 gives
 * both the same hash. The key is random and no guest knows it, so no guest can choose contents that
 * go unnoticed. A checksum, or a fast hash without such a bound, would not do: a block that is
 * wrongly taken for unchanged is memory that somebody loses.
 *
 * A block is cut into lanes, one for each thread of the GPU: lane t has the vectors (16 bytes)
 * t, t + 512, t + 1024, ...
 *
 *   1. NH, as in UMAC, four passes with the key shifted by a vector each (Toeplitz): each lane becomes
 *      four numbers of 64 bits. Two different lanes agree in all four with a chance of 2^-128.
 *   2. The 256 bits of a lane, as five words below 2^60, are multiplied with random weights and all
 *      summed up modulo p = 2^61 - 1; twice, with independent weights. Two blocks that differ after
 *      the first step agree in both sums with a chance of p^-2, less than 2^-121.
 *
 * hash.c is the reference, and what simulated devices run; hash.ptx does the same on a real device.
 */

#include <stddef.h>
#include <stdint.h>

#define HASH_BLOCK   ((uint64_t)2 << 20)
#define HASH_LANES   512u
#define HASH_VECTORS 256u /* of a lane */
#define HASH_PASSES  4u
#define HASH_WORDS   5u
#define HASH_PRIME   (((uint64_t)1 << 61) - 1)

/* hash.ptx knows this layout. */
struct hash_key {
        uint32_t nh[4 * (HASH_VECTORS + HASH_PASSES - 1)];
        uint64_t weight[2][HASH_WORDS][HASH_LANES]; /* below HASH_PRIME */
};

struct hash_value {
        uint64_t half[2]; /* below HASH_PRIME */
};

/* What no block has. */
#define HASH_UNKNOWN ((struct hash_value){ { UINT64_MAX, UINT64_MAX } })

/* hash_key_make() - a new one, from the kernel's random numbers. Errors: getrandom(). */
int hash_key_make(struct hash_key *ret_key);

/* hash_block() - of the HASH_BLOCK bytes at @block, which is aligned to 16. */
struct hash_value hash_block(const struct hash_key *key, const void *block);

static inline int hash_is_equal(const struct hash_value *a, const struct hash_value *b)
{
        return a->half[0] == b->half[0] && a->half[1] == b->half[1];
}

/*
 * hash_get_kernel() - the text of hash.ptx for cuModuleLoadData(). Its kernel
 * hash_blocks(u64 blocks, u64 n, u64 key, u64 values) hashes @n blocks that lie one behind the other,
 * with HASH_LANES threads and any number of thread blocks.
 */
const char *hash_get_kernel(void);
#define HASH_KERNEL "hash_blocks"

#endif
