/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs. A launch submits the work of the graph one after the other: this is one of the
 * orders that its dependencies allow.
 */

#include <stdlib.h>

#include "sim/context.h"
#include "sim/graph.h"
#include "sim/memory-file.h"
#include "sim/stream.h"

struct CUgraphExec_st {
        struct object object;
        CUgraph graph;              /* a copy */
        struct memory_file *memory; /* what the driver takes of the device for it */
        CUstream last;              /* in which it was launched, or NULL */
        uint64_t number;            /* of what was submitted there */
};

static CUgraphExec exec_free(CUgraphExec exec)
{
        if (exec) {
                (void)memory_file_unref(exec->memory);
                (void)graph_free(exec->graph);
        }
        free(exec);
        return NULL;
}
DEFINE_CLEANUP(CUgraphExec, exec_free);

/* What a real driver needs depends on the graph; it takes that in pieces of a page. */
static CUresult exec_new(CUgraphExec *ret_exec, CUcontext context, CUgraph graph)
{
        CLEANUP(exec_freep) CUgraphExec exec = calloc(1, sizeof(*exec));
        CUresult result;

        if (exec)
                exec->graph = graph_copy(graph);
        if (!exec || !exec->graph)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = memory_file_create(&exec->memory, process.device[context->device].at, MEMORY_PAGE);
        if (result == CUDA_SUCCESS)
                *ret_exec = TAKE(exec);
        return result;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *ret_exec, CUgraph graph,
                                         unsigned long long flags)
{
        CUgraphExec exec;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        (void)flags;
        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!ret_exec || !object_find(graph, OBJECT_GRAPH))
                return CUDA_ERROR_INVALID_VALUE;
        result = exec_new(&exec, context, graph);
        if (result != CUDA_SUCCESS)
                return result;
        object_add(&exec->object, OBJECT_GRAPH_EXEC);
        *ret_exec = exec;
        return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                char *log, size_t log_size)
{
        if (error_node)
                *error_node = NULL;
        if (log && log_size)
                *log = '\0';
        return sim_cuGraphInstantiateWithFlags(exec, graph, 0);
}

/* Without its upload, its flags and what it tells of a failure. */
CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *params)
{
        return params ? sim_cuGraphInstantiateWithFlags(exec, graph, 0) : CUDA_ERROR_INVALID_VALUE;
}

static void forget_launch(CUgraphExec exec)
{
        if (exec->last)
                (void)stream_unref(exec->last);
        exec->last = NULL;
}

static void note_launch(CUgraphExec exec, CUstream stream)
{
        if (stream->capture) /* it is part of another graph */
                return;
        (void)stream_ref(stream);
        forget_launch(exec);
        exec->last = stream;
        exec->number = stream->issued;
}

CUresult sim_cuGraphExecDestroy(CUgraphExec exec)
{
        PROCESS_LOCKED();

        if (!object_find(exec, OBJECT_GRAPH_EXEC))
                return CUDA_ERROR_INVALID_VALUE;
        object_remove(&exec->object);
        forget_launch(exec);
        (void)exec_free(exec);
        return CUDA_SUCCESS;
}

CUresult sim_cuGraphUpload(CUgraphExec exec, CUstream handle)
{
        CUstream stream;
        PROCESS_LOCKED();

        if (!object_find(exec, OBJECT_GRAPH_EXEC))
                return CUDA_ERROR_INVALID_VALUE;
        return stream_find(&stream, handle);
}

static CUresult submit_copy(CUgraphExec exec, const struct work *work, CUstream stream)
{
        struct work *copy = work_copy(work);
        bool is_first = work == exec->graph->first;

        if (!copy)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (is_first && exec->last && !stream->capture &&
            work_depend(copy, exec->last, exec->number) < 0) {
                (void)work_free(copy);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        return stream_submit_locked(stream, copy);
}

/* Behind what is in the stream, and behind the launch before, in whatever stream that was. */
CUresult sim_cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        if (!object_find(exec, OBJECT_GRAPH_EXEC))
                return CUDA_ERROR_INVALID_VALUE;
        result = stream_find(&stream, handle);
        for (struct work *work = exec->graph->first; work && result == CUDA_SUCCESS;
             work = work->next)
                result = submit_copy(exec, work, stream);
        if (result == CUDA_SUCCESS)
                note_launch(exec, stream);
        return result;
}
