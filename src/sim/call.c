/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens at the beginning and end of every driver call.
 *
 * A call counts itself as in flight and then looks whether the process is
 * closed; the closer closes and then looks at the count: with sequentially
 * consistent atomics, one of the two sees the other. So a call costs two atomic
 * additions and no lock.
 */

#include "sim/call.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sim/failure.h"
#include "sim/process.h"

static struct {
        atomic_uint in_flight;
        atomic_bool is_closed;
        atomic_bool is_disabled;
        atomic_uint waiting[CALL_COUNT];
        int progress; /* eventfd */
} calls = { .progress = -1 };

static _Thread_local bool is_per_thread;

static void leave(void)
{
        if (atomic_fetch_sub(&calls.in_flight, 1) == 1 && atomic_load(&calls.is_closed))
                call_tell_progress();
}

static void wait_until_open(enum call_name name)
{
        PROCESS_LOCKED();

        atomic_fetch_add(&calls.waiting[name], 1);
        while (atomic_load(&calls.is_closed))
                process_wait_locked();
        atomic_fetch_sub(&calls.waiting[name], 1);
}

static void get_inside(struct call *call)
{
        for (;;) {
                atomic_fetch_add(&calls.in_flight, 1);
                if (!atomic_load(&calls.is_closed))
                        break;
                leave();
                wait_until_open(call->name);
        }
        call->is_inside = true;
}

CUresult call_enter(struct call *call)
{
        if (call->kind != CALL_EARLY && !process_is_started())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (atomic_load(&calls.is_disabled) && call->kind != CALL_EARLY)
                return CUDA_ERROR_NOT_INITIALIZED;
        if (call->kind == CALL_OWN)
                get_inside(call);
        is_per_thread = call->is_per_thread;
        return failure_next(call->name);
}

void call_leave(struct call *call)
{
        if (call->is_inside)
                leave();
}

CUresult call_refuse(enum call_name name)
{
        CUresult result = failure_next(name);

        return result ? result : CUDA_ERROR_NOT_SUPPORTED;
}

bool call_is_per_thread(void)
{
        return is_per_thread;
}

void call_close(void)
{
        atomic_store(&calls.is_closed, true);
}

void call_open(void)
{
        PROCESS_LOCKED();

        atomic_store(&calls.is_closed, false);
        process_tell_locked();
}

bool call_is_drained(void)
{
        PROCESS_LOCKED();

        return atomic_load(&calls.in_flight) == 0 && process.n_pending == 0;
}

int call_drain_fd(void)
{
        return calls.progress;
}

void call_tell_progress(void)
{
        int saved_errno = errno;

        if (atomic_load(&calls.is_closed))
                (void)!eventfd_write(calls.progress, 1);
        errno = saved_errno;
}

unsigned int call_count_waiting(enum call_name name)
{
        return atomic_load(&calls.waiting[name]);
}

int call_start(void)
{
        calls.progress = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return calls.progress < 0 ? -errno : 0;
}

void call_disable(void)
{
        atomic_store(&calls.is_disabled, true);
        calls.progress = fd_close(calls.progress);
}
