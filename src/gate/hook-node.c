/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of graphs that copy or set memory.
 *
 * A copy is looked at as one outside of graphs is (range.h); of sets the driver takes any.
 *
 * A node may have no context.
 * Such a node copies or sets ordinary memory, and the driver looks up the context in which the memory was
 * allocated. The gate's memory has none, for the driver: it gets the current one.
 */
#include <stdbool.h>

#include "gate/entry.h"
#include "gate/hook.h"
#include "gate/patience.h"
#include "gate/range.h"

static CUcontext node_context(CUcontext context, bool is_ours)
{
        if (!context && is_ours)
                (void)DRIVER(cuCtxGetCurrent)(&context);
        return context;
}

static CUcontext copy_context(const CUDA_MEMCPY3D *copy, CUcontext context)
{
        return node_context(context, copy && (hook_looks_ordinary(copy->srcDevice) ||
                                              hook_looks_ordinary(copy->dstDevice)));
}

static CUcontext set_context(const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
        return node_context(context, set && hook_looks_ordinary(set->dst));
}

CUgraphNodeParams *hook_complete_node(CUgraphNodeParams *params, CUgraphNodeParams *space)
{
        if (params && params->type == CU_GRAPH_NODE_TYPE_MEMCPY && !params->memcpy.copyCtx) {
                *space = *params;
                space->memcpy.copyCtx = copy_context(&params->memcpy.copyParams, NULL);
                return space;
        }
        if (params && params->type == CU_GRAPH_NODE_TYPE_MEMSET && !params->memset.ctx) {
                *space = *params;
                space->memset.ctx = set_context(&params->memset.is, NULL);
                return space;
        }
        return params;
}

static bool is_copy_good(const CUDA_MEMCPY3D *copy)
{
        return range_3d_is_good((uint64_t)(uintptr_t)copy);
}

bool hook_is_node_good(const CUgraphNodeParams *params)
{
        return !params || params->type != CU_GRAPH_NODE_TYPE_MEMCPY ||
               is_copy_good(&params->memcpy.copyParams);
}

CUresult our_cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t n, const CUDA_MEMCPY3D *copy, CUcontext context)
{
        if (!is_copy_good(copy))
                return CUDA_ERROR_INVALID_VALUE;
        return DRIVER(cuGraphAddMemcpyNode)(node, graph, dependencies, n, copy,
                                            copy_context(copy, context));
}

CUresult our_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t n, const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
        return DRIVER(cuGraphAddMemsetNode)(node, graph, dependencies, n, set,
                                            set_context(set, context));
}

CUresult our_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMCPY3D *copy, CUcontext context)
{
        struct patience patience = PATIENCE(cuGraphExecMemcpyNodeSetParams);
        CUresult result;

        if (!is_copy_good(copy))
                return CUDA_ERROR_INVALID_VALUE;
        context = copy_context(copy, context);
        do
                result = DRIVER(cuGraphExecMemcpyNodeSetParams)(exec, node, copy, context);
        while (patience_again(&patience, result));
        return result;
}

CUresult our_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
        struct patience patience = PATIENCE(cuGraphExecMemsetNodeSetParams);
        CUresult result;

        context = set_context(set, context);
        do
                result = DRIVER(cuGraphExecMemsetNodeSetParams)(exec, node, set, context);
        while (patience_again(&patience, result));
        return result;
}

CUresult our_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
        CUgraphNodeParams space;

        if (!hook_is_node_good(params))
                return CUDA_ERROR_INVALID_VALUE;
        return DRIVER(cuGraphNodeSetParams)(node, hook_complete_node(params, &space));
}

CUresult our_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
        struct patience patience = PATIENCE(cuGraphExecNodeSetParams);
        CUgraphNodeParams space;
        CUresult result;

        if (!hook_is_node_good(params))
                return CUDA_ERROR_INVALID_VALUE;
        params = hook_complete_node(params, &space);
        do
                result = DRIVER(cuGraphExecNodeSetParams)(exec, node, params);
        while (patience_again(&patience, result));
        return result;
}
