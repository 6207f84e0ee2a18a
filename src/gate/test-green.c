/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: parts of the primary one, with streams of their own. */
#include <stdatomic.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/capture.h"
#include "gate/fake-guest.h"
#include "gate/idle.h"

static const struct instance_page *page;

/* A stream that does not go on until it is told to. */
static atomic_bool is_held;

static void hold(void *unused)
{
        (void)unused;
        while (atomic_load(&is_held))
                usleep(100);
}

static void hold_stream(CUstream stream)
{
        atomic_store(&is_held, true);
        check(cuLaunchHostFunc(stream, hold, NULL) == CUDA_SUCCESS);
}

static CUgreenCtx new_green(CUcontext *ret_context)
{
        CUdevResource all, part;
        CUdevResourceDesc description;
        unsigned int n = 1;
        CUgreenCtx green;

        check(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
        check(cuDevSmResourceSplitByCount(&part, &n, &all, NULL, 0, 16) == CUDA_SUCCESS);
        check(n == 1 && part.sm.smCount == 16);
        check(cuDevResourceGenerateDesc(&description, &part, 1) == CUDA_SUCCESS);
        check(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
              CUDA_SUCCESS);
        check(cuCtxFromGreenCtx(ret_context, green) == CUDA_SUCCESS);
        return green;
}

static CUstream new_stream(CUgreenCtx green)
{
        CUstream stream;

        check(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
        return stream;
}

FAKE_TEST(test_memory_that_a_green_context_has_made_outlives_it)
{
        CUcontext primary, context, of_memory = NULL;
        uint32_t value = 0;
        CUdeviceptr memory;
        CUgreenCtx green;

        page = fake_guest_start(GIB);
        check(cuCtxGetCurrent(&primary) == CUDA_SUCCESS);
        green = new_green(&context);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&memory, 40 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD32_v2(memory, 5, 10) == CUDA_SUCCESS);
        check(cuPointerGetAttribute(&of_memory, CU_POINTER_ATTRIBUTE_CONTEXT, memory) ==
              CUDA_SUCCESS);
        check(of_memory == primary);
        check(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
        check(cuGreenCtxDestroy(green) == CUDA_SUCCESS);
        check(cuGreenCtxDestroy(green) == CUDA_ERROR_INVALID_CONTEXT);

        check(cuMemcpyDtoH_v2(&value, memory, 4) == CUDA_SUCCESS && value == 5);
        check(fake_guest_used(page) == 40 * MIB);
        check(cuMemFree_v2(memory) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0);
}

FAKE_TEST(test_memory_ends_with_the_primary_context_that_the_last_green_one_keeps)
{
        CUcontext context, other;
        CUdeviceptr memory, pooled;
        uint32_t value = 0;
        CUgreenCtx green;
        CUstream stream;

        page = fake_guest_start(GIB);
        check(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
        green = new_green(&context);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        stream = new_stream(green);
        check(cuMemAlloc_v2(&memory, 2 * MIB) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&pooled, 3 * MIB, stream) == CUDA_SUCCESS);
        check(cuMemsetD32Async(pooled, 7, 10, stream) == CUDA_SUCCESS);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);

        check(cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS);
        check(cuCtxDestroy_v2(other) == CUDA_SUCCESS); /* another one is left */
        check(cuMemcpyDtoH_v2(&value, pooled, 4) == CUDA_SUCCESS && value == 7);

        check(fake_guest_used(page) > 0);
        check(cuGreenCtxDestroy(green) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0);
}

FAKE_TEST(test_a_capture_ends_with_its_green_context)
{
        CUcontext context;
        CUgreenCtx green;
        CUstream stream;

        fake_guest_start(GIB);
        green = new_green(&context);
        stream = new_stream(green);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        check(capture_is_active());
        check(cuGreenCtxDestroy(green) == CUDA_SUCCESS);
        check(!capture_is_active());
        fake_guest_close();
}

FAKE_TEST(test_work_of_a_green_context_is_seen)
{
        CUcontext context;
        CUgreenCtx green;
        CUstream stream;

        fake_guest_start(GIB);
        green = new_green(&context);
        stream = new_stream(green);
        hold_stream(stream);
        check(idle_mark() == 0);
        check(!idle_is_reached());
        check(idle_was_busy(context));
        atomic_store(&is_held, false);
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        while (!idle_is_reached())
                usleep(100);
        check(!idle_was_busy(context));
        check(cuGreenCtxDestroy(green) == CUDA_SUCCESS);
}

/* Its events go on, and its default stream is none that a later context has. */
FAKE_TEST(test_memory_is_not_used_again_before_a_green_context_is_done_with_it)
{
        CUdeviceptr memory, again;
        CUcontext primary, context;
        CUgreenCtx green;

        fake_guest_start(4 * MIB);
        check(cuCtxGetCurrent(&primary) == CUDA_SUCCESS);
        green = new_green(&context);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&memory, 2 * MIB, NULL) == CUDA_SUCCESS);
        hold_stream(NULL);
        check(cuMemFreeAsync(memory, NULL) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
        check(cuGreenCtxDestroy(green) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&again, 2 * MIB, NULL) == CUDA_SUCCESS && again != memory);
        atomic_store(&is_held, false);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(cuMemFree_v2(again) == CUDA_SUCCESS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_memory_that_a_green_context_has_made_outlives_it),
                cmocka_unit_test(
                        test_memory_ends_with_the_primary_context_that_the_last_green_one_keeps),
                cmocka_unit_test(test_a_capture_ends_with_its_green_context),
                cmocka_unit_test(test_work_of_a_green_context_is_seen),
                cmocka_unit_test(
                        test_memory_is_not_used_again_before_a_green_context_is_done_with_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
