/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: allocation and free nodes, and the memory that they stand for. */

#include <stdlib.h>

#include "sim/graph.h"
#include "sim/memory.h"

struct piece {
        struct piece *next;
        uint64_t address, id; /* of the region */
};

struct graph_memory {
        unsigned int refs;
        struct piece *first;
};

struct graph_memory *graph_memory_ref(struct graph_memory *memory)
{
        if (memory)
                memory->refs++;
        return memory;
}

/* Pieces are looked up again: the program may have freed the region. */
static void piece_free(struct piece *piece)
{
        struct region *region = memory_find(piece->address);

        if (region && region->id == piece->id)
                memory_release(region);
        free(piece);
}

struct graph_memory *graph_memory_unref(struct graph_memory *memory)
{
        if (!memory || --memory->refs > 0)
                return NULL;
        while (memory->first) {
                struct piece *piece = memory->first;

                memory->first = piece->next;
                piece_free(piece);
        }
        free(memory);
        return NULL;
}

static struct graph_memory *get_memory(CUgraph graph)
{
        if (!graph->memory) {
                graph->memory = calloc(1, sizeof(*graph->memory));
                if (graph->memory)
                        graph->memory->refs = 1;
        }
        return graph->memory;
}

CUresult graph_allocate(CUgraph graph, CUcontext context, size_t size, CUdeviceptr *ret_pointer)
{
        CLEANUP(work_freep) struct work *node = work_new(WORK_NOTHING);
        CLEANUP(freep) struct piece *piece = malloc(sizeof(*piece));
        struct region *region;
        CUresult result;

        if (!node || !piece || !get_memory(graph))
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = memory_allocate(&region, REGION_GRAPH, context, NULL, size);
        if (result != CUDA_SUCCESS)
                return result;
        region->context = NULL;
        piece->address = region->range.address;
        piece->id = region->id;
        piece->next = graph->memory->first;
        graph->memory->first = TAKE(piece);
        graph_add(graph, TAKE(node));
        *ret_pointer = region->range.address;
        return CUDA_SUCCESS;
}

CUresult graph_release(CUgraph graph, CUdeviceptr pointer)
{
        const struct region *region = memory_find(pointer);
        struct work *node;

        if (!region || region->kind != REGION_GRAPH || region->range.address != pointer)
                return CUDA_ERROR_INVALID_VALUE;
        node = work_new(WORK_NOTHING);
        if (!node)
                return CUDA_ERROR_OUT_OF_MEMORY;
        graph_add(graph, node);
        return CUDA_SUCCESS;
}

/* With the graph and its last node for the caller, when the graph is one. */
static CUresult tell_node(CUresult result, CUgraphNode *node, CUgraph graph)
{
        if (result == CUDA_SUCCESS)
                *node = (CUgraphNode)(void *)((char *)graph->last - offsetof(struct work, next));
        return result;
}

static CUresult add_allocation(CUgraphNode *node, CUgraph graph, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
        CUcontext context;
        CUresult result = context_get(&context);

        if (result != CUDA_SUCCESS)
                return result;
        if (!node || !object_find(graph, OBJECT_GRAPH) || !params || params->bytesize == 0 ||
            params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
            params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        result = graph_allocate(graph, context, params->bytesize, &params->dptr);
        return tell_node(result, node, graph);
}

static CUresult add_free(CUgraphNode *node, CUgraph graph, CUdeviceptr pointer)
{
        if (!node || !object_find(graph, OBJECT_GRAPH))
                return CUDA_ERROR_INVALID_VALUE;
        return tell_node(graph_release(graph, pointer), node, graph);
}

CUresult sim_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
                                    const CUgraphNode *dependencies, size_t n,
                                    CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
        PROCESS_LOCKED();

        (void)dependencies;
        (void)n;
        return add_allocation(node, graph, params);
}

CUresult sim_cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph,
                                   const CUgraphNode *dependencies, size_t n, CUdeviceptr pointer)
{
        PROCESS_LOCKED();

        (void)dependencies;
        (void)n;
        return add_free(node, graph, pointer);
}

CUresult sim_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t n, CUgraphNodeParams *params)
{
        PROCESS_LOCKED();

        (void)dependencies;
        (void)n;
        if (!params)
                return CUDA_ERROR_INVALID_VALUE;
        if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
                return add_allocation(node, graph, &params->alloc);
        if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
                return add_free(node, graph, params->free);
        return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               const void *edges, size_t n, CUgraphNodeParams *params)
{
        (void)edges;
        return sim_cuGraphAddNode(node, graph, dependencies, n, params);
}
