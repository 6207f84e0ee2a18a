/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

/*
 * The simulated devices have these kernels: any module, whatever its image is, has functions of these
 * names.
 *
 *     fill(u64 pointer, u32 value, u64 n)   n words
 *     add(u64 pointer, u32 value, u64 n)    to each of n words
 *     busy(u64 microseconds)                of the device's time
 *     meet(u64 pointer, u32 n)              waits for the kernels of others: a collective
 *     trap(u32 unused)                      ends with an error
 *
 * meet adds 1 to a word and waits until the word has reached the next multiple of n. So n kernels end
 * together, whichever streams, processes or devices they run on, and the next n after them.
 *
 *     hash_blocks(u64 blocks, u64 n, u64 key, u64 values)   that of the mover: hash/hash.h
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_ARGUMENTS_MAX 4

struct kernel_arguments {
        uint64_t value[KERNEL_ARGUMENTS_MAX];
};

struct kernel {
        const char *name;
        unsigned int n_arguments;
        uint8_t size[KERNEL_ARGUMENTS_MAX];
        /* A slice of about a millisecond of work from @done on; returns how far it is now. */
        uint64_t (*run)(const struct kernel_arguments *arguments, uint64_t done);
        uint64_t (*get_end)(const struct kernel_arguments *arguments);
        /* Words of device memory that it writes at argument 0; NULL: none. */
        uint64_t (*count_words)(const struct kernel_arguments *arguments);
        bool has_trap; /* it ends with one */
};

#define KERNEL_COUNT 6

/* kernel_get() - return kernel @index of KERNEL_COUNT. */
const struct kernel *kernel_get(size_t index);

#endif
