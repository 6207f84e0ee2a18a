/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_PATIENCE_H
#define GATE_PATIENCE_H

/*
 * Calls by which the driver takes device memory for itself: the code of a kernel at its first launch, larger stacks,
 * executable graphs, streams. On an overcommitted device such a call that answers "out of memory" is made again when
 * others have left, as an allocation is. Which calls: the column "again" of abi/cuda.abi; for each the build makes a
 * wrapper, and hooks of ours say it in their code:
 *
 *     struct patience patience = PATIENCE(cuModuleLoad);
 *
 *     do
 *             result = DRIVER(cuModuleLoad)(module, path);
 *     while (patience_again(&patience, result));
 *
 * Elsewhere, and where the driver has the memory, that is one comparison.
 *
 * It asks for room on the device of the thread's current context. A launch into a stream of another device's context
 * takes memory there; it gets the driver's answer when our device has room, a little later than it would. Who has no
 * context waits for nothing.
 *
 * No room cures a heap that is larger than the device. Such a call ends with the driver's own answer after a few tries
 * and some seconds (quota_is_in_vain()), and is not patient for some more, so that others are not sent away by a program
 * that repeats it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "gate/entry.h"
#include "gate/quota.h"

/* So often a call is made again at least; one that loads code, of which a library may have a lot, more often. */
#define PATIENCE_TRIES      5
#define PATIENCE_CODE_TRIES 16

struct patience {
        struct quota_want want; /* first, see patience.c */
        enum entry_index entry;
        unsigned int n_idle;  /* how often idle memory of pools was given back for it */
        uint64_t captured_ns; /* since when it waits beside a capture; 0: it does not */
};

#define PATIENCE(name)                                                      \
        {                                                                   \
                .entry = ENTRY_##name, .want = {.n_tries = PATIENCE_TRIES } \
        }
#define PATIENCE_CODE(name)                                                      \
        {                                                                        \
                .entry = ENTRY_##name, .want = {.n_tries = PATIENCE_CODE_TRIES } \
        }

/* The longest wait in, or beside, a capture; tests shorten it. */
extern uint64_t patience_captured_ns;

/*
 * patience_again() - the driver has answered @result: shall the call be made again? It waits for that, outside of the
 * driver: the gate may close meanwhile, and the vGPU leave and come back.
 */
bool patience_again(struct patience *patience, CUresult result);

#endif
