/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: a list of work that was captured.
 *
 * A graph is launched as its work one after the other: that is one of the orders
 * that its dependencies allow.
 */

#include "sim/graph.h"

#include <stdlib.h>

#include "sim/stream.h"

struct CUgraphExec_st {
        struct object object;
        CUgraph graph;   /* a copy */
        CUstream last;   /* in which it was launched, or NULL */
        uint64_t number; /* of what was submitted there */
};

CUgraph graph_new(void)
{
        CUgraph graph = calloc(1, sizeof(*graph));

        if (graph)
                graph->last = &graph->first;
        return graph;
}

CUgraph graph_free(CUgraph graph)
{
        while (graph && graph->first) {
                struct work *work = graph->first;

                graph->first = work->next;
                (void)work_free(work);
        }
        if (graph)
                graph_memory_unref(graph->memory);
        free(graph);
        return NULL;
}

void graph_add(CUgraph graph, struct work *work)
{
        *graph->last = work;
        graph->last = &work->next;
        graph->n++;
}

static CUgraph copy_graph(const struct CUgraph_st *graph)
{
        CUgraph copy = graph_new();

        if (copy)
                copy->memory = graph_memory_ref(graph->memory);
        for (const struct work *work = graph->first; copy && work; work = work->next) {
                struct work *same = work_copy(work);

                if (!same)
                        return graph_free(copy);
                graph_add(copy, same);
        }
        return copy;
}

CUresult sim_cuGraphCreate(CUgraph *ret_graph, unsigned int flags)
{
        CUgraph graph;
        PROCESS_LOCKED();

        if (!ret_graph || flags)
                return CUDA_ERROR_INVALID_VALUE;
        graph = graph_new();
        if (!graph)
                return CUDA_ERROR_OUT_OF_MEMORY;
        object_add(&graph->object, OBJECT_GRAPH);
        *ret_graph = graph;
        return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroy(CUgraph graph)
{
        PROCESS_LOCKED();

        if (!object_find(graph, OBJECT_GRAPH))
                return CUDA_ERROR_INVALID_VALUE;
        object_remove(&graph->object);
        (void)graph_free(graph);
        return CUDA_SUCCESS;
}

/* The nodes themselves can't be looked at, so only their number is told. */
CUresult sim_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
        PROCESS_LOCKED();

        if (!object_find(graph, OBJECT_GRAPH) || !n)
                return CUDA_ERROR_INVALID_VALUE;
        if (nodes)
                return CUDA_ERROR_NOT_SUPPORTED;
        *n = graph->n;
        return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *ret_exec, CUgraph graph,
                                         unsigned long long flags)
{
        CUgraphExec exec;
        PROCESS_LOCKED();

        (void)flags;
        if (!ret_exec || !object_find(graph, OBJECT_GRAPH))
                return CUDA_ERROR_INVALID_VALUE;
        exec = calloc(1, sizeof(*exec));
        if (exec)
                exec->graph = copy_graph(graph);
        if (!exec || !exec->graph) {
                free(exec);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
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
        (void)graph_free(exec->graph);
        free(exec);
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
