/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CALL_H
#define SIM_CALL_H

/*
 * Every driver call begins and ends here, whatever it does.
 *
 * The exported functions are generated from abi/cuda.abi; each is a call_enter(), the function
 * sim_NAME() that somebody wrote, and a call_leave(). So every call can be made to fail
 * (failure.h), waits while the process is locked for a checkpoint, and is known to be in flight.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "sim-entries.h"
#include "sim/call-entry.h"

enum call_kind {
        CALL_OWN,     /* needs cuInit(); waits while the process is locked */
        CALL_EARLY,   /* works at any time */
        CALL_CONTROL, /* needs cuInit(); never waits */
};

struct call {
        enum call_name name;
        enum call_kind kind;
        bool is_per_thread; /* stream 0 is the thread's own stream: _ptsz and _ptds names */
        bool is_inside;
        CUresult late; /* what it answers although it is done */
};

/* call_enter() - begin a call. If this is not CUDA_SUCCESS, it is the answer of the call. */
CUresult call_enter(struct call *call);
void call_leave(struct call *call);

/* call_finish() - return the answer of a call whose work has come to @result. */
static inline CUresult call_finish(const struct call *call, CUresult result)
{
        return call->late ? call->late : result;
}

/* call_refuse() - return the answer of an entry point that is not simulated. */
CUresult call_refuse(enum call_name name);

/* call_is_per_thread() - in the call that this thread is in, is stream 0 the thread's own? */
bool call_is_per_thread(void);

/*
 * call_has_passed() - has this call begun although the process is locked? Then there is no work to wait
 * for, and it takes no lock: the thread may be stopped anywhere, and the checkpoint goes on.
 */
bool call_has_passed(void);

/*
 * Locking, for the checkpoint service. call_close() lets no call begin any more; call_is_drained()
 * is true when none is in flight and no work is left; call_drain_fd() becomes readable when that
 * may have changed. call_open() lets them go on.
 */
void call_close(void);
void call_open(void);
bool call_is_drained(void);
int call_drain_fd(void);
void call_tell_progress(void);

/*
 * call_is_synchronizing() - while locked: does a thread go on calling cuCtxSynchronize()? One that was
 * in a loop of it is given a second for the next two calls: one that is stopped does no harm.
 */
bool call_is_synchronizing(void);

/* call_start() - prepare for calls, in cuInit(). */
int call_start(void);

/*
 * call_end() - the process has come to its exit handlers: as with the real driver, whose own are among
 * them, every call answers CUDA_ERROR_DEINITIALIZED from now on. Checkpoint calls of others go on.
 */
void call_end(void);

/* call_disable() - in a forked child, let every call answer CUDA_ERROR_NOT_INITIALIZED, also cuInit(). */
void call_disable(void);
bool call_is_disabled(void);

#endif
