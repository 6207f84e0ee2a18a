/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: a list of work that was captured. */

#include "sim/graph.h"

#include <stdlib.h>

#include "sim/process.h"

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

CUgraph graph_copy(const struct CUgraph_st *graph)
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
