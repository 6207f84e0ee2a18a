/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_HASHER_H
#define MOVER_HASHER_H

/*
 * The hash of device memory (hash/hash.h), computed by the device that has it.
 *
 * The kernel and the key are in the device's context: hasher_load() puts them there, and before it
 * believes the kernel it has it hash a block whose hash it knows. Without the kernel a job copies
 * everything, so none of its failures is one of a job.
 *
 * Threads: any.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda.h"
#include "hash/hash.h"
#include "wire/mover.h"

struct hasher {
        pthread_mutex_t lock;
        struct hash_key *key; /* NULL: none was given */
        CUmodule module;      /* NULL: not loaded */
        CUfunction kernel;
        struct hash_key *pinned_key;  /* for the device: nothing of its memory is taken */
        unsigned int n_thread_blocks; /* that the device runs at once */
};

void hasher_init(struct hasher *hasher);

/* hasher_set_key() - that of the file @fd. Errors: -EBUSY (there is one), -EINVAL (no key); mmap(). */
int hasher_set_key(struct hasher *hasher, int fd);

/* hasher_wants_loading() - is there a key, and no kernel yet? */
bool hasher_wants_loading(struct hasher *hasher);

/*
 * hasher_load() - if it is not loaded yet. It takes memory of @device: device_load_hasher() is for that.
 * Errors: -ENOKEY; -EBADMSG (it computes nonsense); driver.
 */
int hasher_load(struct hasher *hasher, CUdevice device, struct mover_done *done);

/* A hash under way; an empty (zeroed) one is fine for finish and deinit. */
struct hashing {
        CUstream stream;
        struct hash_value *values; /* pinned */
        size_t n;
};

/* hashing_start() - the @n blocks from @blocks on, on @stream, which is the caller's. Errors: driver. */
int hashing_start(struct hashing *hashing, struct hasher *hasher, CUstream stream,
                  CUdeviceptr blocks, size_t n, struct mover_done *done);

/* hashing_finish() - wait for the values. Errors: -EBADMSG (not all are there); driver. */
int hashing_finish(struct hashing *hashing, struct mover_done *done);

/* hashing_deinit() - nothing reads the memory any more when this returns. */
void hashing_deinit(struct hashing *hashing);

#endif
