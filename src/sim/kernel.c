/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that the simulated devices have. */

#include "sim/kernel.h"

#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "hash/hash.h"

/* 4 MiB: about a millisecond of a slow machine. */
#define WORDS_PER_SLICE ((uint64_t)1 << 20)

#define NANOSECONDS_PER_SLICE 1000000u

static uint32_t *words(const struct kernel_arguments *arguments)
{
        return (uint32_t *)(uintptr_t)arguments->value[0];
}

static uint64_t slice_end(const struct kernel_arguments *arguments, uint64_t done)
{
        uint64_t left = arguments->value[2] - done;

        return done + (left < WORDS_PER_SLICE ? left : WORDS_PER_SLICE);
}

static uint64_t count_words(const struct kernel_arguments *arguments)
{
        return arguments->value[2];
}

static uint64_t fill(const struct kernel_arguments *arguments, uint64_t done)
{
        uint64_t end = slice_end(arguments, done);

        for (; done < end; done++)
                words(arguments)[done] = (uint32_t)arguments->value[1];
        return end;
}

static uint64_t add(const struct kernel_arguments *arguments, uint64_t done)
{
        uint64_t end = slice_end(arguments, done);

        for (; done < end; done++)
                words(arguments)[done] += (uint32_t)arguments->value[1];
        return end;
}

static uint64_t count_nanoseconds(const struct kernel_arguments *arguments)
{
        return arguments->value[0] * 1000;
}

/* Sleeps: what is busy is the simulated device, not a processor of the machine. */
static uint64_t busy(const struct kernel_arguments *arguments, uint64_t done)
{
        uint64_t left = count_nanoseconds(arguments) - done, begin = clock_now(CLOCK_MONOTONIC);
        struct timespec slice = { 0 };

        slice.tv_nsec = left < NANOSECONDS_PER_SLICE ? (long)left : NANOSECONDS_PER_SLICE;
        (void)nanosleep(&slice, NULL);
        return done + (clock_now(CLOCK_MONOTONIC) - begin);
}

/* Between two looks; the device is held meanwhile, as a kernel that spins holds it. */
#define MEET_NAP_NS 20000

static uint64_t count_one(const struct kernel_arguments *arguments)
{
        (void)arguments;
        return 1;
}

static uint64_t never(const struct kernel_arguments *arguments)
{
        (void)arguments;
        return UINT64_MAX;
}

/* What it returns is what the word has to reach, which is not 0; then, that it is done. */
static uint64_t meet(const struct kernel_arguments *arguments, uint64_t done)
{
        const struct timespec nap = { .tv_nsec = MEET_NAP_NS };
        _Atomic uint32_t *word = (_Atomic uint32_t *)(uintptr_t)arguments->value[0];
        uint32_t n = (uint32_t)arguments->value[1];

        if (n == 0)
                return UINT64_MAX;
        if (done == 0)
                done = ((uint64_t)atomic_fetch_add(word, 1) / n + 1) * n;
        if ((int32_t)(atomic_load(word) - (uint32_t)done) >= 0)
                return UINT64_MAX;
        (void)nanosleep(&nap, NULL);
        return done;
}

static uint64_t one_slice(const struct kernel_arguments *arguments, uint64_t done)
{
        (void)arguments;
        return done + 1;
}

static uint64_t count_blocks(const struct kernel_arguments *arguments)
{
        return arguments->value[1];
}

/* Half a millisecond each. */
static uint64_t hash_next(const struct kernel_arguments *arguments, uint64_t done)
{
        const char *blocks = (const char *)(uintptr_t)arguments->value[0];
        const struct hash_key *key = (const struct hash_key *)(uintptr_t)arguments->value[2];
        struct hash_value *values = (struct hash_value *)(uintptr_t)arguments->value[3];

        values[done] = hash_block(key, blocks + done * HASH_BLOCK);
        return done + 1;
}

/*
 * The microseconds are 32 bits: who launches with `int` says no more, and the low half of a 64-bit
 * number is the same number up to 71 minutes.
 */
static const struct kernel kernels[KERNEL_COUNT] = {
        { "fill", 3, { 8, 4, 8 }, fill, count_words, count_words, false },
        { "add", 3, { 8, 4, 8 }, add, count_words, count_words, false },
        { "busy", 1, { 4 }, busy, count_nanoseconds, NULL, false },
        { "meet", 2, { 8, 4 }, meet, never, count_one, false },
        { "trap", 1, { 4 }, one_slice, count_one, NULL, true },
        { HASH_KERNEL, 4, { 8, 8, 8, 8 }, hash_next, count_blocks, NULL, false },
};

const struct kernel *kernel_get(size_t index)
{
        return &kernels[index];
}
