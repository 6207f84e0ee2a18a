/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that others use: handles, tickets of legacy IPC, peers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/memory.h"

static __typeof__(&cuMemRelease) real_release;
static pthread_barrier_t both_inside;

static CUresult release_when_both_are_inside(CUmemGenericAllocationHandle handle)
{
        pthread_barrier_wait(&both_inside);
        return real_release(handle);
}

static void *release(void *argument)
{
        check(cuMemRelease(*(CUmemGenericAllocationHandle *)argument) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_two_threads_may_release_the_two_handles_of_one_allocation)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .allocFlags.usage = 1, /* of a sparse array: the driver's */
                                     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        CUmemGenericAllocationHandle handles[2];
        pthread_t threads[2];
        CUdeviceptr address;

        check(cuMemAddressReserve(&address, 2 * MIB, 0, 0, 0) == CUDA_SUCCESS);
        check(cuMemCreate(&handles[0], 2 * MIB, &prop, 0) == CUDA_SUCCESS);
        check(cuMemMap(address, 2 * MIB, 0, handles[0], 0) == CUDA_SUCCESS);
        check(cuMemRetainAllocationHandle(&handles[1], (void *)(uintptr_t)address) == CUDA_SUCCESS);
        check(cuMemUnmap(address, 2 * MIB) == CUDA_SUCCESS);

        check(pthread_barrier_init(&both_inside, NULL, 2) == 0);
        real_release = DRIVER(cuMemRelease);
        entry_real[ENTRY_cuMemRelease] = (entry_function)release_when_both_are_inside;
        for (int i = 0; i < 2; i++)
                check(pthread_create(&threads[i], NULL, release, &handles[i]) == 0);
        for (int i = 0; i < 2; i++)
                check(pthread_join(threads[i], NULL) == 0);
        entry_real[ENTRY_cuMemRelease] = (entry_function)real_release;
        check(fake_guest_used(page) == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
        check(cuMemRelease(handles[0]) == CUDA_ERROR_INVALID_VALUE);
        check(fake_guest_used(page) == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
}

static void get_ticket(struct gate_ticket *ret_ticket, CUdeviceptr pointer)
{
        CUipcMemHandle handle;

        check(cuIpcGetMemHandle(&handle, pointer) == CUDA_SUCCESS);
        memcpy(ret_ticket, &handle, sizeof(*ret_ticket));
        check(ret_ticket->process.mark == GATE_TICKET_MARK);
        check(ret_ticket->process.slot == FAKE_SLOT);
}

static CUipcMemHandle handle_of(const struct gate_ticket *ticket)
{
        CUipcMemHandle handle;

        memcpy(&handle, ticket, sizeof(handle));
        return handle;
}

FAKE_TEST(test_a_handle_of_legacy_ipc_is_a_ticket_that_its_own_process_cannot_open)
{
        struct gate_ticket large, small, again;
        CUdeviceptr pointer, opened;

        fake_guest_start(64 * MIB);
        check(cuMemAlloc_v2(&opened, 4096) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 4096) == CUDA_SUCCESS);
        get_ticket(&small, pointer);
        check(small.offset == pointer - opened && small.size == 4096);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_SUCCESS);
        get_ticket(&large, pointer);
        get_ticket(&again, pointer + 1000);
        check(memcmp(&large, &again, sizeof(large)) == 0);
        check(large.offset == 0 && large.size == 4 * MIB);
        check(memcmp(large.name, small.name, sizeof(large.name)) != 0);
        check(cuIpcOpenMemHandle_v2(&opened, handle_of(&large), 1) == CUDA_ERROR_INVALID_CONTEXT);
        check(cuIpcOpenMemHandle_v2(&opened, handle_of(&large), 0) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

FAKE_TEST(test_the_variable_for_legacy_ipc_makes_memory_native_and_counts_it)
{
        struct instance_page *page;
        CUdeviceptr pointer;

        check(setenv("OPENVGPU_NATIVE_IPC", "1", 1) == 0);
        page = fake_guest_start(64 * MIB);
        check(cuMemAlloc_v2(&pointer, 4 * MIB + 1) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_FIXED] == 4 * MIB + 1);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == 0);
        check(cuMemAlloc_v2(&pointer, 60 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(fake_guest_used(page) == 0);
}

/* The simulated driver has none; it says so with another answer than the gate. */
static CUresult make_host_memory(int handle_types)
{
        const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .requestedHandleTypes = handle_types,
                                           .location = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 } };
        CUmemGenericAllocationHandle handle;

        return cuMemCreate(&handle, 2 * MIB, &prop, 0);
}

FAKE_TEST(test_no_host_memory_is_made_to_be_exported_in_a_vgpu)
{
        fake_guest_start(64 * MIB);
        check(make_host_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
              CUDA_ERROR_NOT_SUPPORTED);
        check(make_host_memory(CU_MEM_HANDLE_TYPE_NONE) != CUDA_ERROR_NOT_SUPPORTED);
}

FAKE_TEST(test_the_variable_for_legacy_ipc_allows_host_memory_that_is_exported)
{
        check(setenv("OPENVGPU_NATIVE_IPC", "1", 1) == 0);
        fake_guest_start(64 * MIB);
        check(make_host_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) !=
              CUDA_ERROR_NOT_SUPPORTED);
}

FAKE_TEST(test_memory_of_a_peer_can_be_used_once_that_is_enabled)
{
        CUdeviceptr before, after, here;
        CUcontext context[2];
        unsigned char value;
        int n_devices;

        fake_host("2xH200:1G");
        check(cuInit(0) == CUDA_SUCCESS);
        check(cuDeviceGetCount(&n_devices) == CUDA_SUCCESS);
        if (n_devices < 2)
                return; /* a real machine with one */
        for (int i = 0; i < 2; i++)
                check(cuDevicePrimaryCtxRetain(&context[i], i) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[1]) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&before, 4 * MIB) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[0]) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&here, 4 * MIB) == CUDA_SUCCESS);
        check(cuCtxEnablePeerAccess(context[1], 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[1]) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&after, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(before, 11, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(after, 22, 4 * MIB) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context[0]) == CUDA_SUCCESS);
        check(cuMemcpyDtoD_v2(here, before, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&value, here + 4 * MIB - 1, 1) == CUDA_SUCCESS && value == 11);
        check(cuMemcpyDtoD_v2(here, after, 4 * MIB) == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&value, here, 1) == CUDA_SUCCESS && value == 22);
}

static CUdeviceptr made_meanwhile;

static void *make(void *context)
{
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&made_meanwhile, 4 * MIB) == CUDA_SUCCESS);
        return NULL;
}

/* It has its memory, and is not yet among those that are there. */
FAKE_TEST(test_memory_that_is_made_while_peer_access_is_enabled_has_it)
{
        const CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
        char directory[] = "/tmp/vgpu-test-XXXXXX", path[64];
        unsigned long long flags = 0;
        CUcontext context[2];
        pthread_t thread;

        if (!fake_is_simulated())
                return;
        check(mkdtemp(directory));
        check(setenv("OPENVGPU_FAULT_DIR", directory, 1) == 0);
        check(setenv("OPENVGPU_FAULT", "gate-made=pause", 1) == 0);
        fake_host("2xH200:1G");
        check(cuInit(0) == CUDA_SUCCESS);
        for (int i = 0; i < 2; i++)
                check(cuDevicePrimaryCtxRetain(&context[i], i) == CUDA_SUCCESS);
        check(pthread_create(&thread, NULL, make, context[1]) == 0);
        snprintf(path, sizeof(path), "%s/gate-made", directory);
        while (access(path, F_OK) < 0)
                check(usleep(1000) == 0);
        check(cuCtxSetCurrent(context[0]) == CUDA_SUCCESS);
        check(cuCtxEnablePeerAccess(context[1], 0) == CUDA_SUCCESS);
        check(unlink(path) == 0 && rmdir(directory) == 0);
        check(pthread_join(thread, NULL) == 0);
        check(DRIVER(cuMemGetAccess)(&flags, &location, made_meanwhile) == CUDA_SUCCESS);
        check(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_two_threads_may_release_the_two_handles_of_one_allocation),
                cmocka_unit_test(
                        test_a_handle_of_legacy_ipc_is_a_ticket_that_its_own_process_cannot_open),
                cmocka_unit_test(
                        test_the_variable_for_legacy_ipc_makes_memory_native_and_counts_it),
                cmocka_unit_test(test_no_host_memory_is_made_to_be_exported_in_a_vgpu),
                cmocka_unit_test(
                        test_the_variable_for_legacy_ipc_allows_host_memory_that_is_exported),
                cmocka_unit_test(test_memory_of_a_peer_can_be_used_once_that_is_enabled),
                cmocka_unit_test(test_memory_that_is_made_while_peer_access_is_enabled_has_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
