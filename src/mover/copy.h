/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_COPY_H
#define MOVER_COPY_H

/*
 * Copies at the speed of the bus: cut into pieces, a few of them queued at any
 * time, on a stream of its own. The pieces are there for the progress that is
 * told after each, and so that copies of several jobs share the bus.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "mover/device.h"
#include "wire/mover.h"

enum copy_direction { COPY_TO_HOST, COPY_TO_DEVICE, COPY_BETWEEN_DEVICES };

struct copy_part {
        uint32_t region; /* neighbours of different slabs are two copies: the driver pinned two */
        CUdeviceptr device; /* BETWEEN_DEVICES: to */
        CUdeviceptr from;   /* BETWEEN_DEVICES */
        char *host;         /* else */
        uint64_t length;
};

struct copy_control {
        int (*progress)(uint64_t bytes_done, void *userdata); /* a failure ends the copy with it */
        /* Until the host's memory of @part is registered; NULL: it is. A failure ends the copy with it. */
        int (*wait)(const struct copy_part *part, struct mover_done *done, void *userdata);
        void *userdata;          /* of both */
        const atomic_bool *stop; /* once true, nothing more is queued */
        CUstream stream; /* of the caller, which waits for nothing on it: device_get_stream() */
        struct device *
                device; /* its margin is lent if there is no room for the marks; NULL: it has none */
        /* BETWEEN_DEVICES that cannot use each other's memory: the device that has it. NULL: they can. */
        CUcontext to_context, from_context;
};

/*
 * copy_run() - the parts in their order, in the current context
 * @ret_copied: bytes from the beginning that have arrived: less than all after a stop
 */
int copy_run(enum copy_direction direction, const struct copy_part *parts, size_t n_parts,
             const struct copy_control *control, uint64_t *ret_copied, struct mover_done *done);

#endif
