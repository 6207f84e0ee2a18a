/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest of which some changes: GIB GiB in allocations of 512 MiB. Each block of 2 MiB is filled with
 * its number, and has one word that counts how often the block was changed.
 *
 *     clean-guest GIB [SEED]
 *
 * Guests are the same when they begin. What two of them change is another with another seed.
 *
 * Prints "ready" when filled. Each line on standard input is a command:
 *
 *     change PERCENT   of the blocks, chosen at random; prints "changed N"
 *     check            compares every word; prints "ok" or "bad N", the number of blocks
 *
 * Ends at end of file.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/guests/driver.h"

#define BLOCK  ((size_t)2 << 20)
#define PIECE  ((size_t)512 << 20)
#define PIECES 512
#define EACH   (PIECE / BLOCK)

static CUdeviceptr piece[PIECES];
static unsigned int count[PIECES * EACH];
static unsigned int seed;
static unsigned int words[PIECE / sizeof(unsigned int)];

/* Somewhere else in each block. */
static size_t place_of(size_t block)
{
        return block * 2654435761u % (BLOCK / sizeof(words[0]));
}

static void set_count(size_t block, unsigned int value)
{
        size_t at = block % EACH * BLOCK + place_of(block) * sizeof(words[0]);

        count[block] = value;
        must(DRIVER(cuMemsetD32_v2)(piece[block / EACH] + at, value, 1));
}

static void change(size_t n_blocks, double percent)
{
        size_t n = 0;

        for (size_t i = 0; i < n_blocks; i++)
                if ((double)random() < percent / 100 * (double)RAND_MAX) {
                        set_count(i, count[i] + 1 + 1000 * seed);
                        n++;
                }
        must(DRIVER(cuCtxSynchronize)());
        printf("changed %zu\n", n);
}

/* Without branches in the loop: 32 GiB are compared in seconds. */
static bool is_bad(unsigned int *word, size_t block)
{
        const unsigned int expected = 0x5000u + (unsigned int)block;
        bool is_counted = word[place_of(block)] == count[block];
        unsigned int difference = 0;

        word[place_of(block)] = expected;
        for (size_t i = 0; i < BLOCK / sizeof(*word); i++)
                difference |= word[i] ^ expected;
        return !is_counted || difference != 0;
}

static size_t count_bad(size_t n_pieces)
{
        size_t bad = 0;

        for (size_t i = 0; i < n_pieces; i++) {
                must(DRIVER(cuMemcpyDtoH_v2)(words, piece[i], PIECE));
                for (size_t k = 0; k < EACH; k++)
                        bad += is_bad(words + k * (BLOCK / sizeof(words[0])), i * EACH + k);
        }
        return bad;
}

static void fill(size_t n_pieces)
{
        for (size_t i = 0; i < n_pieces; i++) {
                must(DRIVER(cuMemAlloc_v2)(&piece[i], PIECE));
                for (size_t k = 0; k < EACH; k++) {
                        must(DRIVER(cuMemsetD32_v2)(piece[i] + k * BLOCK,
                                                    (unsigned int)(0x5000u + i * EACH + k),
                                                    BLOCK / sizeof(words[0])));
                        set_count(i * EACH + k, 1);
                }
        }
        must(DRIVER(cuCtxSynchronize)());
}

int main(int argc, char **argv)
{
        size_t n = argc > 1 ? (size_t)(strtod(argv[1], NULL) * 2) : 0;
        CUcontext context;
        char line[64];
        CUdevice gpu;

        if (n == 0 || n > PIECES) {
                fprintf(stderr, "usage: clean-guest GIB [SEED] (0.5 to %d)\n", PIECES / 2);
                return 2;
        }
        seed = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
        srandom(seed + 1);
        setvbuf(stdout, NULL, _IOLBF, 0);
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&gpu, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, gpu));
        must(DRIVER(cuCtxSetCurrent)(context));
        fill(n);
        puts("ready");
        while (fgets(line, sizeof(line), stdin)) {
                size_t bad;

                if (strncmp(line, "change ", 7) == 0) {
                        change(n * EACH, strtod(line + 7, NULL));
                        continue;
                }
                bad = count_bad(n);
                if (bad > 0)
                        printf("bad %zu\n", bad);
                else
                        puts("ok");
        }
        return 0;
}
