/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_WAIT_H
#define GATE_WAIT_H

/*
 * How a thread of the program waits for vgpud, for another process, or for a thread of its own that does so. Such a wait
 * may be long, so there is one kind of it:
 *
 * - Signal handlers run. The wait pauses the thread's section (section.h), whatever locks of this file it has.
 * - They may call the driver, and leave by longjmp() or pthread_exit(): a lock of this file is then given back, and
 *   what else is to be undone the caller says (leave.h).
 * - It is no cancellation point (uncancelled.c).
 * - It ends when the process ends, a moment later (ending.h).
 *
 * No mutex may be locked in it: other threads that want one wait where no handler runs.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gate/leave.h"

/*
 * wait_until() - until @is_over, which is looked at again after each wait_wake(). False: the process ends, and the thread may
 * not wait any longer. wait_until_surely() - also then: in the middle of what must not be left half done.
 */
bool wait_until(bool (*is_over)(void *userdata), void *userdata);
void wait_until_surely(bool (*is_over)(void *userdata), void *userdata);
void wait_wake(void);

/* wait_for_message() - until @socket is readable. Errors: -ETIMEDOUT, after @timeout_ms (-1: never); -ECANCELED, the process ends. */
int wait_for_message(int socket, int timeout_ms);

/* wait_nap() - so long. False: the process ends, as above. */
bool wait_nap(long ns);

/* wait_end_at() - the process ends: nothing waits beyond @deadline_ns (CLOCK_MONOTONIC). wait_get_deadline() - 0: it does not. */
void wait_end_at(uint64_t deadline_ns);
uint64_t wait_get_deadline(void);

/* wait_is_allowed() - the process does not end, or the deadline is yet to come. */
bool wait_is_allowed(void);

/* A lock that a thread may have while it waits in one of these ways. Otherwise it is in a section, as with a mutex. */
struct wait_lock {
        _Atomic(const void *) owner; /* an address that is different in each thread */
};

struct wait_hold {
        struct leave leave;
        struct wait_lock *lock;
};

/*
 * wait_lock() - by the calling thread, as @hold says until wait_unlock(). Errors: -EDEADLK, the thread has it already, and was
 * interrupted in a wait; -ECANCELED, the process ends.
 */
int wait_lock(struct wait_lock *lock, struct wait_hold *hold);
void wait_unlock(struct wait_hold *hold);

#endif
