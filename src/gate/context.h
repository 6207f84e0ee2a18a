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

/* context_current() - of the calling thread. */
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

/* context_each() - call @each with every context, until it answers otherwise than CUDA_SUCCESS. */
CUresult context_each(CUresult (*each)(CUcontext context));

/* context_forget() - in the child of a fork. */
void context_forget(void);

#endif
