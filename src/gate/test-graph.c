/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of graphs: charged as long as the driver may take it. */
#include <string.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"

static const struct instance_page_slot *slot;

static uint64_t charged(void)
{
        return slot->used[INSTANCE_PAGE_FIXED];
}

static void start(void)
{
        slot = &fake_guest_start(64 * MIB)->slot[FAKE_SLOT];
}

static CUDA_MEM_ALLOC_NODE_PARAMS allocation_of(size_t size)
{
        CUDA_MEM_ALLOC_NODE_PARAMS params;

        memset(&params, 0, sizeof(params));
        params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        params.bytesize = size;
        return params;
}

static CUgraphNodeParams node_of(size_t size)
{
        CUgraphNodeParams params;

        memset(&params, 0, sizeof(params));
        params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        params.alloc = allocation_of(size);
        return params;
}

FAKE_TEST(test_nodes_count_until_the_graph_and_what_came_of_it_are_gone)
{
        CUDA_MEM_ALLOC_NODE_PARAMS allocation = allocation_of(3 * MIB);
        CUgraphNodeParams params = node_of(4 * MIB), too_much = node_of(60 * MIB);
        CUgraphExec exec;
        CUgraphNode node;
        CUgraph graph;

        start();
        check(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
        check(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &allocation) == CUDA_SUCCESS);
        check(cuGraphAddNode(&node, graph, NULL, 0, &params) == CUDA_SUCCESS);
        check(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params) == CUDA_SUCCESS);
        check(charged() == 11 * MIB && slot->n_allocations == 3);
        check(cuGraphAddNode(&node, graph, NULL, 0, &too_much) == CUDA_ERROR_OUT_OF_MEMORY);
        check(cuGraphAddNode(&node, NULL, NULL, 0, &params) == CUDA_ERROR_INVALID_VALUE);
        check(charged() == 11 * MIB);

        check(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
        check(cuGraphDestroy(graph) == CUDA_SUCCESS);
        check(charged() == 11 * MIB);
        check(cuGraphDestroy(graph) == CUDA_ERROR_INVALID_VALUE);
        check(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
        check(charged() == 0 && slot->n_allocations == 0);

        check(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
        check(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &allocation) == CUDA_SUCCESS);
        check(cuGraphInstantiate(&exec, graph, NULL, NULL, 0) == CUDA_SUCCESS);
        check(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
        check(charged() == 3 * MIB);
        check(cuGraphDestroy(graph) == CUDA_SUCCESS);
        check(charged() == 0);
}

static void capture(CUstream stream)
{
        CUdeviceptr a, b;

        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&a, 3 * MIB, stream) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&b, 4 * MIB, stream) == CUDA_SUCCESS);
        check(cuMemsetD32Async(a, 1, 100, stream) == CUDA_SUCCESS);
        check(cuMemFreeAsync(a, stream) == CUDA_SUCCESS);
        check(charged() == 7 * MIB);
}

FAKE_TEST(test_captured_allocations_are_the_graphs)
{
        CUstream stream, other;
        CUgraphExec exec;
        CUdeviceptr c;
        CUgraph graph;

        start();
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        capture(stream);
        check(cuMemAllocAsync(&c, MIB, other) == CUDA_SUCCESS); /* not captured */
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check(cuMemFreeAsync(c, other) == CUDA_SUCCESS);
        check(charged() == 7 * MIB);
        check(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
        check(cuGraphDestroy(graph) == CUDA_SUCCESS);
        check(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        check(charged() == 7 * MIB);
        check(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
        check(charged() == 0 && slot->n_allocations == 0);
}

FAKE_TEST(test_what_a_capture_that_fails_has_allocated_counts_no_more)
{
        CUstream stream;
        CUgraph graph;

        start();
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        capture(stream);
        check(cuCtxSynchronize() != CUDA_SUCCESS); /* ruins it */
        check(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        check(charged() == 0 && slot->n_allocations == 0);
        capture(stream);
        check(cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
        check(charged() == 0 && slot->n_allocations == 0);
}

/* While the driver destroys a graph, another thread gets a new one with the same handle. */

static __typeof__(&cuGraphDestroy) real_destroy;

static CUresult add_anywhere(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
        (void)node;
        (void)graph;
        (void)dependencies;
        (void)n;
        (void)params;
        return CUDA_SUCCESS;
}

static CUresult destroy_and_make_another(CUgraph graph)
{
        CUDA_MEM_ALLOC_NODE_PARAMS allocation = allocation_of(5 * MIB);
        CUresult result = real_destroy(graph);
        CUgraphNode node;

        check(our_cuGraphAddMemAllocNode(&node, graph, NULL, 0, &allocation) == CUDA_SUCCESS);
        return result;
}

FAKE_TEST(test_a_graph_takes_no_charges_of_one_that_has_its_handle_next)
{
        CUDA_MEM_ALLOC_NODE_PARAMS allocation = allocation_of(3 * MIB);
        CUgraphNode node;
        CUgraph graph;

        start();
        check(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
        check(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &allocation) == CUDA_SUCCESS);
        real_destroy = DRIVER(cuGraphDestroy);
        entry_real[ENTRY_cuGraphDestroy] = (entry_function)destroy_and_make_another;
        entry_real[ENTRY_cuGraphAddMemAllocNode] = (entry_function)add_anywhere;
        check(our_cuGraphDestroy(graph) == CUDA_SUCCESS);
        check(charged() == 5 * MIB && slot->n_allocations == 1);
}

/* Nodes without a context: the driver is given one where the memory is the gate's. */

static CUcontext given;

static CUresult note_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                          size_t n, CUgraphNodeParams *params)
{
        (void)node;
        (void)graph;
        (void)dependencies;
        (void)n;
        given = params->type == CU_GRAPH_NODE_TYPE_MEMCPY ? params->memcpy.copyCtx
                                                          : params->memset.ctx;
        return CUDA_SUCCESS;
}

static CUresult note_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                          size_t n, const CUDA_MEMCPY3D *copy, CUcontext context)
{
        (void)node;
        (void)graph;
        (void)dependencies;
        (void)n;
        (void)copy;
        given = context;
        return CUDA_SUCCESS;
}

static CUresult note_params(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
        (void)exec;
        return note_node(&node, NULL, NULL, 0, params);
}

FAKE_TEST(test_a_node_without_a_context_gets_the_current_one_for_memory_of_the_gate)
{
        CUgraphNodeParams set = { .type = CU_GRAPH_NODE_TYPE_MEMSET },
                          copy = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
        CUcontext current, other = (CUcontext)&set;
        CUdeviceptr pooled, small;
        CUgraphNode node;

        start();
        check(cuCtxGetCurrent(&current) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&small, 1000) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&pooled, 1000, NULL) == CUDA_SUCCESS);
        entry_real[ENTRY_cuGraphAddNode] = (entry_function)note_node;
        entry_real[ENTRY_cuGraphAddMemcpyNode] = (entry_function)note_copy;
        entry_real[ENTRY_cuGraphExecNodeSetParams] = (entry_function)note_params;

        set.memset.is.dst = small + 100;
        check(cuGraphAddNode(&node, NULL, NULL, 0, &set) == CUDA_SUCCESS && given == current);
        check(!set.memset.ctx);
        set.memset.ctx = other;
        check(cuGraphAddNode(&node, NULL, NULL, 0, &set) == CUDA_SUCCESS && given == other);
        set.memset = (CUDA_MEMSET_NODE_PARAMS_v2){ .is.dst = (CUdeviceptr)(uintptr_t)&set };
        check(cuGraphAddNode(&node, NULL, NULL, 0, &set) == CUDA_SUCCESS && !given);

        copy.memcpy.copyParams.srcDevice = pooled;
        check(cuGraphExecNodeSetParams(NULL, NULL, &copy) == CUDA_SUCCESS && given == current);
        check(cuGraphAddMemcpyNode(&node, NULL, NULL, 0, &copy.memcpy.copyParams, NULL) ==
              CUDA_SUCCESS);
        check(given == current);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nodes_count_until_the_graph_and_what_came_of_it_are_gone),
                cmocka_unit_test(test_captured_allocations_are_the_graphs),
                cmocka_unit_test(test_what_a_capture_that_fails_has_allocated_counts_no_more),
                cmocka_unit_test(
                        test_a_node_without_a_context_gets_the_current_one_for_memory_of_the_gate),
                cmocka_unit_test(test_a_graph_takes_no_charges_of_one_that_has_its_handle_next),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
