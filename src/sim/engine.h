/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

/*
 * The engine of a device runs one kernel slice at a time, of all streams of all processes.
 *
 * File locks of the operating system guard it: a process that dies lets go. One lock would not be fair (the
 * stream that has just let go would get it again before a waiter wakes up). There are two locks, one after
 * the other: only the stream that has the turn waits for the engine.
 */

#include <stdint.h>

/* A stream's place in the queue; descriptors are opened when first needed. */
struct engine {
        int device; /* the host's, of the descriptors; -1: none */
        int turn, engine;
        uint64_t taken_ns; /* CLOCK_MONOTONIC */
};

#define ENGINE_INIT           \
        {                     \
                -1, -1, -1, 0 \
        }

/* engine_take() - wait for host device @device. Fails if a file of the host is gone. */
int engine_take(struct engine *engine, int device);

/* engine_give() - let go, and note in the holdings how long. Returns this time, in nanoseconds. */
uint64_t engine_give(struct engine *engine);
/* engine_now() - return CLOCK_MONOTONIC in nanoseconds. */
uint64_t engine_now(void);
void engine_close(struct engine *engine);

#endif
