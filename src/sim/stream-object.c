/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as objects: made, held, found, ended. */

#include "sim/stream-object.h"

#include <stdlib.h>

#include "sim/call.h"

static uint64_t this_thread(void)
{
        static _Thread_local uint64_t id;

        if (!id)
                id = process.next_id++;
        return id;
}

CUstream stream_new(CUcontext context, unsigned int flags, int priority)
{
        CUstream stream = calloc(1, sizeof(*stream));

        if (!stream)
                return NULL;
        stream->context = context;
        stream->flags = flags;
        stream->priority = priority;
        stream->id = process.next_id++;
        stream->refs = 1;
        stream->last = &stream->first;
        stream->engine = (struct engine)ENGINE_INIT;
        stream->next = context->streams;
        context->streams = stream;
        stream->is_listed = true;
        object_add(&stream->object, OBJECT_STREAM);
        return stream;
}

CUstream stream_ref(CUstream stream)
{
        stream->refs++;
        return stream;
}

CUstream stream_unref(CUstream stream)
{
        if (--stream->refs == 0) {
                engine_close(&stream->engine);
                free(stream);
        }
        return NULL;
}

static CUstream find_per_thread(CUcontext context)
{
        uint64_t thread = this_thread();

        for (CUstream stream = context->streams; stream; stream = stream->next)
                if (stream->thread == thread)
                        return stream;
        return NULL;
}

static CUresult get_per_thread(CUstream *ret_stream, CUcontext context)
{
        CUstream stream = find_per_thread(context);

        if (!stream)
                stream = stream_new(context, CU_STREAM_DEFAULT, 0);
        if (!stream)
                return CUDA_ERROR_OUT_OF_MEMORY;
        stream->thread = this_thread();
        *ret_stream = stream;
        return CUDA_SUCCESS;
}

bool stream_is_detached(CUstream stream)
{
        return !context_find(stream->context);
}

CUresult stream_find(CUstream *ret_stream, CUstream handle)
{
        CUcontext context;
        CUresult result;

        if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
                *ret_stream = object_find(handle, OBJECT_STREAM);
                if (!*ret_stream)
                        return CUDA_ERROR_INVALID_HANDLE;
                if (stream_is_detached(*ret_stream))
                        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
                return context_owner((*ret_stream)->context)->fault;
        }
        result = context_get_own(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (handle == CU_STREAM_PER_THREAD || (!handle && call_is_per_thread()))
                return get_per_thread(ret_stream, context);
        *ret_stream = context->legacy;
        return CUDA_SUCCESS;
}
