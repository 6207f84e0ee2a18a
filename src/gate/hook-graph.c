/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that add allocation nodes to graphs, instantiate graphs, and destroy them. */
#include <stdbool.h>

#include "gate/current.h"
#include "gate/entry.h"
#include "gate/graph.h"
#include "gate/hook.h"
#include "gate/memory.h"
#include "gate/patience.h"
#include "gate/visible.h"

static bool may_allocate(const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
        return visible_has_location(&params->poolProps.location) &&
               visible_has_access(params->accessDescs, params->accessDescCount);
}

/* Where its memory will be. */
static CUdevice device_of(const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
        return params && params->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE
                       ? params->poolProps.location.id
                       : current_device();
}

/* What pools hold idle goes before the charge fails. */
static struct graph_memory *take_memory(uint64_t bytes, CUdevice device)
{
        struct graph_memory *memory;
        unsigned int n_tries = 0;

        do
                memory = graph_memory_new(bytes, device);
        while (!memory && memory_make_room(device, bytes, &n_tries));
        return memory;
}

CUresult our_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
                                    const CUgraphNode *dependencies, size_t n,
                                    CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
        struct graph_memory *memory;

        if (params && !may_allocate(params))
                return CUDA_ERROR_INVALID_DEVICE;
        memory = take_memory(params ? params->bytesize : 0, device_of(params));
        if (!memory)
                return CUDA_ERROR_OUT_OF_MEMORY;
        return graph_memory_keep(
                memory, DRIVER(cuGraphAddMemAllocNode)(node, graph, dependencies, n, params),
                graph);
}

static bool is_allocation(const CUgraphNodeParams *params)
{
        return params && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
}

CUresult our_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t n, CUgraphNodeParams *params)
{
        struct graph_memory *memory;
        CUgraphNodeParams space;

        if (!hook_is_node_good(params))
                return CUDA_ERROR_INVALID_VALUE;
        if (!is_allocation(params))
                return DRIVER(cuGraphAddNode)(node, graph, dependencies, n,
                                              hook_complete_node(params, &space));
        if (!may_allocate(&params->alloc))
                return CUDA_ERROR_INVALID_DEVICE;
        memory = take_memory(params->alloc.bytesize, device_of(&params->alloc));
        if (!memory)
                return CUDA_ERROR_OUT_OF_MEMORY;
        return graph_memory_keep(
                memory, DRIVER(cuGraphAddNode)(node, graph, dependencies, n, params), graph);
}

CUresult our_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               const void *edges, size_t n, CUgraphNodeParams *params)
{
        struct graph_memory *memory;
        CUgraphNodeParams space;

        if (!hook_is_node_good(params))
                return CUDA_ERROR_INVALID_VALUE;
        if (!is_allocation(params))
                return DRIVER(cuGraphAddNode_v2)(node, graph, dependencies, edges, n,
                                                 hook_complete_node(params, &space));
        if (!may_allocate(&params->alloc))
                return CUDA_ERROR_INVALID_DEVICE;
        memory = take_memory(params->alloc.bytesize, device_of(&params->alloc));
        if (!memory)
                return CUDA_ERROR_OUT_OF_MEMORY;
        return graph_memory_keep(
                memory, DRIVER(cuGraphAddNode_v2)(node, graph, dependencies, edges, n, params),
                graph);
}

CUresult our_cuGraphDestroy(CUgraph graph)
{
        struct graph_handle *handle = graph_handle_take(graph);

        return graph_handle_settle(handle, DRIVER(cuGraphDestroy)(graph));
}

CUresult our_cuGraphExecDestroy(CUgraphExec exec)
{
        struct graph_handle *handle = graph_handle_take(exec);

        return graph_handle_settle(handle, DRIVER(cuGraphExecDestroy)(exec));
}

/* The driver takes memory for what is instantiated. */

CUresult our_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                char *log, size_t log_size)
{
        struct patience patience = PATIENCE(cuGraphInstantiate);
        CUresult result;

        do
                result = DRIVER(cuGraphInstantiate)(exec, graph, error_node, log, log_size);
        while (patience_again(&patience, result));
        return graph_memory_share(result, graph, exec);
}

CUresult our_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                   char *log, size_t log_size)
{
        struct patience patience = PATIENCE(cuGraphInstantiate_v2);
        CUresult result;

        do
                result = DRIVER(cuGraphInstantiate_v2)(exec, graph, error_node, log, log_size);
        while (patience_again(&patience, result));
        return graph_memory_share(result, graph, exec);
}

CUresult our_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
        struct patience patience = PATIENCE(cuGraphInstantiateWithFlags);
        CUresult result;

        do
                result = DRIVER(cuGraphInstantiateWithFlags)(exec, graph, flags);
        while (patience_again(&patience, result));
        return graph_memory_share(result, graph, exec);
}

CUresult our_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *params)
{
        struct patience patience = PATIENCE(cuGraphInstantiateWithParams);
        CUresult result;

        do
                result = DRIVER(cuGraphInstantiateWithParams)(exec, graph, params);
        while (patience_again(&patience, result));
        return graph_memory_share(result, graph, exec);
}

CUresult our_cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *params)
{
        struct patience patience = PATIENCE(cuGraphInstantiateWithParams_ptsz);
        CUresult result;

        do
                result = DRIVER(cuGraphInstantiateWithParams_ptsz)(exec, graph, params);
        while (patience_again(&patience, result));
        return graph_memory_share(result, graph, exec);
}
