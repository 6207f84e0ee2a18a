/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

/*
 * Stream capture: what is submitted to a capturing stream becomes a graph.
 *
 * Many calls are not allowed while a capture is open; they fail and make the capture invalid. What
 * does so, from which thread, in which mode, was measured on a real device. The invalidate
 * functions do both at once and answer whether they had to. With the process' lock held.
 */

#include <stdbool.h>

#include "sim/stream-object.h"
#include "sim/work.h"

struct capture;

CUresult capture_add(struct capture *capture, struct work *work);
/* capture_find() - the open one with this id, or NULL. */
struct capture *capture_find(uint64_t id);
uint64_t capture_get_id(const struct capture *capture);
bool capture_is_invalid(const struct capture *capture);
/* capture_get_graph() - what it is captured into. */
CUgraph capture_get_graph(const struct capture *capture);

/* capture_join() - @stream waits for an event of the capture, and so becomes a part of it. */
CUresult capture_join(struct capture *capture, CUstream stream);

/* capture_invalidate() - this one; true. */
bool capture_invalidate(struct capture *capture);
/* ... those in @context: cuCtxSynchronize() and cuCtxRecordEvent(), whatever the mode. */
bool capture_invalidate_context(CUcontext context);
/* ... those of a blocking stream in @context: what uses the legacy stream. */
bool capture_invalidate_blocking(CUcontext context);
/* ... those whose mode forbids this thread calls that may wait for the device. */
bool capture_invalidate_unsafe(void);

/* A stream or a context ends while capturing. */
void capture_drop_stream(CUstream stream);
void capture_drop_all(CUcontext context);

#endif
