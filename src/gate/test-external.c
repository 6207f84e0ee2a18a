/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from other libraries, and calls that take a handle of memory: the simulated driver has none of these, so a
 * driver that grants them stands in its place.
 */
#include <string.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/hook.h"
#include "gate/vmm.h"

static const struct instance_page_slot *slot;

static void start(void)
{
        slot = &fake_guest_start(64 * MIB)->slot[FAKE_SLOT];
}

/* REPLACE(cuImportExternalMemory, grant_memory) - in the driver */
#define REPLACE(name, by)                                                 \
        do {                                                              \
                __typeof__(&name) other = (by);                           \
                memcpy(&entry_real[ENTRY_##name], &other, sizeof(other)); \
        } while (0)

static bool is_refused;

static CUresult grant_memory(CUexternalMemory *memory, const void *description)
{
        *memory = (CUexternalMemory)0x1000;
        return description ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult end_memory(CUexternalMemory memory)
{
        (void)memory;
        return is_refused ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

FAKE_TEST(test_memory_of_another_library_keeps_the_process_until_it_is_let_go)
{
        CUexternalMemory memory;

        start();
        REPLACE(cuImportExternalMemory, grant_memory);
        REPLACE(cuDestroyExternalMemory, end_memory);
        check(cuImportExternalMemory(&memory, NULL) == CUDA_ERROR_INVALID_VALUE);
        check(slot->holds == 0);
        check(cuImportExternalMemory(&memory, &memory) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_UNPROVEN && slot->used[INSTANCE_PAGE_FIXED] == 0);
        is_refused = true;
        check(cuDestroyExternalMemory(memory) == CUDA_ERROR_UNKNOWN);
        check(slot->holds == GATE_HOLDS_UNPROVEN);
        is_refused = false;
        check(cuDestroyExternalMemory(memory) == CUDA_SUCCESS);
        check(slot->holds == 0 && slot->n_allocations == 0);
}

/* Handles of memory. */

static CUmemGenericAllocationHandle new_handle(void)
{
        const CUmemAllocationProp prop = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
        };
        CUmemGenericAllocationHandle handle;

        check(cuMemCreate(&handle, 4 * MIB, &prop, 0) == CUDA_SUCCESS);
        check(vmm_is_ours(handle));
        return handle;
}

static CUmemGenericAllocationHandle seen;

static CUresult map_array(CUarrayMapInfo *list, unsigned int n, CUstream stream)
{
        (void)stream;
        check(n == 1);
        seen = list->memHandle;
        return CUDA_SUCCESS;
}

FAKE_TEST(test_memory_in_a_sparse_array_is_the_drivers_and_stays_where_it_is)
{
        CUarrayMapInfo map;

        start();
        memset(&map, 0, sizeof(map));
        map.memHandle = new_handle();
        REPLACE(cuMemMapArrayAsync, map_array);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 4 * MIB);
        check(cuMemMapArrayAsync(&map, 1, NULL) == CUDA_SUCCESS);
        check(!vmm_is_ours(seen) && vmm_is_ours(map.memHandle));
        check(slot->holds == GATE_HOLDS_UNPROVEN);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 0 && slot->used[INSTANCE_PAGE_FIXED] == 4 * MIB);
}

static CUresult bind_address(CUmemGenericAllocationHandle multicast, size_t offset,
                             CUdeviceptr pointer, size_t size, unsigned long long flags)
{
        (void)multicast;
        (void)offset;
        (void)size;
        (void)flags;
        return pointer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult bind_memory(CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset,
                            CUmemGenericAllocationHandle handle, size_t memory_offset, size_t size,
                            unsigned long long flags)
{
        (void)device;
        seen = handle;
        return bind_address(multicast, offset, memory_offset + 1, size, flags);
}

FAKE_TEST(test_what_is_bound_to_a_multicast_object_stays_where_it_is)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr mapped, pooled;

        start();
        REPLACE(cuMulticastBindAddr, bind_address);
        REPLACE(cuMulticastBindMem_v2, bind_memory);
        handle = new_handle();
        check(cuMemAddressReserve(&mapped, 4 * MIB, 0, 0, 0) == CUDA_SUCCESS);
        check(cuMemMap(mapped, 4 * MIB, 0, handle, 0) == CUDA_SUCCESS);
        check(cuMemAllocAsync(&pooled, 2 * MIB, NULL) == CUDA_SUCCESS);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 6 * MIB);
        check(cuMulticastBindAddr(1, 0, mapped, 4 * MIB, 0) == CUDA_SUCCESS);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 2 * MIB && slot->holds == GATE_HOLDS_MULTICAST);
        check(cuMulticastBindAddr(1, 0, pooled, 2 * MIB, 0) == CUDA_SUCCESS);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 0);

        handle = new_handle();
        check(cuMulticastBindMem_v2(1, 0, 0, handle, 0, 4 * MIB, 0) == CUDA_SUCCESS);
        check(!vmm_is_ours(seen) && slot->used[INSTANCE_PAGE_MOVABLE] == 0);
}

/* A driver that is younger than the table. */

static void nothing(void)
{
}

static CUresult find_younger(const char *symbol, void **function, int version, uint64_t flags,
                             int *status)
{
        void (*address)(void) = nothing;

        (void)symbol;
        (void)version;
        (void)flags;
        memcpy(function, &address, sizeof(address));
        if (status)
                *status = 0;
        return CUDA_SUCCESS;
}

FAKE_TEST(test_a_younger_version_of_what_has_a_hook_is_not_found)
{
        void *function;
        int status;

        start();
        REPLACE(cuGetProcAddress_v2, find_younger);
        check(cuGetProcAddress_v2("cuMulticastBindMem", &function, 14000, 0, &status) ==
              CUDA_SUCCESS);
        check(!function && status == 2);
        check(cuGetProcAddress_v2("cuStreamBeginCapture", &function, 14000, 0, NULL) ==
              CUDA_SUCCESS);
        check(!function);
        check(cuGetProcAddress_v2("cuMulticast", &function, 14000, 0, &status) == CUDA_SUCCESS);
        check(function && status == 0); /* a name that nothing has, though some begin so */
        check(cuGetProcAddress_v2("cuCtxGetId", &function, 14000, 0, &status) == CUDA_SUCCESS);
        check(function); /* forwarded, as its older ones */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        test_memory_of_another_library_keeps_the_process_until_it_is_let_go),
                cmocka_unit_test(
                        test_memory_in_a_sparse_array_is_the_drivers_and_stays_where_it_is),
                cmocka_unit_test(test_what_is_bound_to_a_multicast_object_stays_where_it_is),
                cmocka_unit_test(test_a_younger_version_of_what_has_a_hook_is_not_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
