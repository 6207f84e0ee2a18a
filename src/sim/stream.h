/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

/*
 * Streams: queues of work, each run in order by a thread of its own.
 *
 * Work is numbered: number N of a stream is done when @done has reached N. All that can wait for
 * work (events, other streams, the host) waits for such a number, so the rules of the legacy
 * stream, of events and of synchronization are dependencies on numbers and nothing else.
 *
 * With the process' lock held.
 */

#include "sim/stream-object.h"
#include "sim/work.h"

/*
 * stream_submit() - queue @work, which is taken, also on failure; without the lock held. Where the
 * stream is being captured, the work becomes a part of the graph.
 */
CUresult stream_submit(CUstream handle, struct work *work);

/* stream_submit_locked() - do the same with a stream that was found. */
CUresult stream_submit_locked(CUstream stream, struct work *work);

/* stream_run() - run @work, which is taken, in the default stream, and wait for it. */
CUresult stream_run(struct work *work);

void stream_wait(CUstream stream, uint64_t number);
void stream_wait_for_context(CUcontext context);

/* stream_destroy_all() - destroy all streams of a context that ends; wait for their work. */
void stream_destroy_all(CUcontext context);

#endif
