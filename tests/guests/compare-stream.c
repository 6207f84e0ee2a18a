/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: streams, events, host functions. */
#include "tests/guests/compare.h"
#include "tests/guests/kernels.h"

static int n_calls;

static void count(void *data)
{
        n_calls += *(int *)data;
}

static void count_too(CUstream stream, CUresult status, void *data)
{
        (void)stream;
        n_calls += status == CUDA_SUCCESS ? *(int *)data : 1000;
}

static void made_and_gone(void)
{
        CUstream stream = NULL;
        CUcontext context = NULL, primary;
        unsigned int flags = 77;
        int priority = 77;
        CUdevice device = 77;

        CALL(cuStreamCreate, "before cuInit", &stream, 0);
        CALL(cuStreamDestroy_v2, "before cuInit", (CUstream)0x1000);
        must(DRIVER(cuInit)(0));
        CALL(cuStreamCreate, "without a context", &stream, 0);
        primary = compare_start();
        CALL(cuStreamCreate, "to nowhere", NULL, 0);
        CALL(cuStreamCreate, "flags 77", &stream, 77);
        CALL(cuStreamDestroy_v2, "none", NULL);
        CALL(cuStreamDestroy_v2, "the legacy one", CU_STREAM_LEGACY);
        CALL(cuStreamDestroy_v2, "the thread's", CU_STREAM_PER_THREAD);
        must(CALL(cuStreamCreateWithPriority, "priority -1", &stream, CU_STREAM_NON_BLOCKING, -1));
        CALL(cuStreamGetFlags, "of it", stream, &flags);
        CALL(cuStreamGetPriority, "of it", stream, &priority);
        CALL(cuStreamGetCtx, "of it", stream, &context);
        CALL(cuStreamGetDevice, "of it", stream, &device);
        SAY("flags %u, priority %d, context %d, device %d", flags, priority, context == primary,
            device);
        CALL(cuStreamQuery, "idle", stream);
        CALL(cuStreamSynchronize, "idle", stream);
        CALL(cuStreamDestroy, "first name", stream);
        must(DRIVER(cuStreamCreate)(&stream, 0));
        CALL(cuStreamDestroy_v2, "it", stream);
}

static void attributes(void)
{
        CUlaunchAttributeValue value = { .syncPolicy = 1 };
        CUstream stream, other;

        compare_start();
        must(DRIVER(cuStreamCreate)(&stream, 0));
        must(DRIVER(cuStreamCreate)(&other, 0));
        CALL(cuStreamSetAttribute, "policy", stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
             &value);
        value.syncPolicy = 77;
        CALL(cuStreamCopyAttributes, "to the other", other, stream);
        CALL(cuStreamGetAttribute, "policy", other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
             &value);
        SAY("policy: %d", value.syncPolicy);
        CALL(cuStreamGetAttribute, "attribute 99", stream, 99, &value);
        CALL(cuStreamSetAttribute, "from nowhere", stream,
             CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, NULL);
}

static void events(void)
{
        CUevent first = NULL, second = NULL;
        float milliseconds = -1;
        CUstream stream;
        CUcontext context;

        CALL(cuEventCreate, "before cuInit", &first, 0);
        context = compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        CALL(cuEventCreate, "to nowhere", NULL, 0);
        must(CALL(cuEventCreate, "with a time", &first, CU_EVENT_DEFAULT));
        must(CALL(cuEventCreate, "another", &second, CU_EVENT_BLOCKING_SYNC));
        CALL(cuEventQuery, "not recorded", first);
        CALL(cuEventElapsedTime, "not recorded", &milliseconds, first, second);
        CALL(cuEventRecord, "first", first, stream);
        CALL(cuEventRecordWithFlags, "second", second, stream, 0);
        CALL(cuEventRecordWithFlags, "flags 77", second, stream, 77);
        CALL(cuEventSynchronize, "second", second);
        CALL(cuEventQuery, "first", first);
        CALL(cuEventElapsedTime, "between", &milliseconds, first, second);
        SAY("time: %d", milliseconds >= 0);
        CALL(cuStreamWaitEvent, "done", NULL, second, 0);
        CALL(cuStreamWaitEvent, "none", stream, NULL, 0);
        CALL(cuCtxRecordEvent, "behind all", context, first);
        CALL(cuCtxRecordEvent, "none", context, NULL);
        CALL(cuEventSynchronize, "behind all", first);
        CALL(cuEventRecord, "none", NULL, stream);
        CALL(cuEventDestroy_v2, "first", first);
        CALL(cuEventDestroy_v2, "second", second);
        CALL(cuEventDestroy_v2, "none", NULL);
}

static void host_functions(void)
{
        CUstream stream;
        int one = 1;

        compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        CALL(cuLaunchHostFunc, "one", stream, count, &one);
        CALL(cuLaunchHostFunc, "no function", stream, NULL, &one);
        CALL(cuStreamAddCallback, "one", stream, count_too, &one, 0);
        CALL(cuStreamAddCallback, "no function", stream, NULL, &one, 0);
        CALL(cuStreamAddCallback, "flags 1", stream, count_too, &one, 1);
        CALL(cuStreamSynchronize, "of them", stream);
        SAY("called: %d", n_calls);
}

static void launches(void)
{
        CUlaunchConfig config = { 1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0 };
        unsigned int one = 1, word = 0;
        uint64_t n = 1, microseconds = 20000;
        CUfunction add = NULL, busy = NULL;
        CUdeviceptr pointer;
        void *parameters[] = { &pointer, &one, &n }, *time[] = { &microseconds };
        CUmodule module;

        compare_start();
        must(DRIVER(cuMemAlloc_v2)(&pointer, 4));
        must(DRIVER(cuMemsetD32_v2)(pointer, 0, 1));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        CALL(cuModuleGetFunction, "that is not there", &add, module, "nothing");
        must(DRIVER(cuModuleGetFunction)(&add, module, "add"));
        must(DRIVER(cuModuleGetFunction)(&busy, module, "busy"));
        CALL(cuLaunchKernel, "one", add, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
        CALL(cuLaunchKernelEx, "one", &config, add, parameters, NULL);
        CALL(cuLaunchCooperativeKernel, "one", add, 1, 1, 1, 1, 1, 1, 0, NULL, parameters);
        CALL(cuLaunchKernel, "no blocks", add, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
        CALL(cuLaunchKernel, "2048 threads", add, 1, 1, 1, 2048, 1, 1, 0, NULL, parameters, NULL);
        CALL(cuLaunchKernelEx, "no configuration", NULL, add, parameters, NULL);
        CALL(cuMemcpyDtoH_v2, "their sum", &word, pointer, 4);
        SAY("sum: %u", word);
        CALL(cuLaunchKernel, "of 20 ms", busy, 1, 1, 1, 1, 1, 1, 0, NULL, time, NULL);
        CALL(cuStreamQuery, "busy", NULL);
        CALL(cuMemFree_v2, "while it runs", pointer);
        CALL(cuStreamQuery, "cuMemFree has waited", NULL);
}

const struct compare_case compare_stream[] = {
        { "made-and-gone", made_and_gone },   { "attributes", attributes }, { "events", events },
        { "host-functions", host_functions }, { "launches", launches },     { NULL, NULL },
};
