/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/drain.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/context.h"
#include "gate/entry.h"
#include "gate/log.h"

/* Between two looks at the marks: short at first, as most calls return within microseconds. */
#define NAP_FIRST_NS 10000
#define NAP_LAST_NS  1000000

static int barrier_command; /* of membarrier(2), as far as it is there */

uint64_t drain_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

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

        if (drain_now() >= deadline_ns)
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
 * too long: it harms nobody and ends when the work does. The last one to leave frees.
 */
struct finish {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned int n_users;
        bool is_done;
        CUresult result;
        const char *call;
};

static struct finish *finish_new(void)
{
        struct finish *finish = calloc(1, sizeof(*finish));
        pthread_condattr_t attributes;

        if (!finish)
                return NULL;
        pthread_mutex_init(&finish->lock, NULL);
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&finish->changed, &attributes);
        pthread_condattr_destroy(&attributes);
        finish->n_users = 1;
        return finish;
}

static void finish_leave(struct finish *finish)
{
        bool is_last;

        pthread_mutex_lock(&finish->lock);
        is_last = --finish->n_users == 0;
        pthread_mutex_unlock(&finish->lock);
        if (!is_last)
                return;
        pthread_cond_destroy(&finish->changed);
        pthread_mutex_destroy(&finish->lock);
        free(finish);
}

static void *finish_run(void *argument)
{
        struct finish *finish = argument;
        int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        const char *call = NULL;
        CUresult result;

        caller_exempt();
        DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
        result = context_finish_all(&call);

        pthread_mutex_lock(&finish->lock);
        finish->result = result;
        finish->call = call;
        finish->is_done = true;
        pthread_cond_signal(&finish->changed);
        pthread_mutex_unlock(&finish->lock);
        finish_leave(finish);
        return NULL;
}

static bool finish_start(struct finish *finish)
{
        pthread_t thread;

        finish->n_users++;
        if (pthread_create(&thread, NULL, finish_run, finish) != 0) {
                finish->n_users--;
                return false;
        }
        pthread_detach(thread);
        return true;
}

static int finish_wait(struct finish *finish, uint64_t deadline_ns, const char **ret_call,
                       CUresult *ret_code)
{
        const struct timespec deadline = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
                                           .tv_nsec = (long)(deadline_ns % 1000000000u) };
        int r = 0;

        pthread_mutex_lock(&finish->lock);
        while (!finish->is_done && r == 0)
                r = -pthread_cond_timedwait(&finish->changed, &finish->lock, &deadline);
        if (finish->is_done) {
                *ret_code = finish->result;
                r = finish->result == CUDA_SUCCESS ? 0 : -EIO;
        }
        *ret_call = finish->call ? finish->call : "cuCtxSynchronize";
        pthread_mutex_unlock(&finish->lock);
        return r;
}

int drain_finish(uint64_t deadline_ns, const char **ret_call, CUresult *ret_code)
{
        struct finish *finish = finish_new();
        int r;

        *ret_call = "pthread_create";
        if (!finish)
                return -ENOMEM;
        r = finish_start(finish) ? finish_wait(finish, deadline_ns, ret_call, ret_code) : -EAGAIN;
        finish_leave(finish);
        return r;
}
