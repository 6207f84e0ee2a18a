/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's calls for events. */

#include <stdlib.h>

#include "sim/capture.h"
#include "sim/event.h"
#include "sim/green.h"
#include "sim/stream.h"

CUresult sim_cuEventCreate(CUevent *ret_event, unsigned int flags)
{
        CUcontext context;
        CUevent event;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!ret_event)
                return CUDA_ERROR_INVALID_VALUE;
        event = calloc(1, sizeof(*event));
        if (!event)
                return CUDA_ERROR_OUT_OF_MEMORY;
        event->flags = flags;
        event->refs = 1;
        object_add(&event->object, OBJECT_EVENT);
        *ret_event = event;
        return CUDA_SUCCESS;
}

CUresult sim_cuEventDestroy_v2(CUevent event)
{
        PROCESS_LOCKED();

        if (!object_find(event, OBJECT_EVENT))
                return CUDA_ERROR_INVALID_HANDLE;
        object_remove(&event->object);
        (void)event_unref(event);
        return CUDA_SUCCESS;
}

/* Takes @work. */
static CUresult submit_record(CUevent event, CUstream stream, struct work *work)
{
        CUresult result;

        work->record.event = event;
        work->record.generation = event->generation + 1;
        event->refs++;
        result = stream_submit_locked(stream, work);
        if (result != CUDA_SUCCESS) {
                event->refs--;
                return result;
        }
        event->generation++;
        event->capture = 0;
        (void)stream_ref(stream);
        if (event->stream)
                (void)stream_unref(event->stream);
        event->stream = stream;
        event->number = stream->issued;
        return CUDA_SUCCESS;
}

static CUresult record_locked(CUevent event, CUstream stream)
{
        struct work *work = work_new(WORK_RECORD);

        return work ? submit_record(event, stream, work) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* In a capture an event is no work: it only says where a later wait joins. */
static CUresult record_in_capture(CUevent event, CUstream stream)
{
        if (capture_is_invalid(stream->capture))
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        event->capture = capture_get_id(stream->capture);
        return CUDA_SUCCESS;
}

CUresult sim_cuEventRecord(CUevent event, CUstream handle)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        if (!object_find(event, OBJECT_EVENT))
                return CUDA_ERROR_INVALID_HANDLE;
        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS)
                return result;
        return stream->capture ? record_in_capture(event, stream) : record_locked(event, stream);
}

CUresult sim_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
        return flags > 1 ? CUDA_ERROR_INVALID_VALUE : sim_cuEventRecord(event, stream);
}

/* Behind all streams of the context: the event's work depends on each. */
static CUresult record_behind_all_locked(CUevent event, CUcontext context)
{
        CLEANUP(work_freep) struct work *work = NULL;
        CUstream last = context->legacy;
        int r = 0;

        if (capture_invalidate_context(context))
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        work = work_new(WORK_RECORD);
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;
        for (CUcontext part = process.contexts; part; part = part->next)
                for (CUstream stream = part->streams; r == 0 && stream; stream = stream->next)
                        if (context_is_in(part, context))
                                r = work_depend(work, stream, stream->issued);
        if (r < 0) {
                work_drop_dependencies(work);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        return submit_record(event, last, TAKE(work));
}

CUresult sim_cuCtxRecordEvent(CUcontext context, CUevent event)
{
        PROCESS_LOCKED();

        if (!object_find(event, OBJECT_EVENT))
                return CUDA_ERROR_INVALID_HANDLE;
        if (!context_find(context))
                return CUDA_ERROR_INVALID_CONTEXT;
        return record_behind_all_locked(event, context);
}

CUresult sim_cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
        CUcontext context;
        PROCESS_LOCKED();

        if (!object_find(event, OBJECT_EVENT))
                return CUDA_ERROR_INVALID_HANDLE;
        context = green_find(green);
        return context ? record_behind_all_locked(event, context) : CUDA_ERROR_INVALID_CONTEXT;
}

static bool has_happened(CUevent event)
{
        return !event->stream || event->stream->done >= event->number;
}

CUresult sim_cuEventQuery(CUevent event)
{
        PROCESS_LOCKED();

        if (!object_find(event, OBJECT_EVENT))
                return CUDA_ERROR_INVALID_HANDLE;
        if (capture_find(event->capture))
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (has_happened(event))
                return event->stream ? context_owner(event->stream->context)->fault : CUDA_SUCCESS;
        return CUDA_ERROR_NOT_READY;
}

CUresult sim_cuEventSynchronize(CUevent event)
{
        PROCESS_LOCKED();

        if (!object_find(event, OBJECT_EVENT))
                return CUDA_ERROR_INVALID_HANDLE;
        if (capture_invalidate_unsafe() || capture_find(event->capture))
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (!event->stream)
                return CUDA_SUCCESS;
        stream_wait(event->stream, event->number);
        return CUDA_SUCCESS;
}

CUresult sim_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
        PROCESS_LOCKED();

        if (!milliseconds)
                return CUDA_ERROR_INVALID_VALUE;
        if (!object_find(start, OBJECT_EVENT) || !object_find(end, OBJECT_EVENT) ||
            ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) || !start->stream ||
            !end->stream)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!has_happened(start) || !has_happened(end))
                return CUDA_ERROR_NOT_READY;
        *milliseconds = (float)((double)(int64_t)(end->time - start->time) * 1e-6);
        return CUDA_SUCCESS;
}

CUresult sim_cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
        CLEANUP(work_freep) struct work *work = NULL;
        struct capture *capture;
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        (void)flags;
        if (!object_find(event, OBJECT_EVENT))
                return CUDA_ERROR_INVALID_HANDLE;
        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS)
                return result;
        capture = capture_find(event->capture);
        if (capture)
                return capture_join(capture, stream);
        if (stream->capture)
                return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        if (has_happened(event))
                return CUDA_SUCCESS;
        work = work_new(WORK_NOTHING);
        if (!work || work_depend(work, event->stream, event->number) < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;
        return stream_submit_locked(stream, TAKE(work));
}
