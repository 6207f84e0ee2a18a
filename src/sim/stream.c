/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: queues of work, each run in order by a thread of its own.
 *
 * A thread for each stream, made when the stream first has work: streams are
 * independent, and a host function that waits for another stream must not keep
 * that one from running. A synchronous call needs no thread: it waits for what
 * is before it and does its work itself.
 */

#include "sim/stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "sim/call.h"
#include "sim/capture.h"
#include "sim/work-run.h"

static void leave_list(CUstream stream)
{
        CUstream *link = &stream->context->streams;

        while (*link != stream)
                link = &(*link)->next;
        *link = stream->next;
        stream->is_listed = false;
}

/* The handle ends at once. What was issued goes on, and whoever waits for the context waits for it. */
static void destroy(CUstream stream)
{
        object_remove(&stream->object);
        stream->is_destroyed = true;
        process_tell_locked();
        if (!stream->first) {
                leave_list(stream);
                (void)stream_unref(stream);
        }
}

static bool is_legacy(CUstream stream)
{
        return stream == stream->context->legacy;
}

/* The legacy stream waits for all blocking ones of its context, and they for it. */
static int depend_on_default(struct work *work, CUstream stream)
{
        CUcontext context = stream->context;
        int r = 0;

        if (stream->flags & CU_STREAM_NON_BLOCKING)
                return 0;
        if (!is_legacy(stream))
                return work_depend(work, context->legacy, context->legacy->issued);
        for (CUstream other = context->streams; other && r == 0; other = other->next)
                if (other != stream && !(other->flags & CU_STREAM_NON_BLOCKING))
                        r = work_depend(work, other, other->issued);
        return r;
}

static void wait_for_dependencies(struct work *work)
{
        for (struct dependency *one = work->dependencies; one; one = one->next)
                stream_wait(one->stream, one->number);
        work_drop_dependencies(work);
}

/* The lock is given up while the work runs. */
static void run_first(CUstream stream)
{
        struct work *work = stream->first;
        CUresult result;

        wait_for_dependencies(work);
        (void)pthread_mutex_unlock(&process.lock);
        result = work_run(work, stream);
        (void)pthread_mutex_lock(&process.lock);

        stream->first = work->next;
        if (!stream->first)
                stream->last = &stream->first;
        stream->done = work->number;
        if (result != CUDA_SUCCESS && !context_owner(stream->context)->fault)
                context_owner(stream->context)->fault = result;
        process.n_pending--;
        stream->context->n_pending--;
        (void)work_free(work);
        process_tell_locked();
        call_tell_progress();
}

static void *run_stream(void *argument)
{
        CUstream stream = argument;
        PROCESS_LOCKED();

        (void)pthread_setname_np(pthread_self(), "cuda-stream");
        while (stream->first || !stream->is_destroyed) {
                if (stream->first)
                        run_first(stream);
                else
                        process_wait_locked();
        }
        if (stream->is_listed) {
                leave_list(stream);
                stream->refs--;
        }
        (void)stream_unref(stream);
        return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(CUstream stream)
{
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        int r;

        if (stream->has_thread)
                return 0;
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        (void)pthread_attr_init(&attributes);
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&thread, &attributes, run_stream, stream);
        (void)pthread_attr_destroy(&attributes);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r == 0) {
                stream->has_thread = true;
                (void)stream_ref(stream);
        }
        return -r;
}

static CUresult enqueue(CUstream stream, struct work *work)
{
        if (depend_on_default(work, stream) < 0 || start_thread(stream) < 0) {
                work_drop_dependencies(work);
                (void)work_free(work);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        work->stream = stream;
        work->number = ++stream->issued;
        *stream->last = work;
        stream->last = &work->next;
        process.n_pending++;
        stream->context->n_pending++;
        process_tell_locked();
        return CUDA_SUCCESS;
}

CUresult stream_submit_locked(CUstream stream, struct work *work)
{
        bool waits = work->waits;
        CUresult result;

        if (stream->capture)
                return capture_add(stream->capture, work);
        if (is_legacy(stream) && capture_invalidate_blocking(stream->context)) {
                work_drop_dependencies(work);
                (void)work_free(work);
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
        result = enqueue(stream, work);
        if (result == CUDA_SUCCESS && waits)
                stream_wait(stream, stream->issued);
        return result;
}

CUresult stream_submit(CUstream handle, struct work *work)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS) {
                work_drop_dependencies(work);
                (void)work_free(work);
                return result;
        }
        return stream_submit_locked(stream, work);
}

static CUresult wait_for_turn(CUstream *ret_stream, struct work *work)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, NULL);
        if (result != CUDA_SUCCESS)
                return result;
        if (stream->capture && capture_invalidate(stream->capture))
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (is_legacy(stream) && capture_invalidate_blocking(stream->context))
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        if (depend_on_default(work, stream) < 0 || work_depend(work, stream, stream->issued) < 0) {
                work_drop_dependencies(work);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        wait_for_dependencies(work);
        *ret_stream = stream_ref(stream);
        return context_owner(stream->context)->fault;
}

static void drop_stream(CUstream stream)
{
        PROCESS_LOCKED();

        (void)stream_unref(stream);
}

CUresult stream_run(struct work *taken)
{
        CLEANUP(work_freep) struct work *work = taken;
        CUstream stream = NULL;
        CUresult result;

        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = wait_for_turn(&stream, work);
        if (result == CUDA_SUCCESS)
                result = work_run(work, stream);
        if (stream)
                drop_stream(stream);
        return result;
}

void stream_wait(CUstream stream, uint64_t number)
{
        (void)stream_ref(stream);
        while (stream->done < number)
                process_wait_locked();
        (void)stream_unref(stream);
}

static bool stream_is_idle(CUstream stream)
{
        return stream->done == stream->issued;
}

/* What was issued before this call; more may come meanwhile, from other threads. */
void stream_wait_for_context(CUcontext context)
{
        struct work all = { .kind = WORK_NOTHING };

        for (CUcontext part = process.contexts; part; part = part->next)
                for (CUstream stream = part->streams; stream; stream = stream->next)
                        if (context_is_in(part, context) &&
                            work_depend(&all, stream, stream->issued) < 0)
                                stream_wait(stream, stream->issued);
        wait_for_dependencies(&all);
}

void stream_destroy_all(CUcontext context)
{
        while (context->n_pending)
                process_wait_locked();
        while (context->streams) {
                CUstream stream = context->streams;

                if (!stream->is_destroyed) {
                        destroy(stream);
                } else { /* its thread has yet to see that it is done */
                        leave_list(stream);
                        (void)stream_unref(stream);
                }
        }
}

CUresult sim_cuStreamCreateWithPriority(CUstream *ret_stream, unsigned int flags, int priority)
{
        CUcontext context;
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get_own(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!ret_stream || (flags & ~CU_STREAM_NON_BLOCKING))
                return CUDA_ERROR_INVALID_VALUE;
        stream = context_has_room(context) ? stream_new(context, flags, priority) : NULL;
        if (!stream)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *ret_stream = stream;
        return CUDA_SUCCESS;
}

CUresult sim_cuStreamCreate(CUstream *stream, unsigned int flags)
{
        return sim_cuStreamCreateWithPriority(stream, flags, 0);
}

/* Queued work goes on, as the interface promises. */
CUresult sim_cuStreamDestroy_v2(CUstream handle)
{
        CUstream stream;
        PROCESS_LOCKED();

        stream = object_find(handle, OBJECT_STREAM);
        if (!stream || is_legacy(stream))
                return CUDA_ERROR_INVALID_HANDLE;
        if (stream_is_detached(stream))
                return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        if (stream->capture)
                capture_drop_stream(stream);
        destroy(stream);
        return CUDA_SUCCESS;
}

/* Waiting for a stream is not allowed while it, or what it would wait for, is captured. */
static CUresult check_captures(CUstream stream)
{
        if (stream->capture && capture_invalidate(stream->capture))
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (capture_invalidate_unsafe())
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (is_legacy(stream) && capture_invalidate_blocking(stream->context))
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        return CUDA_SUCCESS;
}

CUresult sim_cuStreamSynchronize(CUstream handle)
{
        struct work all = { .kind = WORK_NOTHING };
        CUcontext context;
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, handle);
        if (result == CUDA_SUCCESS)
                result = check_captures(stream);
        if (result != CUDA_SUCCESS)
                return result;
        context = stream->context;
        if (work_depend(&all, stream, stream->issued) < 0 ||
            (is_legacy(stream) && depend_on_default(&all, stream) < 0)) {
                work_drop_dependencies(&all);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        wait_for_dependencies(&all);
        return context_find(context) ? context_owner(context)->fault : CUDA_SUCCESS;
}

CUresult sim_cuStreamQuery(CUstream handle)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, handle);
        if (result == CUDA_SUCCESS)
                result = check_captures(stream);
        if (result != CUDA_SUCCESS)
                return result;
        return stream_is_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
