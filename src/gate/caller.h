/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CALLER_H
#define GATE_CALLER_H

/*
 * The callers: one record for each thread of the guest that has called the
 * driver. The jump stubs keep their marks in it (stub-x86_64.S); the drain reads
 * them (drain.c).
 *
 * Records are on the heap and not in the thread's own storage, so that a thread
 * that calls the driver from the last of its destructors leaves 1 KiB behind and
 * not a pointer into memory that is gone.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gate/caller-layout.h"
#include "gate/entry.h"

struct caller_frame {
        void *return_address;
        void *rbx;
        _Atomic uint64_t entry; /* read by others: to name the call */
        uint64_t reserved;
};

struct caller {
        _Alignas(CALLER_SIZE) struct caller_frame *_Atomic top; /* behind the last frame in use */
        _Atomic uint32_t
                launches; /* not yet in the instance page; the thread adds, who flushes takes */
        _Atomic uint32_t is_aside; /* inside, but it waits for something else than the driver */
        uint32_t step;             /* in which it found that it may not go on; the thread's */
        struct caller *next;
        _Alignas(CALLER_FRAMES) struct caller_frame
                frame[(CALLER_SIZE - CALLER_FRAMES) / FRAME_SIZE];
};

/* Not 0 while the gate is closed (enum step_gate); also the futex that waiting threads sleep on. */
extern _Atomic uint32_t gate_closed;

/* Set while calls that give the device work go through turns_submit() first. */
extern _Atomic uint32_t gate_watch;

/* caller_enter() - for the stubs: where shall a call that is not a plain one go? */
void *caller_enter(uint32_t entry);

/*
 * caller_begin() - before a driver call that we make on a guest's thread outside its own calls; false:
 * the gate is closed, and it must not be made. caller_end() after it.
 */
bool caller_begin(uint32_t entry);
void caller_end(void);

/*
 * caller_step_aside() - the calling thread, in the middle of a driver call of ours, waits for others: the
 * gate may close meanwhile. caller_step_back() - it goes on, once the gate is open.
 */
void caller_step_aside(void);
void caller_step_back(void);

/* caller_find_busy() - is a thread inside a driver call, and which? */
bool caller_find_busy(uint32_t *ret_entry);

/* caller_count_waiting() - threads that wait at the closed gate. */
unsigned int caller_count_waiting(void);

/* caller_count() - threads that have a record. */
unsigned int caller_count(void);

/* caller_flush_all() - add all threads' launches to the instance page. */
void caller_flush_all(void);

/* caller_exempt() - the calling thread, one of ours, shall never wait at the gate. */
void caller_exempt(void);

/* caller_self_get() - something that is different in each thread. */
const void *caller_self_get(void);

/* caller_forget_others() - in the child of a fork: its only thread is the calling one. */
void caller_forget_others(void);

#endif
