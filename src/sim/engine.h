/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

/*
 * The engine of a device: one kernel slice runs at a time, of all streams of all processes.
 *
 * The kernel's file locks keep it: one who dies lets go. A plain lock is not fair (who has just
 * let go gets it again before a waiter has woken up), so there are two, one after the other: whoever
 * has the turn waits for the engine, and nobody else does.
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

/* engine_take() - wait for host device @device. Errors: a file of the host is gone. */
int engine_take(struct engine *engine, int device);

/* engine_give() - what it was held for is noted in the holdings. Returns that time, in nanoseconds. */
uint64_t engine_give(struct engine *engine);
/* engine_now() - nanoseconds of CLOCK_MONOTONIC. */
uint64_t engine_now(void);
void engine_close(struct engine *engine);

#endif
