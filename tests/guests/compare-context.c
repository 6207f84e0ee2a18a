/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: contexts, their limits, and access between them. */
#include "tests/guests/compare.h"

#define LIMITS 12

static void say_current(CUcontext expected)
{
        CUcontext current = NULL;

        CALL(cuCtxGetCurrent, "now", &current);
        SAY("current: %s", !current ? "none" : current == expected ? "as expected" : "another");
}

/* How many devices there are without a vGPU is the machine's affair. */
static void devices(void)
{
        CUdevice device = -1;
        char id[32] = "";
        int count = 0;

        CALL(cuDeviceGetCount, "before cuInit", &count);
        CALL(cuDeviceGet, "before cuInit", &device, 0);
        compare_start();
        CALL(cuDeviceGetCount, "after it", &count);
        SAY("there is one: %d", count > 0);
        CALL(cuDeviceGet, "the first", &device, 0);
        SAY("device: %d", device);
        CALL(cuDeviceGet, "ordinal 77", &device, 77);
        CALL(cuDeviceGet, "ordinal -1", &device, -1);
        CALL(cuDeviceGetPCIBusId, "of the first", id, sizeof(id), 0);
        device = -1;
        CALL(cuDeviceGetByPCIBusId, "of the first", &device, id);
        SAY("device: %d", device);
        CALL(cuDeviceGetByPCIBusId, "to nowhere", NULL, id);
        CALL(cuDeviceGetByPCIBusId, "ffff:ff:1f.7", &device, "ffff:ff:1f.7");
        CALL(cuDeviceGetByPCIBusId, "nothing", &device, "");
}

static void of_its_own(void)
{
        CUcontext context = NULL, primary, popped = NULL;
        unsigned int flags = 0, version = 0;
        unsigned long long id = 0;
        CUdevice device = -1;

        primary = compare_start();
        if (CALL(cuCtxCreate_v2, "flags 4", &context, 4, 0) != CUDA_SUCCESS)
                return;
        say_current(context);
        CALL(cuCtxGetFlags, "of it", &flags);
        SAY("flags: %u", flags);
        CALL(cuCtxGetApiVersion, "of it", context, &version);
        SAY("version: %u", version);
        CALL(cuCtxGetId, "of it", context, &id);
        CALL(cuCtxGetDevice, "of it", &device);
        SAY("device: %d", device);
        CALL(cuCtxPopCurrent_v2, "it", &popped);
        SAY("popped: %d", popped == context);
        say_current(primary);
        CALL(cuCtxSynchronize, "of the primary", );
        CALL(cuCtxPushCurrent_v2, "it", context);
        CALL(cuCtxDestroy_v2, "it", context);
        say_current(primary);
        CALL(cuCtxDestroy_v2, "the primary", primary);
        CALL(cuCtxDestroy_v2, "none", NULL);
        CALL(cuCtxDestroy, "none", NULL);
}

static void by_all_names(void)
{
        CUcontext context = NULL;

        compare_start();
        if (CALL(cuCtxCreate, "first name", &context, 0, 0) == CUDA_SUCCESS)
                CALL(cuCtxDestroy, "first name", context);
        if (CALL(cuCtxCreate_v3, "no affinity", &context, NULL, 0, 0, 0) == CUDA_SUCCESS)
                CALL(cuCtxDestroy_v2, "third name", context);
        if (CALL(cuCtxCreate_v4, "no parameters", &context, NULL, 0, 0) == CUDA_SUCCESS)
                CALL(cuCtxDestroy_v2, "fourth name", context);
        CALL(cuGLCtxCreate, "without a display", &context, 0, 0);
        CALL(cuGLCtxCreate_v2, "without a display", &context, 0, 0);
        CALL(cuVDPAUCtxCreate, "without a display", &context, 0, 0, 0, NULL);
        CALL(cuVDPAUCtxCreate_v2, "without a display", &context, 0, 0, 0, NULL);
        CALL(cuCtxCreate_v2, "to nowhere", NULL, 0, 0);
        CALL(cuCtxCreate_v2, "odd flags", &context, 0xffff, 0);
        CALL(cuCtxCreate_v2, "device 77", &context, 0, 77);
        CALL(cuCtxCreate_v2, "device -1", &context, 0, -1);
        say_current(NULL);
}

static void attached(void)
{
        CUcontext context = NULL, same = NULL, primary;

        primary = compare_start();
        if (CALL(cuCtxCreate_v2, "to attach to", &context, 0, 0) != CUDA_SUCCESS)
                return;
        CALL(cuCtxAttach, "flags 1", &same, 1);
        CALL(cuCtxAttach, "to nowhere", NULL, 0);
        CALL(cuCtxAttach, "it", &same, 0);
        SAY("attached to it: %d", same == context);
        CALL(cuCtxDetach, "once", context);
        say_current(context);
        CALL(cuCtxDetach, "twice", context);
        say_current(primary);
        CALL(cuCtxDetach, "none", NULL);
}

static void primary(void)
{
        CUcontext context = NULL, again = NULL;
        unsigned int flags = 77;
        int is_active = 77;

        CALL(cuDevicePrimaryCtxRetain, "before cuInit", &context, 0);
        CALL(cuDevicePrimaryCtxRelease_v2, "before cuInit", 0);
        CALL(cuDevicePrimaryCtxReset_v2, "before cuInit", 0);
        must(DRIVER(cuInit)(0));
        CALL(cuDevicePrimaryCtxRelease_v2, "not retained", 0);
        CALL(cuDevicePrimaryCtxReset_v2, "not retained", 0);
        CALL(cuDevicePrimaryCtxRetain, "to nowhere", NULL, 0);
        CALL(cuDevicePrimaryCtxRetain, "device 77", &context, 77);
        CALL(cuDevicePrimaryCtxRelease_v2, "device 77", 77);
        CALL(cuDevicePrimaryCtxRelease, "device -1", -1);
        CALL(cuDevicePrimaryCtxReset, "device 77", 77);
        CALL(cuDevicePrimaryCtxRetain, "once", &context, 0);
        CALL(cuDevicePrimaryCtxRetain, "twice", &again, 0);
        SAY("the same: %d", context == again);
        CALL(cuCtxSetCurrent, "it", context);
        CALL(cuDevicePrimaryCtxGetState, "retained", 0, &flags, &is_active);
        SAY("active: %d, flags %u", is_active, flags);
        CALL(cuDevicePrimaryCtxRelease_v2, "once", 0);
        CALL(cuCtxSynchronize, "retained once", );
        CALL(cuDevicePrimaryCtxRelease, "twice", 0);
        CALL(cuCtxSynchronize, "released", );
        CALL(cuDevicePrimaryCtxGetState, "released", 0, &flags, &is_active);
        SAY("active: %d", is_active);
        CALL(cuDevicePrimaryCtxRelease_v2, "thrice", 0);
        CALL(cuDevicePrimaryCtxRetain, "anew", &again, 0);
        SAY("the same: %d", context == again);
        CALL(cuDevicePrimaryCtxReset_v2, "retained", 0);
        CALL(cuCtxSynchronize, "reset", );
}

/* What a context takes with it, and what the other one keeps. */
static void ends(void)
{
        CUdeviceptr kept = 0, lost = 0;
        CUcontext context = NULL, primary;
        unsigned int word = 0;

        primary = compare_start();
        must(DRIVER(cuMemAlloc_v2)(&kept, 100));
        must(DRIVER(cuMemsetD32_v2)(kept, 7, 25));
        if (CALL(cuCtxCreate_v2, "with memory", &context, 0, 0) != CUDA_SUCCESS)
                return;
        CALL(cuMemAlloc_v2, "in it", &lost, 100);
        CALL(cuMemcpyDtoH_v2, "of the other", &word, kept, 4);
        CALL(cuCtxDestroy_v2, "with memory", context);
        CALL(cuCtxSetCurrent, "the primary", primary);
        CALL(cuMemFree_v2, "gone with it", lost);
        CALL(cuMemcpyDtoH_v2, "kept", &word, kept, 4);
        SAY("kept: %u", word);
        CALL(cuMemFree_v2, "kept", kept);
}

static _Bool make_green(CUgreenCtx *green, CUcontext *context)
{
        CUdevResource all, part;
        CUdevResourceDesc description;
        unsigned int n = 1;

        return CALL(cuDeviceGetDevResource, "multiprocessors", 0, &all, CU_DEV_RESOURCE_TYPE_SM) ==
                       CUDA_SUCCESS &&
               CALL(cuDevSmResourceSplitByCount, "16", &part, &n, &all, NULL, 0, 16) ==
                       CUDA_SUCCESS &&
               CALL(cuDevResourceGenerateDesc, "16", &description, &part, 1) == CUDA_SUCCESS &&
               CALL(cuGreenCtxCreate, "16", green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
                       CUDA_SUCCESS &&
               CALL(cuCtxFromGreenCtx, "it", context, *green) == CUDA_SUCCESS;
}

/* Memory of a green context is the primary one's, its streams are not. */
static void green(void)
{
        CUcontext context = NULL, of = NULL, primary = compare_start();
        CUdeviceptr memory = 0, pooled = 0;
        unsigned int word = 0;
        CUgreenCtx green;
        CUstream stream;

        if (!make_green(&green, &context) || CALL(cuGreenCtxStreamCreate, "of it", &stream, green,
                                                  CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS)
                return;
        CALL(cuCtxSetCurrent, "green", context);
        CALL(cuMemAlloc_v2, "in it", &memory, 4 << 20);
        CALL(cuMemsetD32_v2, "in it", memory, 7, 25);
        CALL(cuPointerGetAttribute, "context", &of, CU_POINTER_ATTRIBUTE_CONTEXT, memory);
        SAY("of the primary: %d, of it: %d", of == primary, of == context);
        CALL(cuMemAllocAsync, "in its stream", &pooled, 1 << 20, stream);
        CALL(cuMemFreeAsync, "in its stream", pooled, stream);
        CALL(cuStreamGetCtx, "of its stream", stream, &of);
        SAY("of the primary: %d, of it: %d", of == primary, of == context);
        CALL(cuCtxSynchronize, "green", );
        CALL(cuCtxSetCurrent, "the primary", primary);
        CALL(cuMemAllocAsync, "in its stream, the primary current", &pooled, 1 << 20, stream);
        CALL(cuMemFreeAsync, "in its stream, the primary current", pooled, stream);
        CALL(cuStreamBeginCapture_v2, "in its stream", stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        CALL(cuCtxDestroy_v2, "green", context);
        CALL(cuGreenCtxDestroy, "it", green);
        CALL(cuCtxSynchronize, "the primary", );
        CALL(cuMemcpyDtoH_v2, "made in it", &word, memory, 4);
        SAY("word: %u", word);
        CALL(cuMemFree_v2, "made in it", memory);
}

static void wrong_arguments(void)
{
        CUcontext context = NULL;

        CALL(cuCtxCreate_v2, "before cuInit", &context, 0, 0);
        CALL(cuCtxDestroy_v2, "before cuInit", (CUcontext)0x1000);
        CALL(cuCtxAttach, "before cuInit", &context, 0);
        CALL(cuCtxDetach, "before cuInit", (CUcontext)0x1000);
        CALL(cuInit, "odd flags", 5);
        CALL(cuInit, "no flags", 0);
        CALL(cuInit, "again", 0);
        CALL(cuCtxAttach, "without a context", &context, 0);
        CALL(cuCtxSynchronize, "without a context", );
        CALL(cuCtxGetCurrent, "to nowhere", NULL);
        CALL(cuCtxPopCurrent_v2, "nothing", &context);
        CALL(cuCtxPushCurrent_v2, "none", NULL);
        CALL(cuCtxSetCurrent, "none", NULL);
}

static void limits(void)
{
        size_t values[LIMITS] = { 0 }, value;

        CALL(cuCtxGetLimit, "before cuInit", &value, 0);
        compare_start();
        for (int i = 0; i < LIMITS; i++) {
                CUresult result = CALL(cuCtxGetLimit, "at first", &values[i], i);

                SAY("limit %d: %zu", i, result == CUDA_SUCCESS ? values[i] : 0);
        }
        for (int i = 0; i < 7; i++) {
                CALL(cuCtxSetLimit, "to twice that", i, values[i] * 2);
                value = 0;
                CALL(cuCtxGetLimit, "after", &value, i);
                SAY("limit %d after: %zu", i, value);
        }
        CALL(cuCtxGetLimit, "to nowhere", NULL, 0);
        CALL(cuCtxGetLimit, "limit -1", &value, -1);
        CALL(cuCtxSetLimit, "limit 99", 99, 1);
        CALL(cuCtxSetLimit, "all there is", CU_LIMIT_MALLOC_HEAP_SIZE, SIZE_MAX);
        CALL(cuCtxResetPersistingL2Cache, "now", );
}

static void access_between(void)
{
        CUcontext first, second = NULL;

        first = compare_start();
        CALL(cuCtxEnablePeerAccess, "to itself", first, 0);
        CALL(cuCtxEnablePeerAccess, "to none", NULL, 0);
        CALL(cuCtxEnablePeerAccess, "flags 1", first, 1);
        CALL(cuCtxDisablePeerAccess, "of itself", first);
        CALL(cuCtxDisablePeerAccess, "of none", NULL);
        if (CALL(cuCtxCreate_v2, "on the same device", &second, 0, 0) != CUDA_SUCCESS)
                return;
        CALL(cuCtxEnablePeerAccess, "on the same device", first, 0);
        CALL(cuCtxDisablePeerAccess, "on the same device", first);
}

#define NO_PROCESS 0x7fffffff

static void checkpoints(void)
{
        CUprocessState state;

        compare_start();
        CALL(cuCheckpointProcessGetState, "of none", NO_PROCESS, &state);
        CALL(cuCheckpointProcessLock, "none", NO_PROCESS, NULL);
        CALL(cuCheckpointProcessCheckpoint, "none", NO_PROCESS, NULL);
        CALL(cuCheckpointProcessRestore, "none", NO_PROCESS, NULL);
        CALL(cuCheckpointProcessUnlock, "none", NO_PROCESS, NULL);
}

const struct compare_case compare_context[] = {
        { "devices", devices },
        { "of-its-own", of_its_own },
        { "by-all-names", by_all_names },
        { "attached", attached },
        { "primary", primary },
        { "ends", ends },
        { "green", green },
        { "wrong-arguments", wrong_arguments },
        { "limits", limits },
        { "access-between", access_between },
        { "checkpoints", checkpoints },
        { NULL, NULL },
};
