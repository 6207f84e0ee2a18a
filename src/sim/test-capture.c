/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: what it records, and which calls it forbids. The table of forbidden calls was
 * measured on an H200, driver 580.
 */

#include <pthread.h>

#include "sim/module.h"
#include "sim/test-guest.h"

#define THREAD_LOCAL 1

static CUcontext context;
static CUstream capturing, other;
static CUdeviceptr memory;

static void prepare(unsigned int flags)
{
        context = guest_init(0);
        must(cuStreamCreate(&capturing, flags));
        must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        must(cuMemAlloc_v2(&memory, 4096));
        must(cuMemsetD32_v2(memory, 0, 1024));
}

static CUresult synchronize_context(void)
{
        return cuCtxSynchronize();
}

static CUresult record_context(void)
{
        CUresult result;
        CUevent event;

        must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        result = cuCtxRecordEvent(context, event);
        must(cuEventDestroy_v2(event));
        return result;
}

static CUresult synchronize_other_context(void)
{
        CUcontext created;
        CUresult result;

        must(cuCtxCreate_v2(&created, 0, 0));
        result = cuCtxSynchronize();
        must(cuCtxPopCurrent_v2(&created));
        return result;
}

static CUresult create_memory(void)
{
        CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        CUmemGenericAllocationHandle handle;

        return cuMemCreate(&handle, 2 * MIB, &prop, 0);
}

static CUresult allocate(void)
{
        CUdeviceptr pointer;

        return cuMemAlloc_v2(&pointer, 100);
}

static CUresult allocate_in_other(void)
{
        CUdeviceptr pointer;

        return cuMemAllocAsync(&pointer, 100, other);
}

static CUresult register_memory(void)
{
        static char host[4096];
        CUresult result = cuMemHostRegister_v2(host, sizeof(host), 0);

        if (result == CUDA_SUCCESS)
                must(cuMemHostUnregister(host));
        return result;
}

static CUresult synchronize_other(void)
{
        return cuStreamSynchronize(other);
}

static CUresult query_other(void)
{
        return cuStreamQuery(other);
}

static CUresult synchronize_capturing(void)
{
        return cuStreamSynchronize(capturing);
}

static CUresult synchronize_legacy(void)
{
        return cuStreamSynchronize(NULL);
}

static CUresult copy(void)
{
        char host[4];

        return cuMemcpyDtoH_v2(host, memory, sizeof(host));
}

static CUresult create_stream(void)
{
        CUstream stream;

        return cuStreamCreate(&stream, 0);
}

static CUresult ask_whether_capturing(void)
{
        int status;

        return cuStreamIsCapturing(capturing, &status);
}

/* Who calls: another thread, or the one that captures; in which mode. */
enum caller { OTHER, OTHER_RELAXED, OTHER_LOCAL, SELF, SELF_RELAXED };

/* 900 also means that the capture is invalid afterwards. */
#define BAD CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
#define OK  CUDA_SUCCESS

static const struct forbidden {
        const char *name;
        CUresult (*call)(void);
        CUresult result[5]; /* by enum caller; the capture is GLOBAL, of a non-blocking stream */
        CUresult local[2];  /* the capture is THREAD_LOCAL: OTHER, SELF */
} table[] = {
        { "cuCtxSynchronize", synchronize_context, { BAD, BAD, BAD, BAD, BAD }, { BAD, BAD } },
        { "cuCtxRecordEvent", record_context, { BAD, BAD, BAD, BAD, BAD }, { BAD, BAD } },
        { "cuCtxSynchronize of another", synchronize_other_context, { OK }, { OK, OK } },
        { "cuMemCreate", create_memory, { OK, OK, OK, OK, OK }, { OK, OK } },
        { "cuMemAlloc", allocate, { BAD, OK, OK, BAD, OK }, { OK, BAD } },
        { "cuMemAllocAsync", allocate_in_other, { BAD, OK, OK, BAD, OK }, { OK, BAD } },
        { "cuMemHostRegister", register_memory, { BAD, OK, OK, BAD, OK }, { OK, BAD } },
        { "cuStreamSynchronize", synchronize_other, { BAD, OK, OK, BAD, OK }, { OK, BAD } },
        { "cuStreamQuery", query_other, { BAD, OK, OK, BAD, OK }, { OK, BAD } },
        { "cuStreamSynchronize of it",
          synchronize_capturing,
          { BAD, BAD, BAD, BAD, BAD },
          { BAD, BAD } },
        { "cuStreamSynchronize of 0", synchronize_legacy, { BAD, OK, OK, BAD, OK }, { OK, BAD } },
        { "cuMemcpyDtoH", copy, { OK, OK, OK, OK, OK }, { OK, OK } },
        { "cuStreamCreate", create_stream, { OK, OK, OK, OK, OK }, { OK, OK } },
        { "cuStreamIsCapturing", ask_whether_capturing, { OK, OK, OK, OK, OK }, { OK, OK } },
};

#define N_ROWS (sizeof(table) / sizeof(table[0]))

struct attempt {
        CUresult (*call)(void);
        int mode;
        CUresult result;
};

static void *call_in_mode(void *argument)
{
        struct attempt *attempt = argument;
        int mode = attempt->mode;

        must(cuCtxSetCurrent(context));
        must(cuThreadExchangeStreamCaptureMode(&mode));
        attempt->result = attempt->call();
        must(cuThreadExchangeStreamCaptureMode(&mode));
        return NULL;
}

static CUresult call_as(CUresult (*call)(void), enum caller caller)
{
        struct attempt attempt = { .call = call, .mode = CU_STREAM_CAPTURE_MODE_GLOBAL };
        pthread_t thread;

        if (caller == OTHER_RELAXED || caller == SELF_RELAXED)
                attempt.mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        if (caller == OTHER_LOCAL)
                attempt.mode = THREAD_LOCAL;
        if (caller == SELF || caller == SELF_RELAXED) {
                (void)call_in_mode(&attempt);
                return attempt.result;
        }
        must_equal(pthread_create(&thread, NULL, call_in_mode, &attempt), 0);
        must_equal(pthread_join(thread, NULL), 0);
        return attempt.result;
}

static void check_call(const struct forbidden *row, int capture_mode, enum caller caller,
                       CUresult shall)
{
        CUgraph graph;
        CUresult is, end;

        must(cuStreamBeginCapture_v2(capturing, capture_mode));
        is = call_as(row->call, caller);
        end = cuStreamEndCapture(capturing, &graph);
        if (is != shall || end != (shall ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS)) {
                (void)fprintf(stderr, "%s, mode %d, caller %d: %d not %d, then %d\n", row->name,
                              capture_mode, (int)caller, (int)is, (int)shall, (int)end);
                exit(1);
        }
        if (graph)
                must(cuGraphDestroy(graph));
}

static void try_all(int socket)
{
        (void)socket;
        prepare(CU_STREAM_NON_BLOCKING);
        for (size_t i = 0; i < N_ROWS; i++) {
                for (int caller = OTHER; caller <= SELF_RELAXED; caller++)
                        check_call(&table[i], CU_STREAM_CAPTURE_MODE_GLOBAL, (enum caller)caller,
                                   table[i].result[caller]);
                check_call(&table[i], THREAD_LOCAL, OTHER, table[i].local[0]);
                check_call(&table[i], THREAD_LOCAL, SELF, table[i].local[1]);
        }
}

static void test_a_capture_forbids_what_was_measured(void **state)
{
        (void)state;
        guest_run(try_all);
}

static void try_blocking(int socket)
{
        static const struct forbidden row = { "cuMemcpyDtoH", copy, { 0 }, { 0 } };

        (void)socket;
        prepare(CU_STREAM_DEFAULT);
        check_call(&row, CU_STREAM_CAPTURE_MODE_GLOBAL, OTHER, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        check_call(&row, CU_STREAM_CAPTURE_MODE_GLOBAL, OTHER_RELAXED,
                   CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

static void test_the_legacy_stream_ends_the_capture_of_a_blocking_one(void **state)
{
        (void)state;
        guest_run(try_blocking);
}

static uint32_t read_word(void)
{
        uint32_t word;

        must(cuMemcpyDtoH_v2(&word, memory, sizeof(word)));
        return word;
}

static void launch_add(CUstream stream, uint32_t value)
{
        uint64_t n = 1;
        void *parameters[] = { &memory, &value, &n };
        CUfunction add;
        CUmodule module;

        must(cuModuleLoadData(&module, "x"));
        must(cuModuleGetFunction(&add, module, "add"));
        must(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void record_and_launch(int socket)
{
        CUgraphExec exec;
        CUgraph graph;
        CUevent fork, join;
        uint64_t id;
        size_t n;
        int status;

        (void)socket;
        prepare(CU_STREAM_NON_BLOCKING);
        must(cuEventCreate(&fork, 0));
        must(cuEventCreate(&join, 0));
        must(cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL));
        must_equal(cuStreamBeginCapture_v2(capturing, 0), CUDA_ERROR_ILLEGAL_STATE);
        must(cuStreamGetCaptureInfo(capturing, &status, &id));
        must_equal(status, 1);
        must(cuMemsetD32Async(memory, 10, 1, capturing));
        must(cuEventRecord(fork, capturing));
        must(cuStreamWaitEvent(other, fork, 0)); /* joins the capture */
        launch_add(other, 1);
        must(cuEventRecord(join, other));
        must(cuStreamWaitEvent(capturing, join, 0));
        launch_add(capturing, 2);
        must_equal(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        must(cuStreamEndCapture(capturing, &graph));
        must_equal(read_word(), 0); /* nothing has run */
        must(cuGraphGetNodes(graph, NULL, &n));
        must_equal(n, 3);
        must(cuGraphInstantiateWithFlags(&exec, graph, 0));
        must(cuGraphDestroy(graph));
        must(cuGraphLaunch(exec, other));
        must(cuStreamSynchronize(other));
        must_equal(read_word(), 13);
        must(cuGraphLaunch(exec, NULL));
        must_equal(read_word(), 13);
        must(cuGraphExecDestroy(exec));
        must_equal(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
        must_equal(cuStreamEndCapture(capturing, &graph), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void test_what_was_captured_runs_at_launch(void **state)
{
        (void)state;
        guest_run(record_and_launch);
}

static void take_memory(int socket)
{
        CUdeviceptr piece;
        CUgraphExec exec;
        CUgraph graph;
        uint64_t before;

        (void)socket;
        must(setenv(MODULE_CODE_VARIABLE, "3M", 1));
        prepare(CU_STREAM_NON_BLOCKING);
        before = guest_get_free();
        launch_add(capturing, 2);
        launch_add(capturing, 3);
        must(cuStreamSynchronize(capturing));
        must_equal(before - guest_get_free(), 4 * MIB * 2); /* each loads a module of its own */
        must(cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL));
        launch_add(capturing, 2);
        must(cuStreamEndCapture(capturing, &graph));
        before = guest_get_free();
        must(cuGraphInstantiateWithFlags(&exec, graph, 0));
        must_equal(before - guest_get_free(), 2 * MIB);
        must(cuGraphExecDestroy(exec));
        must_equal(guest_get_free(), before);
        while (guest_get_free() > 0)
                must(cuMemAlloc_v2(&piece, 2 * MIB));
        must_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
        must(cuMemFree_v2(piece));
        must(cuGraphInstantiateWithFlags(&exec, graph, 0));
}

static void test_graphs_and_code_take_memory(void **state)
{
        (void)state;
        guest_run(take_memory);
}

static void checkpoint_in_capture(int socket)
{
        CUgraphExec exec;
        CUgraph graph;

        (void)socket;
        prepare(CU_STREAM_NON_BLOCKING);
        must(cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL));
        launch_add(capturing, 2);
        must(cuCheckpointProcessLock(getpid(), NULL));
        must(cuCheckpointProcessCheckpoint(getpid(), NULL));
        must(cuCheckpointProcessRestore(getpid(), NULL));
        must(cuCheckpointProcessUnlock(getpid(), NULL));
        launch_add(capturing, 3);
        must(cuStreamEndCapture(capturing, &graph));
        must(cuGraphInstantiateWithFlags(&exec, graph, 0));
        must(cuGraphLaunch(exec, capturing));
        must(cuStreamSynchronize(capturing));
        must_equal(read_word(), 5);
}

static void test_a_capture_survives_a_checkpoint(void **state)
{
        (void)state;
        guest_run(checkpoint_in_capture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_capture_forbids_what_was_measured),
                cmocka_unit_test(test_the_legacy_stream_ends_the_capture_of_a_blocking_one),
                cmocka_unit_test(test_what_was_captured_runs_at_launch),
                cmocka_unit_test(test_graphs_and_code_take_memory),
                cmocka_unit_test(test_a_capture_survives_a_checkpoint),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
