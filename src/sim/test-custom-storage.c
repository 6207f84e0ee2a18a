/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint and restore with custom storage, as CUDA 13.4 documents it. */

#include "sim/driver.h"
#include "sim/test-target.h"

static CUcheckpointCustomStorageInfo *info; /* of the open operation */

static CUresult begin_checkpoint(void)
{
        CUcheckpointCheckpointArgs args = { .customStorageInfo_out = &info };

        return cuCheckpointProcessCheckpoint(target.pid, &args);
}

static CUresult begin_restore(CUcheckpointGpuPair *pairs, unsigned int n)
{
        CUcheckpointRestoreArgs args = { .gpuPairs = pairs,
                                         .gpuPairsCount = n,
                                         .customStorageInfo_out = &info };

        return cuCheckpointProcessRestore(target.pid, &args);
}

static CUresult complete(void)
{
        return cuCheckpointOperationComplete(info->handle);
}

/* The copy of all that the target has on its one device. */
static char *copy;
static size_t copy_size;

static void copy_out(void)
{
        must_equal(info->deviceCount, 1);
        copy_size = info->perDeviceData[0].size;
        copy = malloc(copy_size);
        must(cuMemcpyDtoHAsync_v2(copy, info->perDeviceData[0].devPtr, copy_size,
                                  info->perDeviceData[0].stream));
}

static void copy_in(void)
{
        must_equal(info->deviceCount, 1);
        must_equal(info->perDeviceData[0].size, copy_size);
        must(cuMemcpyHtoDAsync_v2(info->perDeviceData[0].devPtr, copy, copy_size,
                                  info->perDeviceData[0].stream));
}

static void save(void)
{
        must(lock(0));
        must(begin_checkpoint());
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTING);
        copy_out();
        must(complete());
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
}

static void control_round_trip(int socket)
{
        CUcontext context, of_stream, of_pointer;
        uint32_t word = 1;
        uint64_t left;

        (void)socket;
        start(work);
        context = guest_init(0);
        left = guest_get_free();
        save();
        must_equal(copy_size >= 64 * MIB, 1);
        must_equal(guest_get_free() > left + 64 * MIB, 1);

        must_equal(restore(NULL, 0), CUDA_ERROR_INVALID_VALUE);
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
        must(begin_restore(NULL, 0));
        must_equal(get_state(), CU_PROCESS_STATE_RESTORING);
        must(cuStreamGetCtx(info->perDeviceData[0].stream, &of_stream));
        must_equal(of_stream == context, 1);
        must(cuPointerGetAttribute(&of_pointer, CU_POINTER_ATTRIBUTE_CONTEXT,
                                   info->perDeviceData[0].devPtr));
        must_equal(of_pointer == NULL, 1);
        for (size_t at = 0; at < copy_size; at += MIB) { /* the driver has kept nothing */
                must(cuMemcpyDtoH_v2(&word, info->perDeviceData[0].devPtr + at, sizeof(word)));
                must_equal(word, 0);
        }
        copy_in();
        must(complete());
        must_equal(get_state(), CU_PROCESS_STATE_LOCKED);
        must(unlock());
        (void)let_work();
        must(lock(0));
        must(checkpoint()); /* the driver's own way, next */
        must(restore(NULL, 0));
        must(unlock());
        (void)let_work();
        end();
}

static void test_what_is_copied_out_and_in_is_what_the_process_finds(void **state)
{
        (void)state;
        guest_run(control_round_trip);
}

static void control_states(int socket)
{
        CUcheckpointOperationHandle handle;

        (void)socket;
        start(work);
        (void)guest_init(0);
        must_equal(begin_checkpoint(), CUDA_ERROR_ILLEGAL_STATE);
        must(lock(0));
        must_equal(begin_restore(NULL, 0), CUDA_ERROR_ILLEGAL_STATE);
        must(begin_checkpoint());
        must_equal(lock(0), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(checkpoint(), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(restore(NULL, 0), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);
        copy_out();
        handle = info->handle;
        must(complete());
        must_equal(cuCheckpointOperationComplete(handle), CUDA_ERROR_INVALID_VALUE);
        must(begin_restore(NULL, 0));
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);
        copy_in();
        must(complete());
        must(unlock());
        (void)let_work();
        end();
}

static void test_an_open_operation_allows_nothing_but_its_end(void **state)
{
        (void)state;
        guest_run(control_states);
}

static void control_without_context(int socket)
{
        CUcheckpointGpuPair pairs[2] = { 0 };
        CUcontext context;
        uint64_t first;

        (void)socket;
        start(work);
        first = let_work();
        must(cuInit(0));
        must(lock(0));
        must_equal(begin_checkpoint(), CUDA_ERROR_INVALID_CONTEXT);
        must_equal(get_state(), CU_PROCESS_STATE_LOCKED);
        must(cuDevicePrimaryCtxRetain(&context, 1)); /* which the target does not use */
        must_equal(begin_checkpoint(), CUDA_ERROR_INVALID_CONTEXT);
        must(cuDevicePrimaryCtxRelease_v2(1));
        must(unlock());
        (void)guest_init(0);
        save();

        for (int i = 0; i < 2; i++) {
                must(cuDeviceGetUuid(&pairs[i].oldUuid, i));
                must(cuDeviceGetUuid(&pairs[1 - i].newUuid, i));
        }
        must_equal(begin_restore(pairs, 2), CUDA_ERROR_INVALID_CONTEXT);
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
        must(cuDevicePrimaryCtxRelease_v2(0));
        (void)guest_init(1);
        must(begin_restore(pairs, 2));
        copy_in();
        must(complete());
        must(unlock());
        must_equal(let_work() != first, 1);
        end();
}

static void test_the_caller_needs_the_contexts_of_the_targets_devices(void **state)
{
        (void)state;
        guest_run(control_without_context);
}

static void control_captured(int socket)
{
        (void)socket;
        start(work);
        (void)guest_init(0);
        must(lock(0));
        must(begin_checkpoint());
        must(cuStreamBeginCapture_v2(info->perDeviceData[0].stream,
                                     CU_STREAM_CAPTURE_MODE_RELAXED));
        must_equal(complete(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        while (get_state() == CU_PROCESS_STATE_CHECKPOINTING)
                (void)usleep(1000);
        must_equal(get_state(), CU_PROCESS_STATE_FAILED);
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(guest_kill(&target), 128 + SIGKILL);
}

static void test_a_completion_that_fails_leaves_a_failed_process(void **state)
{
        (void)state;
        guest_run(control_captured);
}

static void be_caller_that_stops(int socket)
{
        (void)guest_init(0);
        target.pid = (int)guest_hear(socket, NULL);
        must(lock(0));
        must(begin_checkpoint());
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void control_after_death(int socket)
{
        (void)socket;
        (void)guest_init(0);
        while (get_state() == CU_PROCESS_STATE_CHECKPOINTING)
                (void)usleep(1000);
        must_equal(get_state(), CU_PROCESS_STATE_FAILED);
}

static void test_a_caller_that_dies_leaves_a_failed_process(void **state)
{
        struct guest caller;
        (void)state;

        start(work);
        caller = guest_start(be_caller_that_stops);
        guest_tell(caller.socket, (uint64_t)target.pid, -1);
        (void)guest_hear(caller.socket, NULL);
        assert_int_equal(guest_kill(&caller), 128 + SIGKILL);
        guest_run(control_after_death);
        assert_int_equal(guest_kill(&target), 128 + SIGKILL);
}

static void control_dead_target(int socket)
{
        (void)socket;
        start(work);
        (void)guest_init(0);
        must(lock(0));
        must(begin_checkpoint());
        must_equal(guest_kill(&target), 128 + SIGKILL);
        copy_out(); /* the memory is still mapped here */
        must_equal(complete(), CUDA_ERROR_OPERATING_SYSTEM);
}

static void test_a_target_that_dies_is_noticed_at_the_completion(void **state)
{
        (void)state;
        guest_run(control_dead_target);
}

static void control_itself(int socket)
{
        (void)socket;
        (void)guest_init(0);
        target.pid = getpid();
        must(lock(0));
        must_equal(begin_checkpoint(), CUDA_ERROR_NOT_SUPPORTED);
        must(unlock());
}

static void test_a_process_cannot_do_it_to_itself(void **state)
{
        (void)state;
        guest_run(control_itself);
}

static void check_entry(int version, CUresult result, int status)
{
        void *function = NULL;
        int found = -1;

        must_equal(
                cuGetProcAddress_v2("cuCheckpointOperationComplete", &function, version, 0, &found),
                result);
        if (result == CUDA_SUCCESS)
                must_equal(found, status);
        must_equal(function != NULL, result == CUDA_SUCCESS && status == 0);
}

static void control_new_driver(int socket)
{
        int version;

        (void)socket;
        must(cuDriverGetVersion(&version));
        must_equal(version, DRIVER_VERSION_STORAGE);
        check_entry(13040, CUDA_SUCCESS, 0);
        check_entry(13030, CUDA_SUCCESS, 2); /* not in this version yet */
}

static void control_old_driver(int socket)
{
        (void)socket;
        start(work);
        (void)guest_init(0);
        check_entry(13040, CUDA_ERROR_INVALID_VALUE, 0);
        check_entry(13000, CUDA_SUCCESS, 2);
        must(lock(0));
        must(begin_checkpoint());
        must_equal(info == NULL, 1);
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
        must_equal(cuCheckpointOperationComplete(NULL), CUDA_ERROR_NOT_SUPPORTED);
        must(begin_restore(NULL, 0));
        must(unlock());
        (void)let_work();
        end();
}

static void test_only_a_driver_of_13_4_has_it(void **state)
{
        (void)state;
        guest_run(control_new_driver);
        (void)unsetenv(DRIVER_VERSION_VARIABLE);
        guest_run(control_old_driver);
        (void)setenv(DRIVER_VERSION_VARIABLE, "13040", 1);
}

static void hold_many(int socket)
{
        CUdeviceptr pointer[150];
        uint32_t word;

        (void)guest_init(0);
        for (uint32_t i = 0; i < 150; i++) {
                must(cuMemAlloc_v2(&pointer[i], 2 * MIB));
                must(cuMemsetD32_v2(pointer[i], i, 2 * MIB / 4));
        }
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        for (uint32_t i = 0; i < 150; i++) {
                must(cuMemcpyDtoH_v2(&word, pointer[i] + 2 * MIB - 4, sizeof(word)));
                must_equal(word, i);
        }
}

static void control_many(int socket)
{
        (void)socket;
        start(hold_many);
        (void)guest_init(0);
        save();
        must_equal(copy_size, 300 * MIB);
        must(begin_restore(NULL, 0));
        copy_in();
        must(complete());
        must(unlock());
        end();
}

static void test_many_allocations_are_one_range(void **state)
{
        (void)state;
        guest_run(control_many);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_copied_out_and_in_is_what_the_process_finds),
                cmocka_unit_test(test_an_open_operation_allows_nothing_but_its_end),
                cmocka_unit_test(test_the_caller_needs_the_contexts_of_the_targets_devices),
                cmocka_unit_test(test_a_completion_that_fails_leaves_a_failed_process),
                cmocka_unit_test(test_a_caller_that_dies_leaves_a_failed_process),
                cmocka_unit_test(test_a_target_that_dies_is_noticed_at_the_completion),
                cmocka_unit_test(test_a_process_cannot_do_it_to_itself),
                cmocka_unit_test(test_only_a_driver_of_13_4_has_it),
                cmocka_unit_test(test_many_allocations_are_one_range),
        };
        int failed;

        test_host_create("2xH200:1G");
        (void)setenv(DRIVER_VERSION_VARIABLE, "13040", 1);
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
