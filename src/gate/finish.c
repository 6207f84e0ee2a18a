/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/finish.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"
#include "gate/caller.h"
#include "gate/child.h"
#include "gate/context.h"
#include "gate/entry.h"

/*
 * The driver's wait knows no deadline, so another thread does it, and is left behind when it takes
 * too long: it ends when the work does. Until then nothing else is finished, for a process with a
 * thread in such a call does not survive its checkpoint.
 */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_running;
        _Atomic bool is_stopped;
        CUresult result; /* of the last that ran */
        const char *call;
} finish = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static bool is_stopped(void)
{
        return atomic_load(&finish.is_stopped);
}

static void *run_finish(void *unused)
{
        int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        const char *call = NULL;
        CUresult result;

        (void)unused;
        caller_exempt();
        DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
        result = context_finish_all(is_stopped, &call);

        pthread_mutex_lock(&finish.lock);
        finish.result = result;
        finish.call = call;
        finish.is_running = false;
        pthread_cond_broadcast(&finish.changed);
        pthread_mutex_unlock(&finish.lock);
        return NULL;
}

/* With the lock held. */
static int wait_for_end(uint64_t until_ns)
{
        const struct timespec until = clock_timespec(until_ns);
        int r = 0;

        while (finish.is_running && r == 0)
                r = -pthread_cond_clockwait(&finish.changed, &finish.lock, CLOCK_MONOTONIC, &until);
        return finish.is_running ? -ETIMEDOUT : 0;
}

static int start(void)
{
        pthread_t thread;

        atomic_store(&finish.is_stopped, false);
        if (pthread_create(&thread, NULL, run_finish, NULL) != 0)
                return -ENOMEM;
        pthread_detach(thread);
        finish.is_running = true;
        return 0;
}

int finish_all(uint64_t until_ns, const char **ret_call, CUresult *ret_code)
{
        int r;

        *ret_call = "cuCtxSynchronize";
        pthread_mutex_lock(&finish.lock);
        r = wait_for_end(until_ns); /* for one that was left behind */
        if (r == 0) {
                r = start();
                if (r < 0)
                        *ret_call = "pthread_create";
        }
        if (r == 0)
                r = wait_for_end(until_ns);
        if (r == 0 && finish.result != CUDA_SUCCESS) {
                *ret_code = finish.result;
                *ret_call = finish.call;
                r = -EIO;
        }
        pthread_mutex_unlock(&finish.lock);
        return r;
}

void finish_stop(void)
{
        atomic_store(&finish.is_stopped, true);
}

void finish_forget(void)
{
        pthread_mutex_init(&finish.lock, NULL);
        pthread_cond_init(&finish.changed, NULL);
        finish.is_running = false;
}
