/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint does to memory: kept, given back, moved to another device, or lost. */

#include <pthread.h>
#include <unistd.h>

#include "sim/test-target.h"

static void control_cycles(int socket)
{
        uint64_t before, running;
        CUcheckpointGpuPair pairs[2], unknown[2], one[1];
        CUuuid uuid[2];

        (void)socket;
        start(work);
        (void)guest_init(0);
        must(cuDeviceGetUuid(&uuid[0], 0));
        must(cuDeviceGetUuid(&uuid[1], 1));
        pairs[0] = (CUcheckpointGpuPair){ uuid[0], uuid[1] };
        pairs[1] = (CUcheckpointGpuPair){ uuid[1], uuid[0] };
        memcpy(unknown, pairs, sizeof(pairs));
        unknown[0].newUuid.bytes[5] ^= 1;
        one[0] = pairs[0];

        running = guest_get_free();
        before = running + 64 * MIB + 2 * MIB + 64 * MIB; /* large, block, context */
        must_equal(let_work(), uuid[0].bytes[0]);

        for (int cycle = 0; cycle < 3; cycle++) {
                must(lock(1000));
                must(checkpoint());
                must_equal(guest_get_free(), before); /* nothing is left on the device */
                must(restore(NULL, 0));
                must_equal(guest_get_free(), running);
                must(unlock());
                must_equal(let_work(), uuid[0].bytes[0]);
        }

        must(lock(0));
        must(checkpoint());
        must_equal(restore(unknown, 2), CUDA_ERROR_INVALID_VALUE);
        must_equal(restore(one, 1), CUDA_ERROR_INVALID_VALUE);
        must_equal(restore(NULL, 1), CUDA_ERROR_INVALID_VALUE);
        pairs[1].newUuid = uuid[1];
        must_equal(restore(pairs, 2), CUDA_ERROR_INVALID_VALUE);
        pairs[1].newUuid = uuid[0];
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
        must(restore(pairs, 2)); /* to the other device */
        must_equal(guest_get_free(), before);
        must(unlock());
        must_equal(let_work(), uuid[1].bytes[0]);

        must(lock(0));
        must(checkpoint());
        must(restore(NULL, 0)); /* stays there */
        must(unlock());
        must_equal(let_work(), uuid[1].bytes[0]);

        must(lock(0));
        must(checkpoint());
        must(restore(pairs, 2)); /* and back */
        must(unlock());
        must_equal(let_work(), uuid[0].bytes[0]);
        must_equal(guest_get_free(), running);
        end();
        must_equal(guest_get_free(), before);
}

static void test_a_cycle_keeps_memory_and_frees_the_device_and_moves(void **state)
{
        (void)state;
        guest_run(control_cycles);
}

static void control_without_room(int socket)
{
        CUdeviceptr pointer;

        (void)socket;
        start(work);
        (void)guest_init(0);
        must(lock(0));
        must(checkpoint());
        must(cuMemAlloc_v2(&pointer, guest_get_free() - 100 * MIB));
        must_equal(restore(NULL, 0), CUDA_ERROR_OUT_OF_MEMORY);
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
        must(cuMemFree_v2(pointer));
        must_equal(restore(NULL, 0), CUDA_ERROR_OPERATING_SYSTEM); /* it is lost */
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(guest_kill(&target), 128 + SIGKILL);
        must_equal(guest_get_free(), 1 * GIB - 64 * MIB);
}

static void test_a_restore_without_room_loses_the_process_and_no_memory(void **state)
{
        (void)state;
        guest_run(control_without_room);
}

static void have_managed(int socket)
{
        CUdeviceptr pointer;

        (void)guest_init(0);
        must(cuMemAllocManaged(&pointer, 4096, CU_MEM_ATTACH_GLOBAL));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        must(cuMemFree_v2(pointer));
}

static void control_managed(int socket)
{
        (void)socket;
        start(have_managed);
        (void)guest_init(0);
        must(lock(0));
        must_equal(checkpoint(), CUDA_ERROR_NOT_SUPPORTED);
        must_equal(get_state(), CU_PROCESS_STATE_LOCKED);
        must(unlock());
        end();
}

static void test_managed_memory_is_refused_and_harmless(void **state)
{
        (void)state;
        guest_run(control_managed);
}

/* Measured: nothing need be allocated from it. */
static void have_managed_pool(int socket)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED };
        CUmemoryPool pool;

        (void)guest_init(0);
        must(cuMemPoolCreate(&pool, &props));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void control_managed_pool(int socket)
{
        (void)socket;
        start(have_managed_pool);
        (void)guest_init(0);
        must(lock(0));
        must(checkpoint());
        must_equal(restore(NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
        must_equal(restore(NULL, 0), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(guest_kill(&target), 128 + SIGKILL);
}

static void test_a_managed_pool_loses_the_process(void **state)
{
        (void)state;
        guest_run(control_managed_pool);
}

static void have_host_pool(int socket)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_HOST, 0 },
                                       .maxSize = 2 * MIB };
        CUdeviceptr pointer;
        CUmemoryPool pool;

        (void)guest_init(0);
        must(cuMemPoolCreate(&pool, &props));
        must(cuMemAllocFromPoolAsync(&pointer, 1024, pool, NULL));
        must(cuMemsetD8_v2(pointer, 1, 1024));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void *await_checkpoint(void *result)
{
        *(CUresult *)result = checkpoint();
        return NULL;
}

/* The call returns when the process has ended, and says that it could not be reached. */
static void control_host_pool(int socket)
{
        CUresult result = CUDA_SUCCESS;
        pthread_t thread;

        (void)socket;
        start(have_host_pool);
        (void)guest_init(0);
        must(lock(0));
        must_equal(pthread_create(&thread, NULL, await_checkpoint, &result), 0);
        for (int i = 0; i < 100; i++, usleep(1000)) /* one that returned would be seen by then */
                must_equal(get_state(), CU_PROCESS_STATE_LOCKED);
        must_equal(guest_kill(&target), 128 + SIGKILL);
        must_equal(pthread_join(thread, NULL), 0);
        must_equal(result, CUDA_ERROR_OPERATING_SYSTEM);
}

static void test_the_checkpoint_of_memory_of_a_host_pool_never_returns(void **state)
{
        (void)state;
        guest_run(control_host_pool);
}

#define PAGE (2 * MIB)

static CUmemGenericAllocationHandle create_shareable(void)
{
        CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .requestedHandleTypes = 1,
                                     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        CUmemGenericAllocationHandle handle;

        must(cuMemCreate(&handle, PAGE, &prop, 0));
        return handle;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
        CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                   CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUdeviceptr pointer;

        must(cuMemAddressReserve(&pointer, PAGE, 0, 0, 0));
        must(cuMemMap(pointer, PAGE, 0, handle, 0));
        must(cuMemSetAccess(pointer, PAGE, &access, 1));
        return pointer;
}

/* Exports memory, and says what it holds and whether it can be exported again. */
static void have_exported(int socket)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;
        uint32_t word;
        int fd;

        (void)guest_init(0);
        handle = create_shareable();
        pointer = map(handle);
        must(cuMemsetD32_v2(pointer, 33, PAGE / 4));
        must(cuMemExportToShareableHandle(&fd, handle, 1, 0));
        guest_tell(socket, 0, fd);
        (void)close(fd);
        (void)guest_hear(socket, NULL);
        must(cuMemcpyDtoH_v2(&word, pointer, sizeof(word)));
        must_equal(word, 33);
        must(cuMemExportToShareableHandle(&fd, handle, 1, 0));
}

static void control_exported(int socket)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;
        uint64_t before;
        int fd;

        (void)socket;
        target = guest_start(have_exported);
        (void)guest_hear(target.socket, &fd);
        (void)guest_init(0);
        must(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1));
        (void)close(fd);
        pointer = map(handle);
        before = guest_get_free();
        must(lock(0));
        must(checkpoint());
        must_equal(guest_get_free(), before + 64 * MIB); /* the context; the memory is ours now */
        must(restore(NULL, 0));
        must(unlock());
        must_equal(guest_get_free(), before - PAGE); /* there are two of it */
        must(cuMemsetD32_v2(pointer, 44, PAGE / 4)); /* and the guest does not see this */
        end();
}

static void test_sharing_ends_with_a_checkpoint(void **state)
{
        (void)state;
        guest_run(control_exported);
}

static void have_imported(int socket)
{
        CUmemGenericAllocationHandle handle;
        int fd;

        (void)guest_init(0);
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, &fd);
        must(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void control_imported(int socket)
{
        int fd;

        (void)socket;
        start(have_imported);
        (void)guest_init(0);
        must(cuMemExportToShareableHandle(&fd, create_shareable(), 1, 0));
        guest_tell(target.socket, 0, fd);
        (void)close(fd);
        (void)guest_hear(target.socket, NULL);
        must(lock(0));
        must(checkpoint());
        must_equal(restore(NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
        must_equal(restore(NULL, 0), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(guest_kill(&target), 128 + SIGKILL);
}

static void test_held_imports_lose_the_process(void **state)
{
        (void)state;
        guest_run(control_imported);
}

/* Sees only device 0; after its move it says what importing memory answers, and makes its own. */
static void import_after_move(int socket)
{
        CUmemGenericAllocationHandle handle;
        int fd;

        (void)setenv("CUDA_VISIBLE_DEVICES", "0", 1);
        (void)guest_init(0);
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, &fd);
        guest_tell(socket,
                   (uint64_t)cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1), -1);
        handle = create_shareable();
        (void)map(handle);
        must(cuMemExportToShareableHandle(&fd, handle, 1, 0));
        guest_tell(socket, 0, fd);
        (void)guest_hear(socket, NULL);
}

static void control_import_after_move(int socket)
{
        CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .requestedHandleTypes = 1,
                                     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };
        CUmemGenericAllocationHandle handle;
        CUcheckpointGpuPair pairs[2];
        CUuuid uuid[2];
        int fd;

        (void)socket;
        start(import_after_move);
        (void)guest_init(1);
        must(cuDeviceGetUuid(&uuid[0], 0));
        must(cuDeviceGetUuid(&uuid[1], 1));
        pairs[0] = (CUcheckpointGpuPair){ uuid[0], uuid[1] };
        pairs[1] = (CUcheckpointGpuPair){ uuid[1], uuid[0] };
        must(lock(0));
        must(checkpoint());
        must(restore(pairs, 2));
        must(unlock());

        must(cuMemCreate(&handle, PAGE, &prop, 0));
        must(cuMemExportToShareableHandle(&fd, handle, 1, 0));
        guest_tell(target.socket, 0, fd);
        must_equal(guest_hear(target.socket, NULL), CUDA_ERROR_NOT_INITIALIZED);
        (void)guest_hear(target.socket, &fd);
        must(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1));
        must(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
        must_equal(prop.location.id, 1); /* it is where the guest is now */
        end();
}

static void test_a_moved_guest_exports_but_cannot_import(void **state)
{
        (void)state;
        guest_run(control_import_after_move);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_cycle_keeps_memory_and_frees_the_device_and_moves),
                cmocka_unit_test(test_a_restore_without_room_loses_the_process_and_no_memory),
                cmocka_unit_test(test_managed_memory_is_refused_and_harmless),
                cmocka_unit_test(test_a_managed_pool_loses_the_process),
                cmocka_unit_test(test_the_checkpoint_of_memory_of_a_host_pool_never_returns),
                cmocka_unit_test(test_sharing_ends_with_a_checkpoint),
                cmocka_unit_test(test_held_imports_lose_the_process),
                cmocka_unit_test(test_a_moved_guest_exports_but_cannot_import),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
