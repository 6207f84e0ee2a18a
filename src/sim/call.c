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
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>

#include "abi/cuda-fault.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "sim/failure.h"
#include "sim/process.h"

static struct {
        atomic_uint in_flight;
        atomic_bool is_closed;
        atomic_bool is_disabled, has_ended;
        atomic_uint passes;            /* of synchronizing threads, through the lock */
        _Atomic CUresult broken;       /* what all calls answer; CUDA_SUCCESS: none of that */
        _Atomic uint64_t last_loop_ms; /* when a thread was last seen in a loop of it */
        int progress;                  /* eventfd */
} calls = { .progress = -1 };

/* So many calls of cuCtxSynchronize() with nothing in between are a loop. */
#define LOOP_CALLS 8

/* How long a thread of a loop may take from one call to the next. */
#define LOOP_MS 1000

static _Thread_local bool is_per_thread, has_passed;
static _Thread_local unsigned int synchronize_calls;

static uint64_t now_ms(void)
{
        return clock_now(CLOCK_MONOTONIC) / 1000000;
}

static bool is_synchronize(enum call_name name)
{
        return name == CALL_cuCtxSynchronize || name == CALL_cuCtxSynchronize_v2;
}

static void note_loop(enum call_name name)
{
        synchronize_calls = is_synchronize(name) ? synchronize_calls + 1 : 0;
        if (synchronize_calls >= LOOP_CALLS)
                atomic_store(&calls.last_loop_ms, now_ms());
}

static void leave(void)
{
        if (atomic_fetch_sub(&calls.in_flight, 1) == 1 && atomic_load(&calls.is_closed))
                call_tell_progress();
}

static void wait_until_open(void)
{
        PROCESS_LOCKED();

        while (atomic_load(&calls.is_closed))
                process_wait_locked();
}

/*
 * Measured: a lock of the real driver does not stop cuCtxSynchronize(). A thread in a loop of it runs
 * on, and what it finds after the checkpoint kills the process.
 */
static bool passes_the_lock(enum call_name name)
{
        if (!is_synchronize(name) || !atomic_load(&calls.is_closed))
                return false;
        if (process.holdings.own.state == CU_PROCESS_STATE_CHECKPOINTED)
                process_die();
        atomic_fetch_add(&calls.passes, 1);
        has_passed = true;
        return true;
}

static void get_inside(struct call *call)
{
        has_passed = false;
        note_loop(call->name);
        if (passes_the_lock(call->name))
                return;
        for (;;) {
                atomic_fetch_add(&calls.in_flight, 1);
                if (!atomic_load(&calls.is_closed))
                        break;
                leave();
                if (passes_the_lock(call->name))
                        return;
                wait_until_open();
        }
        call->is_inside = true;
}

/* As a fault of a kernel does, in a context of the application (work.c): there is no way on. */
static bool is_the_end(CUresult result)
{
        return result == CUDA_ERROR_DEINITIALIZED || cuda_breaks_context(result);
}

/* Of a broken context a device runs nothing on: who hears of it may take back what was copied to. */
static void wait_until_nothing_runs(void)
{
        PROCESS_LOCKED();

        while (process.n_pending)
                process_wait_locked();
}

static CUresult find_failure(struct call *call)
{
        CUresult result = atomic_load(&calls.broken);

        if (result != CUDA_SUCCESS && call->kind == CALL_OWN)
                return result;
        result = failure_next(call->name, &call->late);
        if (is_the_end(result)) {
                atomic_store(&calls.broken, result);
                wait_until_nothing_runs();
        }
        return result;
}

/* Before cuInit() the driver reads what the handle of a stream points to, without a look (580). */
static CUresult refuse_before_init(enum call_name name)
{
        if (name == CALL_cuStreamGetCtx)
                (void)raise(SIGSEGV);
        return CUDA_ERROR_NOT_INITIALIZED;
}

CUresult call_enter(struct call *call)
{
        if (call->kind != CALL_EARLY && !process_is_started())
                return refuse_before_init(call->name);
        if (atomic_load(&calls.is_disabled) && call->kind != CALL_EARLY)
                return CUDA_ERROR_NOT_INITIALIZED;
        if (atomic_load(&calls.has_ended) && call->kind != CALL_EARLY)
                return CUDA_ERROR_DEINITIALIZED;
        if (call->kind == CALL_OWN)
                get_inside(call);
        is_per_thread = call->is_per_thread;
        return find_failure(call);
}

void call_leave(struct call *call)
{
        if (call->is_inside)
                leave();
}

CUresult call_refuse(enum call_name name)
{
        CUresult late, result = failure_next(name, &late);

        return result ? result : CUDA_ERROR_NOT_SUPPORTED;
}

bool call_is_per_thread(void)
{
        return is_per_thread;
}

bool call_has_passed(void)
{
        return has_passed;
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

bool call_is_synchronizing(void)
{
        uint64_t deadline = atomic_load(&calls.last_loop_ms) + LOOP_MS;
        unsigned int passes = atomic_load(&calls.passes);

        while (atomic_load(&calls.passes) - passes < 2) {
                const struct timespec moment = { .tv_nsec = 1000000 };

                if (now_ms() >= deadline)
                        return false;
                (void)nanosleep(&moment, NULL);
        }
        return true;
}

int call_start(void)
{
        calls.progress = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return calls.progress < 0 ? -errno : 0;
}

void call_end(void)
{
        atomic_store(&calls.has_ended, true);
}

void call_disable(void)
{
        atomic_store(&calls.is_disabled, true);
        calls.progress = fd_close(calls.progress);
}

bool call_is_disabled(void)
{
        return atomic_load(&calls.is_disabled);
}
