/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of a code depends on the call that answered, and on what became of the process. */
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "checkpoint/meaning.h"

#define LOCK       "cuCheckpointProcessLock"
#define CHECKPOINT "cuCheckpointProcessCheckpoint"
#define RESTORE    "cuCheckpointProcessRestore"

#define RUNNING 0

static enum vgpu_checkpoint_error_kind get_kind(const char *call, CUresult code)
{
        return meaning_find(call, code, getpid(), false, RUNNING).kind;
}

static void test_a_code_means_what_its_call_makes_of_it(void **state)
{
        (void)state;

        assert_int_equal(get_kind(LOCK, CUDA_ERROR_NOT_READY), VGPU_CHECKPOINT_ERROR_TIMED_OUT);
        assert_int_equal(get_kind(CHECKPOINT, CUDA_ERROR_NOT_READY),
                         VGPU_CHECKPOINT_ERROR_DRIVER_FAILED);
        assert_int_equal(get_kind(CHECKPOINT, CUDA_ERROR_OUT_OF_MEMORY),
                         VGPU_CHECKPOINT_ERROR_DRIVER_FAILED);
        assert_int_equal(get_kind(RESTORE, CUDA_ERROR_OUT_OF_MEMORY), VGPU_CHECKPOINT_ERROR_LOST);
        assert_int_equal(get_kind(CHECKPOINT, CUDA_ERROR_NOT_SUPPORTED),
                         VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED);
        assert_int_equal(get_kind(RESTORE, CUDA_ERROR_NOT_SUPPORTED), VGPU_CHECKPOINT_ERROR_LOST);
}

static void test_some_codes_mean_the_same_of_every_call(void **state)
{
        static const char *const calls[] = { LOCK, CHECKPOINT, RESTORE, "cuAnything" };
        (void)state;

        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
                assert_int_equal(get_kind(calls[i], CUDA_ERROR_NOT_INITIALIZED),
                                 VGPU_CHECKPOINT_ERROR_NO_CUDA);
                assert_int_equal(get_kind(calls[i], CUDA_ERROR_ILLEGAL_STATE),
                                 VGPU_CHECKPOINT_ERROR_WRONG_STATE);
        }
        assert_int_equal(get_kind("cuAnything", CUDA_ERROR_NOT_SUPPORTED),
                         VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED);
}

static void test_a_process_that_died_of_it_is_lost(void **state)
{
        struct meaning meaning;
        (void)state;

        meaning = meaning_find(CHECKPOINT, CUDA_ERROR_OPERATING_SYSTEM, 1, true, RUNNING);
        assert_int_equal(meaning.kind, VGPU_CHECKPOINT_ERROR_LOST);
        assert_non_null(strstr(meaning.hint, "vgpu suspend"));
        meaning = meaning_find(CHECKPOINT, CUDA_ERROR_OPERATING_SYSTEM, 1, true, -1);
        assert_int_equal(meaning.kind, VGPU_CHECKPOINT_ERROR_NO_PROCESS);
}

static void test_what_nobody_knows_is_the_drivers_failure(void **state)
{
        struct meaning meaning;
        (void)state;

        /* Our own process may be controlled by us, so that is not the cause. */
        meaning = meaning_find(LOCK, CUDA_ERROR_UNKNOWN, getpid(), false, -1);
        assert_int_equal(meaning.kind, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED);
        assert_string_equal(meaning.hint, "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_code_means_what_its_call_makes_of_it),
                cmocka_unit_test(test_some_codes_mean_the_same_of_every_call),
                cmocka_unit_test(test_a_process_that_died_of_it_is_lost),
                cmocka_unit_test(test_what_nobody_knows_is_the_drivers_failure),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
