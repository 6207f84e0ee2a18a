/* SPDX-License-Identifier: Apache-2.0 */
/* Driver calls that fail: what they leave is counted, and in nobody's way. */
#include <stdlib.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/fake-guest.h"

FAKE_TEST(test_the_driver_is_not_asked_about_addresses_that_come_again)
{
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemAddressFree@1=999", 1) == 0);
        fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemAddressFree(pointer, 4 * MIB) == CUDA_ERROR_INVALID_VALUE);
}

FAKE_TEST(test_a_failing_driver_call_leaves_nothing_behind)
{
        struct instance_page *page;
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL",
                     "cuMemAddressReserve@1=2,cuMemAddressReserve@2=2," /* the arena's, and one */
                     "cuMemCreate@1=2,cuMemMap@1=2,cuMemSetAccess@1=2",
                     1) == 0);
        page = fake_guest_start(16 * MIB);
        for (int i = 0; i < 4; i++) {
                check(cuMemAlloc_v2(&pointer, 16 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
                check(fake_guest_used(page) == 0);
        }
        check(cuMemAlloc_v2(&pointer, 16 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(pointer, 1, 16 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0);
}

FAKE_TEST(test_memory_is_kept_when_the_device_fails_before_it_can_be_freed)
{
        struct instance_page *page;
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuCtxSynchronize@1=999", 1) == 0);
        page = fake_guest_start(16 * MIB);
        check(cuMemAlloc_v2(&pointer, 8 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_ERROR_UNKNOWN);
        check(fake_guest_used(page) == 8 * MIB);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0);
}

FAKE_TEST(test_memory_that_the_driver_does_not_unmap_is_in_nobodys_way)
{
        struct instance_page *page;
        CUdeviceptr stays, pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemUnmap@1=999", 1) == 0);
        page = fake_guest_start(16 * MIB);
        check(cuMemAlloc_v2(&stays, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(stays) == CUDA_ERROR_UNKNOWN);
        check(fake_guest_used(page) == 4 * MIB && page->slot[FAKE_SLOT].n_allocations == 1);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(stays, 1, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemFree_v2(stays) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
}

FAKE_TEST(test_an_address_that_cannot_be_unmapped_is_not_given_out_again)
{
        struct instance_page *page;
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemSetAccess@1=999,cuMemUnmap@1=999,cuMemUnmap@2=999",
                     1) == 0);
        page = fake_guest_start(16 * MIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_ERROR_UNKNOWN);
        check(fake_guest_used(page) == 4 * MIB); /* the device does hold it */
        check(cuMemAlloc_v2(&pointer, 100) == CUDA_SUCCESS);
        check(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS); /* where its block is not unmapped */
        check(fake_guest_used(page) == 6 * MIB && page->slot[FAKE_SLOT].n_allocations == 0);
        fake_context();
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(pointer, 1, 4 * MIB) == CUDA_SUCCESS);
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 6 * MIB);
}

/* On a device without a byte left. */
FAKE_TEST(test_memory_may_be_freed_in_a_capture_when_the_device_is_full)
{
        CUdeviceptr pointer;
        CUstream stream;
        CUgraph graph;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemAlloc_v2@1=2,cuMemAlloc_v2@2=2", 1) == 0);
        fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) != CUDA_SUCCESS); /* refused, as the driver refuses it */
        check(cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_driver_is_not_asked_about_addresses_that_come_again),
                cmocka_unit_test(test_a_failing_driver_call_leaves_nothing_behind),
                cmocka_unit_test(test_memory_is_kept_when_the_device_fails_before_it_can_be_freed),
                cmocka_unit_test(test_memory_that_the_driver_does_not_unmap_is_in_nobodys_way),
                cmocka_unit_test(test_an_address_that_cannot_be_unmapped_is_not_given_out_again),
                cmocka_unit_test(test_memory_may_be_freed_in_a_capture_when_the_device_is_full),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
