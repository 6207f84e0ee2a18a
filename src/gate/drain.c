/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/drain.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/context.h"
#include "gate/entry.h"

/* Between two looks at the marks: short at first, as most calls return within microseconds. */
#define NAP_FIRST_NS 10000
#define NAP_LAST_NS  1000000

static int barrier_command; /* of membarrier(2), as far as it is there */

static int membarrier(int command)
{
        return (int)syscall(SYS_membarrier, command, 0, 0);
}

int drain_prepare(void)
{
        if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0)
                barrier_command = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
        else if (membarrier(MEMBARRIER_CMD_QUERY) > 0)
                barrier_command = MEMBARRIER_CMD_GLOBAL; /* milliseconds instead of one */
        else
                return -ENOTSUP;
        return 0;
}

/* Sleeps a little longer each time; false: the deadline has passed. */
static bool nap(uint64_t deadline_ns, long *nap_ns)
{
        const struct timespec interval = { .tv_nsec = *nap_ns };

        if (clock_now(CLOCK_MONOTONIC) >= deadline_ns)
                return false;
        nanosleep(&interval, NULL);
        if (*nap_ns < NAP_LAST_NS)
                *nap_ns *= 2;
        return true;
}

static bool wait_for_captures(uint64_t deadline_ns)
{
        long nap_ns = NAP_FIRST_NS;

        while (capture_is_active())
                if (!nap(deadline_ns, &nap_ns))
                        return false;
        return true;
}

/* The other half of the stubs' protocol: flag, barrier in all threads, and only then the marks. */
static int shut(void)
{
        atomic_store(&gate_closed, 1);
        return membarrier(barrier_command) < 0 ? -errno : 0;
}

static bool wait_for_callers(uint64_t deadline_ns, uint32_t *ret_entry)
{
        long nap_ns = NAP_FIRST_NS;

        while (caller_find_busy(ret_entry))
                if (!nap(deadline_ns, &nap_ns))
                        return false;
        return true;
}

static int try_close(uint64_t deadline_ns, const char **ret_call)
{
        uint32_t entry;
        int r;

        if (!wait_for_captures(deadline_ns)) {
                *ret_call = "cuStreamEndCapture";
                return -ETIMEDOUT;
        }
        r = shut();
        if (r == 0 && !wait_for_callers(deadline_ns, &entry)) {
                *ret_call = entry_name(entry);
                r = -ETIMEDOUT;
        }
        /* A capture that began meanwhile can only end while the gate is open. */
        if (r == 0 && capture_is_active())
                r = -EAGAIN;
        if (r < 0)
                drain_open();
        return r;
}

int drain_close(uint64_t deadline_ns, const char **ret_call)
{
        int r;

        *ret_call = "membarrier";
        if (!barrier_command)
                return -ENOTSUP;
        do
                r = try_close(deadline_ns, ret_call);
        while (r == -EAGAIN);
        if (r == 0)
                caller_flush_all();
        return r;
}

void drain_open(void)
{
        atomic_store(&gate_closed, 0);
        syscall(SYS_futex, &gate_closed, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/*
 * The driver's wait knows no deadline, so another thread does it, and is left behind when it takes
 * too long: it ends when the work does. Until then nothing else is finished, for a process with a
 * thread in such a call does not survive its checkpoint.
 */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_running;
        CUresult result; /* of the last that ran */
        const char *call;
} finish = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *finish_run(void *unused)
{
        int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        const char *call = NULL;
        CUresult result;

        (void)unused;
        caller_exempt();
        DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
        result = context_finish_all(&call);

        pthread_mutex_lock(&finish.lock);
        finish.result = result;
        finish.call = call;
        finish.is_running = false;
        pthread_cond_broadcast(&finish.changed);
        pthread_mutex_unlock(&finish.lock);
        return NULL;
}

/* With the lock held. */
static int finish_wait(uint64_t deadline_ns)
{
        const struct timespec deadline = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
                                           .tv_nsec = (long)(deadline_ns % 1000000000u) };
        int r = 0;

        while (finish.is_running && r == 0)
                r = -pthread_cond_clockwait(&finish.changed, &finish.lock, CLOCK_MONOTONIC,
                                            &deadline);
        return finish.is_running ? -ETIMEDOUT : 0;
}

static int finish_start(void)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, finish_run, NULL) != 0)
                return -EAGAIN;
        pthread_detach(thread);
        finish.is_running = true;
        return 0;
}

int drain_finish(uint64_t deadline_ns, const char **ret_call, CUresult *ret_code)
{
        int r;

        *ret_call = "cuCtxSynchronize";
        pthread_mutex_lock(&finish.lock);
        r = finish_wait(deadline_ns); /* for one that was left behind */
        if (r == 0) {
                r = finish_start();
                if (r < 0)
                        *ret_call = "pthread_create";
        }
        if (r == 0)
                r = finish_wait(deadline_ns);
        if (r == 0 && finish.result != CUDA_SUCCESS) {
                *ret_code = finish.result;
                *ret_call = finish.call;
                r = -EIO;
        }
        pthread_mutex_unlock(&finish.lock);
        return r;
}

void drain_forget(void)
{
        pthread_mutex_init(&finish.lock, NULL);
        pthread_cond_init(&finish.changed, NULL);
        finish.is_running = false;
}
