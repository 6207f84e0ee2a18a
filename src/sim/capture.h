/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

/*
 * Stream capture makes a graph of the work that is submitted to a capturing stream.
 *
 * Many calls are not allowed while a capture is open; they fail and make the capture invalid. Which calls
 * do so, from which thread, in which mode, was measured on a real device. The invalidate functions mark the
 * captures and answer whether there were any. Call these with the process' lock held.
 */

#include <stdbool.h>

#include "sim/stream-object.h"
#include "sim/work.h"

struct capture;

CUresult capture_add(struct capture *capture, struct work *work);
/* capture_find() - find the open one with this id, or return NULL. */
struct capture *capture_find(uint64_t id);
uint64_t capture_get_id(const struct capture *capture);
bool capture_is_invalid(const struct capture *capture);
/* capture_get_graph() - return the graph into which it captures. */
CUgraph capture_get_graph(const struct capture *capture);

/* capture_join() - make @stream a part of the capture: it waits for an event of the capture. */
CUresult capture_join(struct capture *capture, CUstream stream);

/* capture_invalidate() - invalidate this one, and return true. */
bool capture_invalidate(struct capture *capture);
/* ... those in @context, whatever the mode: cuCtxSynchronize() and cuCtxRecordEvent() do. */
bool capture_invalidate_context(CUcontext context);
/* ... those of a blocking stream in @context: a use of the legacy stream does. */
bool capture_invalidate_blocking(CUcontext context);
/* ... those whose mode forbids this thread's calls that may wait for the device. */
bool capture_invalidate_unsafe(void);

/* A stream or a context ends while capturing. */
void capture_drop_stream(CUstream stream);
void capture_drop_all(CUcontext context);

#endif
