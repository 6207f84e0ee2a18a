/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CONTEXT_H
#define GATE_CONTEXT_H

/*
 * The guest's CUDA contexts. Each context has work of its own, and memory that ends with the
 * context.
 *
 * Each device is asked for its primary context. A list holds the contexts that the application
 * creates.
 */

#include <stdbool.h>

#include "abi/cuda.h"

/* context_current() - get the context in which the calling thread makes memory. */
CUresult context_current(CUcontext *ret_context, CUdevice *ret_device);

/*
 * context_finish() - wait as cuMemFree() does before it frees memory of @context; fails as
 * cuMemFree() would.
 */
CUresult context_finish(CUcontext context);

/*
 * context_finish_all() - wait for the work of all contexts, one after the other, unless told to
 * stop.
 * @ret_call is set when it fails.
 */
CUresult context_finish_all(bool (*is_stopped)(void), const char **ret_call);

/* context_add() - note that the application created @context. False: no memory. context_remove() - forget it. */
bool context_add(CUcontext context);
void context_remove(CUcontext context);

/* context_use() - @change is 1 or -1. Returns how many uses are left; 1 for a context that we do not know. */
unsigned int context_use(CUcontext context, int change);

/* context_exchange_primary() - note @context as the primary one of @device. Returns the one before. */
CUcontext context_exchange_primary(CUdevice device, CUcontext context);

/*
 * Green contexts are parts of a device's primary context, and each of them retains it: memory and events that
 * are made in one are the primary one's. Streams, and the captures of these, are a green one's own.
 *
 * context_add_green() - note a green context. False: no memory. context_take_green() - forget the one with
 * @handle, context_take_green_of() - one of @primary, and tell it. False: there is none.
 */
struct context_green {
        CUgreenCtx handle;
        CUcontext context; /* as which it is made current; NULL: it cannot be */
        CUcontext primary; /* NULL: it stands for itself */
        CUdevice device;
};
bool context_add_green(const struct context_green *green);
bool context_take_green(CUgreenCtx handle, struct context_green *ret_green);
bool context_take_green_of(CUcontext primary, struct context_green *ret_green);

/* context_owner() - the context to which memory and events belong that are made while @context is current. */
CUcontext context_owner(CUcontext context);

/* context_is_any() - has the application a context? */
bool context_is_any(void);

/* context_each() - call @each with every context, until it answers otherwise than CUDA_SUCCESS. */
CUresult context_each(CUresult (*each)(CUcontext context));

#endif
