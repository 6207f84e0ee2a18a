/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CAPTURE_H
#define GATE_CAPTURE_H

/*
 * Stream captures in progress. The gate does not close during a capture: waiting for the device
 * would invalidate the capture, and the application is about to end it anyway.
 */

#include <stdbool.h>

#include "abi/cuda.h"

/* capture_is_active() - is a capture active, or about to begin? */
bool capture_is_active(void);

/*
 * capture_keep_away() - keep captures away before a call that waits for the device and would ruin one.
 * False: one is active; the caller needs another way. True: none begins until capture_let_begin(), or
 * until a moment has passed in which the driver has found that there is none: the wait itself may need
 * the thread that wants to begin one.
 */
bool capture_keep_away(void);
void capture_let_begin(void);

/* capture_destroy_stream() - have the driver's @call destroy @stream, which ends its capture. */
CUresult capture_destroy_stream(CUresult (*call)(CUstream stream), CUstream stream);

/* capture_drop_context() - forget the captures of @context, which has ended; with idle_hold(). */
void capture_drop_context(CUcontext context);

/* capture_drop_thread() - forget the captures of the thread of @caller's own stream: the thread has ended. */
void capture_drop_thread(const void *caller);

#endif
