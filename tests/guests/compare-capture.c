/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: captures, and the graphs that come of them. */
#include <pthread.h>

#include "tests/guests/compare.h"
#include "tests/guests/kernels.h"

static CUcontext context;
static CUstream stream, other;
static CUdeviceptr small, large, kept; /* allocated before the capture */
static CUevent event;

static void start(void)
{
        context = compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
        must(DRIVER(cuMemAlloc_v2)(&kept, 100));
        must(DRIVER(cuEventRecord)(event, other));
        must(DRIVER(cuCtxSynchronize)());
}

static void say_status(const char *which, CUstream of)
{
        int status = -1;

        CALL(cuStreamIsCapturing, which, of, &status);
        SAY("%s, status: %d", which, status);
}

static void end(void)
{
        CUgraph graph = NULL;
        size_t n = 0;

        if (CALL(cuStreamEndCapture, "at last", stream, &graph) == CUDA_SUCCESS) {
                CALL(cuGraphGetNodes, "of it", graph, NULL, &n);
                SAY("nodes: %zu", n);
                CALL(cuGraphDestroy, "it", graph);
        }
        say_status("ended", stream);
}

/* Calls that a capture may forbid: by way of the gate they are others. */

static CUresult allocate(void)
{
        CUdeviceptr pointer = 0;

        return CALL(cuMemAlloc_v2, "100 bytes", &pointer, 100);
}

static CUresult allocate_much(void)
{
        CUdeviceptr pointer = 0;

        return CALL(cuMemAlloc_v2, "3 MiB", &pointer, 3 << 20);
}

static CUresult allocate_pitch(void)
{
        CUdeviceptr pointer = 0;
        size_t pitch;

        return CALL(cuMemAllocPitch_v2, "100 x 10", &pointer, &pitch, 100, 10, 4);
}

static CUresult free_small(void)
{
        CUresult result = CALL(cuMemFree_v2, "100 bytes", small);

        if (result == CUDA_SUCCESS)
                small = 0;
        return result;
}

static CUresult free_large(void)
{
        CUresult result = CALL(cuMemFree_v2, "3 MiB", large);

        if (result == CUDA_SUCCESS)
                large = 0;
        return result;
}

static CUresult allocate_in_other(void)
{
        CUdeviceptr pointer = 0;

        return CALL(cuMemAllocAsync, "in the other stream", &pointer, 100, other);
}

static CUresult allocate_managed(void)
{
        CUdeviceptr pointer = 0;

        return CALL(cuMemAllocManaged, "100 bytes", &pointer, 100, CU_MEM_ATTACH_GLOBAL);
}

static CUresult make_array(void)
{
        const CUDA_ARRAY_DESCRIPTOR descriptor = { 64, 64, CU_AD_FORMAT_FLOAT, 1 };
        CUarray array = NULL;

        return CALL(cuArrayCreate_v2, "64 x 64", &array, &descriptor);
}

static CUresult ask_range(void)
{
        CUdeviceptr base = 0;
        size_t size = 0;

        return CALL(cuMemGetAddressRange_v2, "100 bytes", &base, &size, kept);
}

static CUresult ask_room(void)
{
        size_t room, all;

        return CALL(cuMemGetInfo_v2, "now", &room, &all);
}

static CUresult copy(void)
{
        char word[4];

        return CALL(cuMemcpyDtoH_v2, "4 bytes", word, kept, sizeof(word));
}

static CUresult synchronize(void)
{
        return CALL(cuCtxSynchronize, "now", );
}

static CUresult synchronize_other(void)
{
        return CALL(cuStreamSynchronize, "the other stream", other);
}

static CUresult query_other(void)
{
        return CALL(cuStreamQuery, "the other stream", other);
}

static CUresult query_event(void)
{
        return CALL(cuEventQuery, "done before", event);
}

static CUresult record_all(void)
{
        return CALL(cuCtxRecordEvent, "behind all", context, event);
}

static CUresult create_context(void)
{
        CUcontext created = NULL;
        CUresult result = CALL(cuCtxCreate_v2, "another", &created, 0, 0);

        if (result == CUDA_SUCCESS)
                CALL(cuCtxDestroy_v2, "the other one", created);
        return result;
}

static CUresult retain(void)
{
        CUcontext same;
        CUresult result = CALL(cuDevicePrimaryCtxRetain, "once more", &same, 0);

        if (result == CUDA_SUCCESS)
                CALL(cuDevicePrimaryCtxRelease_v2, "once", 0);
        return result;
}

static CUresult destroy_other(void)
{
        CUresult result = CALL(cuStreamDestroy_v2, "the other stream", other);

        if (result == CUDA_SUCCESS)
                other = NULL;
        return result;
}

static const struct forbidden {
        const char *name;
        CUresult (*call)(void);
} forbidden[] = {
        { "allocating 100 bytes", allocate },
        { "allocating 3 MiB", allocate_much },
        { "allocating rows", allocate_pitch },
        { "allocating in order", allocate_in_other },
        { "allocating managed", allocate_managed },
        { "freeing 100 bytes", free_small },
        { "freeing 3 MiB", free_large },
        { "copying", copy },
        { "making an array", make_array },
        { "asking for a range", ask_range },
        { "asking for room", ask_room },
        { "synchronizing", synchronize },
        { "synchronizing the other stream", synchronize_other },
        { "asking for the other stream", query_other },
        { "asking for an event", query_event },
        { "recording behind all", record_all },
        { "retaining", retain },
        { "creating a context", create_context },
        { "destroying the other stream", destroy_other },
};

static void *call_it(void *argument)
{
        const struct forbidden *one = argument;

        must(DRIVER(cuCtxSetCurrent)(context));
        (void)one->call();
        return NULL;
}

static void call_elsewhere(const struct forbidden *one)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, call_it, (void *)(uintptr_t)one) == 0)
                (void)pthread_join(thread, NULL);
}

static void forbid_one(const struct forbidden *one, int mode, _Bool is_elsewhere)
{
        CUgraph graph = NULL;

        must(DRIVER(cuMemAlloc_v2)(&small, 100));
        must(DRIVER(cuMemAlloc_v2)(&large, 3 << 20));
        must(DRIVER(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuStreamBeginCapture_v2)(stream, mode));
        if (is_elsewhere)
                call_elsewhere(one);
        else
                (void)one->call();
        CALL(cuStreamEndCapture, one->name, stream, &graph);
        if (graph)
                must(DRIVER(cuGraphDestroy)(graph));
        must(DRIVER(cuMemFree_v2)(small)); /* 0: gone already, and that is no error */
        must(DRIVER(cuMemFree_v2)(large));
        if (other)
                must(DRIVER(cuStreamDestroy_v2)(other));
}

/* Each line has an answer for each mode, from the thread that captures and from another. */
static void forbid(void)
{
        start();
        for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
             mode++)
                for (int is_elsewhere = 0; is_elsewhere < 2; is_elsewhere++)
                        for (size_t i = 0; i < compare_count(forbidden); i++)
                                forbid_one(&forbidden[i], mode, is_elsewhere);
}

static void begins(void)
{
        CUgraph graph = NULL;

        CALL(cuStreamBeginCapture_v2, "before cuInit", (CUstream)0x1000, 0);
        CALL(cuStreamEndCapture, "before cuInit", (CUstream)0x1000, &graph);
        start();
        CALL(cuStreamEndCapture, "not begun", stream, &graph);
        CALL(cuStreamBeginCapture_v2, "the default stream", NULL, 0);
        CALL(cuStreamBeginCapture_v2, "the legacy stream", CU_STREAM_LEGACY, 0);
        CALL(cuStreamBeginCapture_v2, "mode 3", stream, 3);
        CALL(cuStreamBeginCapture_v2, "mode -1", stream, -1);
        CALL(cuStreamBeginCapture, "first name", stream);
        say_status("begun", stream);
        CALL(cuStreamBeginCapture_v2, "begun already", stream, 0);
        say_status("begun twice", stream);
        end();
        CALL(cuStreamBeginCapture_v2, "the thread's stream", CU_STREAM_PER_THREAD, 0);
        say_status("the thread's stream", CU_STREAM_PER_THREAD);
        CALL(cuStreamEndCapture, "the thread's stream", CU_STREAM_PER_THREAD, &graph);
        CALL(cuStreamBeginCapture_v2_ptsz, "0 is the thread's", NULL, 0);
        CALL(cuStreamEndCapture_ptsz, "0 is the thread's", NULL, &graph);
        CALL(cuStreamBeginCapture_ptsz, "first name, 0 is the thread's", NULL);
        CALL(cuStreamEndCapture_ptsz, "first name, 0 is the thread's", NULL, &graph);
}

static void to_a_graph(void)
{
        CUgraph graph = NULL, same = NULL;

        start();
        CALL(cuGraphCreate, "empty", &graph, 0);
        CALL(cuStreamBeginCaptureToGraph, "no graph", stream, NULL, NULL, NULL, 0, 0);
        if (CALL(cuStreamBeginCaptureToGraph, "empty", stream, graph, NULL, NULL, 0, 0) ==
            CUDA_SUCCESS) {
                CALL(cuMemsetD32Async, "into it", kept, 1, 1, stream);
                CALL(cuStreamEndCapture, "into it", stream, &same);
                SAY("the same: %d", same == graph);
        }
        CALL(cuStreamBeginCaptureToGraph_ptsz, "no graph", stream, NULL, NULL, NULL, 0, 0);
        CALL(cuGraphDestroy, "it", graph);
}

static void *end_it(void *unused)
{
        CUgraph graph = NULL;

        (void)unused;
        must(DRIVER(cuCtxSetCurrent)(context));
        CALL(cuStreamEndCapture, "another thread", stream, &graph);
        return NULL;
}

static void end_elsewhere(void)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, end_it, NULL) == 0)
                (void)pthread_join(thread, NULL);
        say_status("after another thread", stream);
}

static void ends_that_fail(void)
{
        CUgraph graph = NULL;

        start();
        for (int mode = 0; mode < 3; mode++) {
                CALL(cuStreamBeginCapture_v2, "to be ended elsewhere", stream, mode);
                end_elsewhere();
                end();
        }
        CALL(cuStreamBeginCapture_v2, "to be ended to nowhere", stream, 0);
        CALL(cuStreamEndCapture, "to nowhere", stream, NULL);
        say_status("after nowhere", stream);
        end();
        CALL(cuStreamBeginCapture_v2, "to be ended in part", stream, 0);
        must(DRIVER(cuEventRecord)(event, stream));
        CALL(cuStreamWaitEvent, "joins", other, event, 0);
        say_status("joined", other);
        CALL(cuStreamEndCapture, "of one that joined", other, &graph);
        say_status("joined, after", stream);
        end();
        say_status("the other", other);
}

static void of_what_goes(void)
{
        CUcontext created = NULL;
        CUstream in_it = NULL;
        CUdeviceptr pointer = 0;

        start();
        CALL(cuStreamBeginCapture_v2, "to be destroyed", stream, 0);
        CALL(cuStreamDestroy_v2, "while capturing", stream);
        CALL(cuMemAlloc_v2, "after the stream", &pointer, 100);
        if (CALL(cuCtxCreate_v2, "to be destroyed", &created, 0, 0) != CUDA_SUCCESS)
                return;
        must(DRIVER(cuStreamCreate)(&in_it, CU_STREAM_NON_BLOCKING));
        CALL(cuStreamBeginCapture_v2, "to go with its context", in_it, 0);
        CALL(cuCtxDestroy_v2, "while capturing", created);
        CALL(cuCtxSetCurrent, "the primary", context);
        CALL(cuMemAlloc_v2, "after the context", &pointer, 100);
        CALL(cuCtxSynchronize, "after the context", );
}

static void run_a_graph(void)
{
        unsigned int one = 1, word = 0;
        uint64_t n = 1;
        void *parameters[] = { &kept, &one, &n };
        CUfunction add;
        CUmodule module;
        CUgraphExec exec = NULL;
        CUgraph graph = NULL;

        start();
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&add, module, "add"));
        CALL(cuStreamBeginCapture_v2, "to be run", stream, 0);
        CALL(cuMemsetD32Async, "captured", kept, 10, 1, stream);
        CALL(cuLaunchKernel, "captured", add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
        CALL(cuStreamEndCapture, "to be run", stream, &graph);
        CALL(cuGraphInstantiateWithFlags, "it", &exec, graph, 0);
        CALL(cuGraphDestroy, "instantiated", graph);
        CALL(cuGraphUpload, "it", exec, stream);
        for (int i = 0; i < 3; i++)
                CALL(cuGraphLaunch, "it", exec, i ? stream : other);
        CALL(cuCtxSynchronize, "its end", );
        CALL(cuMemcpyDtoH_v2, "its result", &word, kept, sizeof(word));
        SAY("result: %u", word);
        CALL(cuGraphExecDestroy, "it", exec);
        CALL(cuGraphCreate, "to nowhere", NULL, 0);
        CALL(cuGraphCreate, "flags 1", &graph, 1);
        CALL(cuGraphInstantiateWithFlags, "to nowhere", NULL, graph, 0);
        CALL(cuGraphDestroy, "none", NULL);
        CALL(cuGraphLaunch, "none", NULL, stream);
}

static void memory_nodes(void)
{
        CUDA_MEM_ALLOC_NODE_PARAMS memory = {
                .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
                .bytesize = 5000,
        };
        CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = memory };
        CUgraphNode added = NULL;
        CUgraph graph = NULL;

        compare_start();
        must(DRIVER(cuGraphCreate)(&graph, 0));
        CALL(cuGraphAddMemAllocNode, "5000 bytes", &added, graph, NULL, 0, &memory);
        SAY("has an address: %d", memory.dptr != 0);
        CALL(cuGraphAddMemAllocNode, "no parameters", &added, graph, NULL, 0, NULL);
        memory.bytesize = 0;
        CALL(cuGraphAddMemAllocNode, "no bytes", &added, graph, NULL, 0, &memory);
        CALL(cuGraphAddNode, "5000 bytes", &added, graph, NULL, 0, &node);
        CALL(cuGraphAddNode, "no parameters", &added, graph, NULL, 0, NULL);
        CALL(cuGraphAddNode_v2, "5000 bytes", &added, graph, NULL, NULL, 0, &node);
        node.type = 99;
        CALL(cuGraphAddNode_v2, "type 99", &added, graph, NULL, NULL, 0, &node);
        CALL(cuGraphDestroy, "with memory", graph);
}

/* Nodes that name no context, on memory that a vGPU backs with the driver's virtual memory. */
static void nodes(void)
{
        CUDA_MEMSET_NODE_PARAMS set = { .elementSize = 1, .width = 100, .height = 1 };
        CUDA_MEMCPY3D copy = { .WidthInBytes = 100,
                               .Height = 1,
                               .Depth = 1,
                               .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE };
        CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEMSET };
        CUgraphNode copied = NULL, was_set = NULL, generic = NULL;
        CUgraphExec exec = NULL;
        CUgraph graph = NULL;

        compare_start();
        must(DRIVER(cuMemAlloc_v2)(&set.dst, 4096));
        copy.srcDevice = set.dst;
        copy.dstDevice = set.dst + 1000;
        params.memset.is = set;
        CALL(cuGraphCreate, "for nodes", &graph, 0);
        CALL(cuGraphAddMemcpyNode, "no context", &copied, graph, NULL, 0, &copy, NULL);
        CALL(cuGraphAddMemsetNode, "no context", &was_set, graph, NULL, 0, &set, NULL);
        CALL(cuGraphAddNode, "no context", &generic, graph, NULL, 0, &params);
        CALL(cuGraphInstantiateWithFlags, "of nodes", &exec, graph, 0);
        CALL(cuGraphExecMemcpyNodeSetParams, "no context", exec, copied, &copy, NULL);
        CALL(cuGraphExecMemsetNodeSetParams, "no context", exec, was_set, &set, NULL);
        CALL(cuGraphExecNodeSetParams, "no context", exec, generic, &params);
        CALL(cuGraphNodeSetParams, "no context", generic, &params);
        CALL(cuGraphLaunch, "of nodes", exec, NULL);
        CALL(cuStreamSynchronize, "of nodes", NULL);
        CALL(cuGraphExecDestroy, "of nodes", exec);
        CALL(cuGraphDestroy, "of nodes", graph);
}

const struct compare_case compare_capture[] = {
        { "begins", begins },
        { "to-a-graph", to_a_graph },
        { "ends-that-fail", ends_that_fail },
        { "of-what-goes", of_what_goes },
        { "run-a-graph", run_a_graph },
        { "forbid", forbid },
        { "memory-nodes", memory_nodes },
        { "nodes", nodes },
        { NULL, NULL },
};
