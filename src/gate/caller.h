/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CALLER_H
#define GATE_CALLER_H

/*
 * Each thread of the guest that has called the driver has a record, its caller. The
 * jump stubs keep their marks in it (stub-x86_64.S); the drain reads them (drain.c).
 *
 * Records are on the heap and not in the thread's own storage, so that a thread
 * that calls the driver from the last of its destructors leaves 1 KiB behind and
 * no pointer to memory that is gone.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gate/caller-layout.h"
#include "gate/entry.h"
#include "gate/leave.h"

struct caller_frame {
        void *return_address;
        void *rbx;
        _Atomic uint64_t entry; /* read by others: to name the call */
        uintptr_t stack;        /* the stack pointer of the call, for leave.h */
};

struct caller {
        _Alignas(CALLER_SIZE) struct caller_frame *_Atomic top; /* behind the last frame in use */
        _Atomic uint32_t
                launches; /* not yet in the instance page: the thread adds, a flush takes */
        _Atomic uint32_t
                n_waits; /* of the thread at the closed gate; a handler may wait within a wait */
        uint32_t step;   /* the last one in which the thread could not go on */
        /* It waits for something other than the driver while "top" is this: not in a call of a handler from there. */
        struct caller_frame *_Atomic aside;
        struct caller *next;
        _Alignas(CALLER_FRAMES) struct caller_frame
                frame[(CALLER_SIZE - CALLER_FRAMES) / FRAME_SIZE];
};

enum gate_position { GATE_IS_OPEN = 0, GATE_IS_CLOSED, GATE_IS_STEPPING };

/* Where the gate is (enum gate_position). Whoever lets threads on wakes those that wait: wait_wake(). */
extern _Atomic uint32_t gate_closed;

/* The record of the calling thread. The stubs read it with two instructions: we are loaded at start. */
extern __attribute__((tls_model("initial-exec"))) __thread struct caller *caller_self;

/* caller_is_registered() - has the calling thread a record of its own? */
bool caller_is_registered(void);

/* caller_register() - makes a record for the calling thread. False: no memory. */
bool caller_register(void);

/* caller_watch_ends() - call @ended for each thread that ends. Once, before the first registration. */
void caller_watch_ends(void (*ended)(struct caller *caller));

/* caller_is_inside() - is the thread of @caller inside a driver call? */
static inline bool caller_is_inside(const struct caller *caller)
{
        return atomic_load(&caller->top) != caller->frame;
}

/* caller_is_aside() - is it inside, but waits for something other than the driver? */
static inline bool caller_is_aside(const struct caller *caller)
{
        return atomic_load(&caller->aside) == atomic_load(&caller->top);
}

/*
 * caller_begin() - mark the thread before a driver call of ours outside the guest's own calls. False: the
 * gate is closed, and the call must not be made. caller_end() removes the mark.
 */
bool caller_begin(uint32_t entry);
void caller_end(void);

/* caller_get_call() - the outermost call of the calling thread, or the one that it is about to make. */
uint32_t caller_get_call(void);

/* caller_leave() - the calling thread leaves its calls that go with @jump. */
void caller_leave(const struct leave_jump *jump);

/*
 * caller_step_aside() - let the gate close while the calling thread, in the middle of a driver call of ours,
 * waits for others. caller_step_back() - go on, once the gate is open.
 */
void caller_step_aside(void);
void caller_step_back(void);

/* caller_nap_aside() - both, and so long in between. */
void caller_nap_aside(long ns);

/*
 * caller_wait() - waits until the gate is open, or until @may_go (or NULL) says so. False: the process ends, and the thread may not
 * wait any longer (wait.h).
 */
bool caller_wait(bool (*may_go)(void));

/* caller_find_busy() - is a thread inside a driver call, and in which call? */
bool caller_find_busy(uint32_t *ret_entry);

/*
 * caller_find_work() - no thread is inside, but work is not done: find the call with which a thread waits for it, at the
 * closed gate, or else one that has begun some. False: there is none.
 */
bool caller_find_work(uint32_t *ret_entry);

/* caller_count_waiting() - count the threads that wait at the closed gate. */
unsigned int caller_count_waiting(void);

/* caller_count() - count the threads that have a record. */
unsigned int caller_count(void);

/* caller_take_launches() - return the launches of all threads since the last time. */
uint64_t caller_take_launches(void);

/* caller_exempt() - let the calling thread, one of ours, never wait at the gate. */
void caller_exempt(void);

/* caller_self_get() - return an address that is different in each thread. */
const void *caller_self_get(void);

#endif
