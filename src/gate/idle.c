/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/idle.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/child.h"
#include "gate/context.h"
#include "gate/entry.h"
#include "gate/idle-lock.h"

/* Events in as many contexts; a process with more is taken to have work always. */
#define CONTEXTS_MAX 16

#define EVENT_WITHOUT_TIMING 2

/* From the mark until a context that has nothing to do has reached it. */
#define LOOK_NS 1000000

static struct {
        struct {
                CUcontext context;
                CUevent event;
                bool is_pending;
        } mark[CONTEXTS_MAX];
        size_t n;
        bool is_leaving; /* the process is: the driver must be left alone */
        bool is_watching_exit;
} idle; /* under the lock of idle-lock.h */

/* Registered after the driver's own, and so called before them. */
static void leave(void)
{
        idle_hold();
        idle.is_leaving = true;
        idle_release();
}

static CUresult make_event(CUcontext context, CUevent *ret_event)
{
        CUcontext current = NULL;
        CUresult result = DRIVER(cuCtxPushCurrent_v2)(context);

        if (result != CUDA_SUCCESS)
                return result;
        result = DRIVER(cuEventCreate)(ret_event, EVENT_WITHOUT_TIMING);
        DRIVER(cuCtxPopCurrent_v2)(&current);
        return result;
}

static CUresult mark_context(CUcontext context)
{
        CUresult result;
        size_t i;

        for (i = 0; i < idle.n && idle.mark[i].context != context; i++)
                ;
        if (i == CONTEXTS_MAX)
                return CUDA_ERROR_NOT_SUPPORTED;
        if (i == idle.n) {
                result = make_event(context, &idle.mark[i].event);
                if (result != CUDA_SUCCESS)
                        return result;
                idle.mark[i].context = context;
                idle.n++;
        }
        result = DRIVER(cuCtxRecordEvent)(context, idle.mark[i].event);
        idle.mark[i].is_pending = result == CUDA_SUCCESS;
        return result;
}

/* May the driver be asked now? Then finish() after it. What the thread is in is what the program calls (entrance.c). */
static int start(void)
{
        if (!idle_try_hold())
                return -EBUSY;
        if (!idle.is_leaving && !capture_is_active() && caller_begin(caller_get_call()))
                return 0;
        idle_release();
        return -EBUSY;
}

static void finish(void)
{
        caller_end();
        idle_release();
}

int idle_mark(void)
{
        CUresult result;

        if (!entry_has(cuCtxRecordEvent))
                return -ENOTSUP;
        if (start() < 0)
                return -EBUSY;
        if (!idle.is_watching_exit)
                idle.is_watching_exit = atexit(leave) == 0;
        result = context_each(mark_context);
        finish();
        if (result == CUDA_ERROR_NOT_SUPPORTED)
                return -ENOTSUP;
        return result == CUDA_SUCCESS ? 0 : -EIO;
}

bool idle_is_reached(void)
{
        bool is_reached = true;

        if (start() < 0)
                return false;
        for (size_t i = 0; i < idle.n; i++) {
                if (!idle.mark[i].is_pending)
                        continue;
                if (DRIVER(cuEventQuery)(idle.mark[i].event) == CUDA_ERROR_NOT_READY)
                        is_reached = false;
                else
                        idle.mark[i].is_pending = false;
        }
        finish();
        return is_reached;
}

bool idle_look(void)
{
        const struct timespec moment = { .tv_nsec = LOOK_NS };
        size_t n_busy = 0;
        bool is_mixed;

        if (idle_mark() < 0)
                return false;
        nanosleep(&moment, NULL);
        (void)idle_is_reached();
        if (!idle_try_hold())
                return false;
        for (size_t i = 0; i < idle.n; i++)
                n_busy += idle.mark[i].is_pending;
        is_mixed = n_busy > 0 && n_busy < idle.n;
        idle_release();
        return is_mixed;
}

/* Who has the lock may have it for long: a context ends, say. */
bool idle_was_busy(CUcontext context)
{
        bool was_busy = false;

        context = context_owner(context);
        if (!idle_try_hold())
                return true;
        for (size_t i = 0; i < idle.n; i++)
                if (idle.mark[i].context == context)
                        was_busy = idle.mark[i].is_pending;
        idle_release();
        return was_busy;
}

void idle_drop_context(CUcontext context)
{
        for (size_t i = 0; i < idle.n; i++)
                if (idle.mark[i].context == context) {
                        idle.mark[i] = idle.mark[--idle.n]; /* its event ended with it */
                        return;
                }
}

void idle_forget(void)
{
        idle_lock_forget();
        idle.n = 0;
}
