/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_TRANSFER_H
#define CHECKPOINT_TRANSFER_H

/*
 * Copies memory between a device (the memory is mapped here) and the segments of a store.
 *
 * Each member of a crew takes a segment and has two pieces of it under way at a time, through pinned
 * memory: while one is on the bus, the other is on its way to or from the file.
 */

#include "abi/cuda.h"
#include "checkpoint/store.h"

/* The mapped memory of one device. */
struct transfer_range {
        CUdeviceptr pointer;
        uint64_t size;
        unsigned int device; /* ours; its context is retained */
        unsigned int part;   /* of the store */
};

enum transfer_direction { TRANSFER_TO_STORE, TRANSFER_TO_DEVICE };

/* transfer_prepare() - get the pinned memory that later calls need, in a context that is retained. */
CUresult transfer_prepare(void);
void transfer_release(void);

/*
 * transfer_run() - copy all of @ranges
 * @problem:  on failure gets a text of at most @room bytes: what went wrong first
 * No copy is under way any more when it returns. Errors: -EIO.
 */
int transfer_run(enum transfer_direction direction, const struct store *store,
                 const struct transfer_range *ranges, size_t n_ranges, char *problem, size_t room);

#endif
