/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint and restore, across processes. The test is the controller: it too has the driver. */

#include <errno.h>

#include "sim/test-guest.h"

/*
 * The controller runs in a process of its own, so that the test program can go on forking ones
 * without a driver; it asks the test for guests, which it gets by pid.
 */
static struct guest target; /* of the test that runs now */

static CUresult lock(unsigned int timeout_ms)
{
        CUcheckpointLockArgs args = { 0 };

        args.timeoutMs = timeout_ms;
        return cuCheckpointProcessLock(target.pid, &args);
}

static CUresult checkpoint(void)
{
        return cuCheckpointProcessCheckpoint(target.pid, NULL);
}

static CUresult unlock(void)
{
        return cuCheckpointProcessUnlock(target.pid, NULL);
}

static CUresult restore(CUcheckpointGpuPair *pairs, unsigned int n)
{
        CUcheckpointRestoreArgs args = { 0 };

        args.gpuPairs = pairs;
        args.gpuPairsCount = n;
        return cuCheckpointProcessRestore(target.pid, n ? &args : NULL);
}

static CUprocessState get_state(void)
{
        CUprocessState state;

        must(cuCheckpointProcessGetState(target.pid, &state));
        return state;
}

/* Answers each number heard with the next step of its work; ends at 0. */
static void work(int socket)
{
        uint32_t value = 100, word;
        CUdeviceptr pointer, small;
        CUuuid uuid;
        char bus[32];

        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 64 * MIB));
        must(cuMemAlloc_v2(&small, 256));
        must(cuMemsetD32_v2(pointer, value, 16 * MIB));
        must(cuMemsetD32_v2(small, 7, 64));
        guest_tell(socket, 0, -1);
        while (guest_hear(socket, NULL)) {
                must(cuMemcpyDtoH_v2(&word, pointer + 64 * MIB - 4, sizeof(word)));
                must_equal(word, value);
                must(cuMemcpyDtoH_v2(&word, small + 252, sizeof(word)));
                must_equal(word, 7);
                must(cuMemsetD32_v2(pointer, ++value, 16 * MIB));
                must(cuDeviceGetUuid(&uuid, 0));
                must(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
                must_equal(strcmp(bus, "0000:06:00.0"), 0); /* stays */
                guest_tell(socket, uuid.bytes[0], -1);
        }
}

/* The guest's device, by the first byte of its UUID. */
static uint64_t let_work(void)
{
        guest_tell(target.socket, 1, -1);
        return guest_hear(target.socket, NULL);
}

static void start(void (*run)(int socket))
{
        target = guest_start(run);
        (void)guest_hear(target.socket, NULL);
}

static void end(void)
{
        guest_tell(target.socket, 0, -1);
        must_equal(guest_end(&target), 0);
}

static void control_states(int socket)
{
        CUprocessState state;
        int tid;

        (void)socket;
        start(work);
        (void)guest_init(0);

        must_equal(get_state(), CU_PROCESS_STATE_RUNNING);
        must_equal(cuCheckpointProcessGetState(target.pid, NULL), CUDA_ERROR_INVALID_VALUE);
        must_equal(checkpoint(), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(restore(NULL, 0), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);
        must(cuCheckpointProcessGetRestoreThreadId(target.pid, &tid));
        must_equal(kill(tid, 0), 0);

        must(lock(0));
        must_equal(get_state(), CU_PROCESS_STATE_LOCKED);
        must_equal(lock(0), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(restore(NULL, 0), CUDA_ERROR_ILLEGAL_STATE);

        must(checkpoint());
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
        must_equal(lock(0), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(checkpoint(), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);

        must(restore(NULL, 0));
        must_equal(get_state(), CU_PROCESS_STATE_LOCKED);
        must(unlock());
        must_equal(get_state(), CU_PROCESS_STATE_RUNNING);
        (void)let_work();
        end();

        must_equal(cuCheckpointProcessGetState(target.pid, &state), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(cuCheckpointProcessGetState(-1, &state), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(cuCheckpointProcessGetState(0, &state), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(cuCheckpointProcessGetState(getppid(), &state), CUDA_ERROR_NOT_INITIALIZED);
        must_equal(cuCheckpointProcessGetRestoreThreadId(getppid(), &tid),
                   CUDA_ERROR_NOT_INITIALIZED);
        must_equal(cuCheckpointProcessLock(getppid(), NULL), CUDA_ERROR_NOT_INITIALIZED);
        must(cuCheckpointProcessLock(getpid(), NULL)); /* of itself */
        must(cuCheckpointProcessUnlock(getpid(), NULL));
}

static void test_each_state_allows_what_the_real_driver_allows(void **state)
{
        (void)state;
        guest_run(control_states);
}

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

static void control_busy(int socket)
{
        CUprocessState state;

        (void)socket;
        (void)guest_init(0);
        target.pid = (int)guest_hear(socket, NULL);
        must_equal(lock(20), CUDA_ERROR_NOT_READY);
        must_equal(get_state(), CU_PROCESS_STATE_RUNNING);
        must(cuCheckpointProcessGetState(target.pid, &state));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL); /* the work ends */
        must(lock(0));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        must(unlock());
}

static void wait_for_byte(void *data)
{
        (void)guest_hear(*(int *)data, NULL);
}

/* Its work waits in a host function until it is told; then it calls the driver once more. */
static void be_busy(int socket)
{
        CUdeviceptr pointer;

        (void)guest_init(0);
        must(cuLaunchHostFunc(NULL, wait_for_byte, &socket));
        guest_tell(socket, 0, -1);
        must(cuMemAlloc_v2(&pointer, 100));
        must(cuStreamSynchronize(NULL));
        guest_tell(socket, 1, -1);
        while (guest_hear(socket, NULL))
                guest_tell(socket, (uint64_t)cuMemAlloc_v2(&pointer, 100), -1);
}

static bool has_message(int socket)
{
        char byte;

        return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

static void test_a_lock_waits_for_work_and_then_calls_wait_for_it(void **state)
{
        struct guest busy = guest_start(be_busy), controller;

        (void)state;
        (void)guest_hear(busy.socket, NULL);
        controller = guest_start(control_busy);
        guest_tell(controller.socket, (uint64_t)busy.pid, -1);
        (void)guest_hear(controller.socket, NULL); /* has timed out */
        guest_tell(busy.socket, 0, -1);            /* the work ends */
        (void)guest_hear(busy.socket, NULL);
        guest_tell(controller.socket, 0, -1);
        (void)guest_hear(controller.socket, NULL); /* is locked */
        guest_tell(busy.socket, 1, -1);
        assert_false(has_message(busy.socket));
        guest_tell(controller.socket, 0, -1);
        assert_int_equal(guest_hear(busy.socket, NULL), CUDA_SUCCESS);
        assert_int_equal(guest_end(&controller), 0);
        guest_tell(busy.socket, 0, -1);
        assert_int_equal(guest_end(&busy), 0);
}

static void lock_and_die(int socket)
{
        (void)guest_init(0);
        target.pid = (int)guest_hear(socket, NULL);
        guest_tell(socket, 0, -1);
        (void)lock(0);
}

static void test_a_lock_whose_caller_dies_is_undone(void **state)
{
        struct guest busy = guest_start(be_busy), locker;

        (void)state;
        (void)guest_hear(busy.socket, NULL);
        locker = guest_start(lock_and_die);
        guest_tell(locker.socket, (uint64_t)busy.pid, -1);
        (void)guest_hear(locker.socket, NULL);
        assert_int_equal(guest_kill(&locker), 128 + SIGKILL);
        guest_tell(busy.socket, 0, -1);
        assert_int_equal(guest_hear(busy.socket, NULL), 1);
        guest_tell(busy.socket, 1, -1);
        assert_int_equal(guest_hear(busy.socket, NULL), CUDA_SUCCESS);
        guest_tell(busy.socket, 0, -1);
        assert_int_equal(guest_end(&busy), 0);
}

static void synchronize_for_ever(int socket)
{
        (void)guest_init(0);
        for (int i = 0;; i++) {
                must(cuCtxSynchronize());
                if (i == 20)
                        guest_tell(socket, 0, -1);
        }
}

static void control_synchronizing(int socket)
{
        CUprocessState state;

        (void)socket;
        start(synchronize_for_ever);
        (void)guest_init(0);
        must(lock(0));
        must_equal(checkpoint(), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(guest_end(&target), 128 + SIGSEGV);
        must_equal(cuCheckpointProcessGetState(target.pid, &state), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(unlock(), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(guest_get_free(), 1 * GIB - 64 * MIB);
}

static void test_a_synchronize_loop_kills_the_process_at_its_checkpoint(void **state)
{
        (void)state;
        guest_run(control_synchronizing);
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
                cmocka_unit_test(test_each_state_allows_what_the_real_driver_allows),
                cmocka_unit_test(test_a_cycle_keeps_memory_and_frees_the_device_and_moves),
                cmocka_unit_test(test_a_restore_without_room_loses_the_process_and_no_memory),
                cmocka_unit_test(test_a_lock_waits_for_work_and_then_calls_wait_for_it),
                cmocka_unit_test(test_a_lock_whose_caller_dies_is_undone),
                cmocka_unit_test(test_a_synchronize_loop_kills_the_process_at_its_checkpoint),
                cmocka_unit_test(test_managed_memory_is_refused_and_harmless),
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
