/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_DIFFERENCE_H
#define MOVER_DIFFERENCE_H

/*
 * What of a guest's memory the slabs have not got yet, by the hashes of its blocks (wire/mover.h).
 *
 * Nothing here fails a job: without hashes every block is one that the slabs have not got. Where none
 * is known beforehand, the device hashes behind the copy.
 */

#include <stdbool.h>

#include "mover/copy.h"
#include "mover/hasher.h"
#include "mover/job.h"

struct difference {
        struct job *job;
        struct device *device;
        CUstream stream; /* of @hashing */
        struct hashing hashing;
        bool is_under_way;
        bool *is_unchanged; /* of each block, once found; else NULL: it is not known */
        size_t n_unchanged;
        int error;                 /* why there are no hashes */
        struct mover_done failure; /* its driver call */
        uint64_t wait_ns;
};

/* difference_is_known() - are there hashes of what the slabs have? */
bool difference_is_known(const struct job *job);

/* difference_begin() - the device starts to hash the memory of @job, which is mapped. */
void difference_begin(struct difference *difference, struct job *job, struct device *device);

/* difference_find() - wait for the hashes if some blocks are known, and compare. Before the copy. */
void difference_find(struct difference *difference);

/* difference_wait() - nothing reads the memory any more; the values are there, or there is an error. */
void difference_wait(struct difference *difference);

/* difference_end() - wait for them in any case: they are in the job then, or there is an error. After the copy. */
void difference_end(struct difference *difference);

/* difference_skips() - is the block that has the byte at @offset of the memory in the slabs already? */
bool difference_skips(const struct difference *difference, uint64_t offset);

/*
 * difference_verify() - compare @parts, which were not copied, byte by byte; what is not the same is copied
 * and counted in done->wrong. Errors: -ENOMEM; driver.
 */
int difference_verify(const struct copy_part *parts, size_t n_parts, struct mover_done *done);

/* difference_log() - that there are no hashes, and why. */
void difference_log(const struct difference *difference);

void difference_deinit(struct difference *difference);

#endif
