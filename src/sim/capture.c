/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: what is submitted to a capturing stream becomes a graph. */

#include "sim/capture.h"

#include <stdlib.h>

#include "sim/graph.h"

enum { STATUS_NONE, STATUS_ACTIVE, STATUS_INVALIDATED };

struct capture {
        struct capture *next; /* process.captures */
        CUstream origin;
        CUgraph graph;
        const void *thread; /* that began it */
        int mode;
        uint64_t id;
        bool is_invalid;
};

/* What this thread wants to be protected from; its address tells threads apart. */
static _Thread_local int thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

struct capture *capture_find(uint64_t id)
{
        struct capture *capture = process.captures;

        while (capture && capture->id != id)
                capture = capture->next;
        return capture;
}

uint64_t capture_get_id(const struct capture *capture)
{
        return capture->id;
}

bool capture_is_invalid(const struct capture *capture)
{
        return capture->is_invalid;
}

CUgraph capture_get_graph(const struct capture *capture)
{
        return capture->graph;
}

CUresult capture_add(struct capture *capture, struct work *work)
{
        if (capture->is_invalid) {
                work_drop_dependencies(work);
                (void)work_free(work);
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        work->waits = false;
        graph_add(capture->graph, work);
        return CUDA_SUCCESS;
}

CUresult capture_join(struct capture *capture, CUstream stream)
{
        if (stream->capture && stream->capture != capture)
                return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        if (capture->is_invalid)
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (stream == stream->context->legacy)
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        stream->capture = capture;
        return CUDA_SUCCESS;
}

bool capture_invalidate(struct capture *capture)
{
        capture->is_invalid = true;
        return true;
}

bool capture_invalidate_context(CUcontext context)
{
        bool found = false;

        for (CUcontext part = process.contexts; part; part = part->next)
                for (CUstream stream = part->streams; stream; stream = stream->next)
                        if (context_is_in(part, context) && stream->capture)
                                found = capture_invalidate(stream->capture);
        return found;
}

bool capture_invalidate_blocking(CUcontext context)
{
        bool found = false;

        for (CUstream stream = context->streams; stream; stream = stream->next)
                if (stream->capture && !(stream->flags & CU_STREAM_NON_BLOCKING))
                        found = capture_invalidate(stream->capture);
        return found;
}

static bool forbids(const struct capture *capture)
{
        if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
            thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
                return false;
        if (capture->thread == &thread_mode)
                return true;
        return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
               thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

bool capture_invalidate_unsafe(void)
{
        bool found = false;

        for (struct capture *capture = process.captures; capture; capture = capture->next)
                if (forbids(capture))
                        found = capture_invalidate(capture);
        return found;
}

/* Ends it; the graph is left to the caller. */
static CUgraph end(struct capture *capture)
{
        struct capture **link = &process.captures;
        CUgraph graph = capture->graph;

        for (CUcontext context = process.contexts; context; context = context->next)
                for (CUstream stream = context->streams; stream; stream = stream->next)
                        if (stream->capture == capture)
                                stream->capture = NULL;
        while (*link != capture)
                link = &(*link)->next;
        *link = capture->next;
        free(capture);
        return graph;
}

void capture_drop_stream(CUstream stream)
{
        if (stream->capture->origin == stream)
                (void)graph_free(end(stream->capture));
        else
                capture_invalidate(stream->capture);
}

void capture_drop_all(CUcontext context)
{
        for (CUstream stream = context->streams; stream; stream = stream->next)
                if (stream->capture)
                        capture_drop_stream(stream);
}

static CUresult begin(CUstream stream, int mode)
{
        struct capture *capture = calloc(1, sizeof(*capture));

        if (capture)
                capture->graph = graph_new();
        if (!capture || !capture->graph) {
                free(capture);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        capture->origin = stream;
        capture->thread = &thread_mode;
        capture->mode = mode;
        capture->id = process.next_id++;
        capture->next = process.captures;
        process.captures = capture;
        stream->capture = capture;
        return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCapture_v2(CUstream handle, int mode)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
                return CUDA_ERROR_INVALID_VALUE;
        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS)
                return result;
        if (stream == stream->context->legacy)
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (stream->capture)
                return CUDA_ERROR_ILLEGAL_STATE;
        return begin(stream, mode);
}

CUresult sim_cuStreamBeginCapture(CUstream stream)
{
        return sim_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult sim_cuStreamEndCapture(CUstream handle, CUgraph *ret_graph)
{
        CUstream stream;
        CUresult result;
        bool is_invalid;
        CUgraph graph;
        PROCESS_LOCKED();

        if (!ret_graph)
                return CUDA_ERROR_INVALID_VALUE;
        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS)
                return result;
        if (!stream->capture)
                return CUDA_ERROR_ILLEGAL_STATE;
        if (stream->capture->origin != stream)
                return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
        if (stream->capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
            stream->capture->thread != &thread_mode)
                return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
        is_invalid = stream->capture->is_invalid;
        graph = end(stream->capture);
        if (is_invalid) {
                (void)graph_free(graph);
                *ret_graph = NULL;
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        object_add(&graph->object, OBJECT_GRAPH);
        *ret_graph = graph;
        return CUDA_SUCCESS;
}

static int get_status(CUstream stream)
{
        if (!stream->capture)
                return STATUS_NONE;
        return stream->capture->is_invalid ? STATUS_INVALIDATED : STATUS_ACTIVE;
}

CUresult sim_cuStreamIsCapturing(CUstream handle, int *status)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        if (!status)
                return CUDA_ERROR_INVALID_VALUE;
        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS)
                return result;
        if (stream == stream->context->legacy && capture_invalidate_blocking(stream->context))
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        *status = get_status(stream);
        return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo(CUstream handle, int *status, uint64_t *id)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        if (!status)
                return CUDA_ERROR_INVALID_VALUE;
        result = stream_find(&stream, handle);
        if (result != CUDA_SUCCESS)
                return result;
        *status = get_status(stream);
        if (id && stream->capture)
                *id = stream->capture->id;
        return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                       const CUgraphNode **dependencies, size_t *n)
{
        CUstream found;
        CUresult result;

        if (dependencies)
                *dependencies = NULL;
        if (n)
                *n = 0;
        result = sim_cuStreamGetCaptureInfo(stream, status, id);
        if (result == CUDA_SUCCESS && graph) {
                PROCESS_LOCKED();

                *graph = NULL;
                if (stream_find(&found, stream) == CUDA_SUCCESS && found->capture)
                        *graph = found->capture->graph;
        }
        return result;
}

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                       const CUgraphNode **dependencies, const void **edges,
                                       size_t *n)
{
        if (edges)
                *edges = NULL;
        return sim_cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, n);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(int *mode)
{
        int before = thread_mode;

        if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
            *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
                return CUDA_ERROR_INVALID_VALUE;
        thread_mode = *mode;
        *mode = before;
        return CUDA_SUCCESS;
}
