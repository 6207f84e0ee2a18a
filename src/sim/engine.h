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

#include <stdbool.h>
#include <stdint.h>

/* A stream's place in the queue; descriptors are opened when first needed. */
struct engine {
        int device; /* the host's, of the descriptors; -1: none */
        int turn, engine;
        uint64_t taken_ns;   /* CLOCK_MONOTONIC */
        uint64_t awaited_ns; /* since when a stream of another process waits for it; 0: none does */
};

#define ENGINE_INIT              \
        {                        \
                -1, -1, -1, 0, 0 \
        }

/* engine_take() - wait for host device @device. Fails if a file of the host is gone. */
int engine_take(struct engine *engine, int device);

/* engine_give() - let go, and note in the holdings how long. Returns this time, in nanoseconds. */
uint64_t engine_give(struct engine *engine);

/*
 * engine_keep() - keep it for another slice of a kernel that the device cannot interrupt. False: another process has
 * waited for it for as long as the driver lets one wait, and the kernel is to be ended. @ret_ns as engine_give().
 */
bool engine_keep(struct engine *engine, uint64_t *ret_ns);

void engine_close(struct engine *engine);

#endif
