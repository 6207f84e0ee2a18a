/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_CONTEXTS_H
#define CHECKPOINT_CONTEXTS_H

/*
 * Our own primary contexts. For custom storage the driver requires one on every device of the
 * process. A context takes about half a GiB of its device, so it is held for one action only.
 *
 * Devices are ordinals, which are also the places in a struct device_list.
 */

#include "abi/cuda.h"
#include "checkpoint/crew.h"

struct context {
        CUcontext context; /* NULL: not retained */
        CUstream stream[CREW_MAX][2];
};

/*
 * contexts_retain() - retain the context of @device, with streams for a crew
 * Errors: what the driver answers. The context stays retained, so later calls succeed.
 */
CUresult contexts_retain(unsigned int device);

/* contexts_get() - return the context of @device, which was retained. */
const struct context *contexts_get(unsigned int device);

/* contexts_find() - find the device of a @stream of the driver's; -1: we retained no such device. */
int contexts_find(CUstream stream);

/* contexts_enter() - make the context of @device current in this thread; any context, if @device is -1. */
CUresult contexts_enter(int device);

void contexts_release(void);

#endif
