/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/entry.h"
#include "gate/graph.h"
#include "gate/pool-internal.h"

#define EVENT_WITHOUT_TIMING 2

/* Streams. */

bool stream_is_named(const struct pool_stream *stream)
{
        return stream->handle && stream->handle != CU_STREAM_LEGACY &&
               stream->handle != CU_STREAM_PER_THREAD;
}

/* What is no stream, the driver is to say so. */
bool stream_is_one(const struct pool_stream *stream)
{
        int status;

        return !stream_is_named(stream) ||
               DRIVER(cuStreamIsCapturing)(stream->handle, &status) == CUDA_SUCCESS;
}

bool stream_is_captured(const struct pool_stream *stream)
{
        CUgraph graph;

        return capture_is_active() &&
               graph_capture_find(stream->handle, stream->is_per_thread, &graph);
}

/* What tells streams apart: see capture.c. */
struct stock_key stream_key(const struct pool_stream *stream)
{
        struct stock_key key = { .stream = stream->handle };

        if (stream_is_named(stream))
                return key;
        if (stream->handle == CU_STREAM_PER_THREAD || (!stream->handle && stream->is_per_thread))
                key.stream = caller_self_get();
        else
                key.stream = CU_STREAM_LEGACY;
        DRIVER(cuCtxGetCurrent)(&key.context);
        return key;
}

/* Marks. */

/* An event of the current context, @context. */
static CUresult mark_get(struct stock_mark **ret_mark, CUcontext context)
{
        struct stock_mark **link = &pools.unused_marks;
        struct stock_mark *mark;
        CUresult result;

        pthread_mutex_lock(&pools.lock);
        while (*link && (*link)->context != context)
                link = &(*link)->next;
        mark = *link;
        if (mark) {
                *link = mark->next;
                mark->n_users = 1;
                mark->is_done = false;
        }
        pthread_mutex_unlock(&pools.lock);
        *ret_mark = mark;
        if (mark)
                return CUDA_SUCCESS;
        mark = calloc(1, sizeof(*mark));
        if (!mark)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *mark = (struct stock_mark){ .home = &pools.unused_marks,
                                     .context = context,
                                     .n_users = 1 };
        result = DRIVER(cuEventCreate)(&mark->event, EVENT_WITHOUT_TIMING);
        if (result == CUDA_SUCCESS) {
                *ret_mark = mark;
                atomic_store(&pools.is_used, true); /* it must go with its context */
        } else {
                free(mark);
        }
        return result;
}

void mark_drop(struct stock_mark *mark)
{
        pthread_mutex_lock(&pools.lock);
        stock_mark_drop(mark);
        pthread_mutex_unlock(&pools.lock);
}

/* With the stream's context current. */
static CUresult mark_record(struct stock_mark **ret_mark, CUcontext context,
                            const struct pool_stream *stream)
{
        CUresult result = mark_get(ret_mark, context);

        if (result != CUDA_SUCCESS)
                return result;
        (*ret_mark)->begin = atomic_fetch_add(&pools.n_moments, 1);
        result = stream->is_per_thread
                         ? DRIVER(cuEventRecord_ptsz)((*ret_mark)->event, stream->handle)
                         : DRIVER(cuEventRecord)((*ret_mark)->event, stream->handle);
        (*ret_mark)->end = atomic_fetch_add(&pools.n_moments, 1);
        if (result != CUDA_SUCCESS) {
                mark_drop(*ret_mark);
                *ret_mark = NULL;
        }
        return result;
}

static CUresult mark_record_in(struct stock_mark **ret_mark, CUcontext context,
                               const struct pool_stream *stream)
{
        CUresult result = DRIVER(cuCtxPushCurrent_v2)(context);

        if (result != CUDA_SUCCESS)
                return result;
        result = mark_record(ret_mark, context, stream);
        DRIVER(cuCtxPopCurrent_v2)(&context);
        return result;
}

/* The current context need not be the stream's; that of a handle which may be none must not be asked for. */
CUresult mark_make(struct stock_mark **ret_mark, const struct pool_stream *stream)
{
        CUcontext context = NULL, own = NULL;
        CUresult result;

        *ret_mark = NULL;
        result = DRIVER(cuCtxGetCurrent)(&context);
        if (result == CUDA_SUCCESS && !context)
                result = CUDA_ERROR_INVALID_CONTEXT;
        if (result == CUDA_SUCCESS)
                result = mark_record(ret_mark, context, stream);
        if (result == CUDA_SUCCESS || !stream_is_named(stream))
                return result;
        if (!stream_is_one(stream) ||
            DRIVER(cuStreamGetCtx)(stream->handle, &own) != CUDA_SUCCESS || own == context)
                return result;
        return mark_record_in(ret_mark, own, stream);
}

/* Of some streams no event can be had that we could use (those of green contexts, say). */
CUresult mark_wait_instead(CUresult result, const struct pool_stream *stream)
{
        if ((result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_INVALID_CONTEXT) ||
            !stream_is_named(stream) || !stream_is_one(stream) || capture_is_active())
                return result;
        return DRIVER(cuStreamSynchronize)(stream->handle);
}

/* With idle_hold(). */
CUresult mark_wait(const struct stock_mark *mark, const struct pool_stream *stream)
{
        if (mark->is_done)
                return CUDA_SUCCESS;
        return stream->is_per_thread
                       ? DRIVER(cuStreamWaitEvent_ptsz)(stream->handle, mark->event, 0)
                       : DRIVER(cuStreamWaitEvent)(stream->handle, mark->event, 0);
}

void mark_drop_unused(CUcontext context)
{
        struct stock_mark **link = &pools.unused_marks, *mark;

        while ((mark = *link)) {
                if (mark->context != context) {
                        link = &mark->next;
                        continue;
                }
                *link = mark->next;
                free(mark);
        }
        while ((mark = pools.ended_marks)) {
                pools.ended_marks = mark->next;
                free(mark);
        }
}
