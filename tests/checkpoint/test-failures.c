/* SPDX-License-Identifier: Apache-2.0 */
/* Every code that the driver may answer, at every step: what it is called, and what is undone. */

#include "tests/checkpoint/fixture.h"

enum action { SUSPEND, RESUME, LOCK, STATE };

static int act(struct vgpu_checkpoint *checkpoint, enum action action)
{
        enum vgpu_checkpoint_state state;

        switch (action) {
        case SUSPEND:
                return vgpu_checkpoint_suspend(checkpoint, NULL);
        case RESUME:
                return vgpu_checkpoint_resume(checkpoint, NULL);
        case LOCK:
                return vgpu_checkpoint_lock(checkpoint, NULL);
        default:
                return vgpu_checkpoint_get_state(checkpoint, &state);
        }
}

#define STATE_(name)      "cuCheckpointProcessGetState" name
#define LOCK_(name)       "cuCheckpointProcessLock" name
#define CHECKPOINT_(name) "cuCheckpointProcessCheckpoint" name
#define RESTORE_(name)    "cuCheckpointProcessRestore" name
#define UNLOCK_(name)     "cuCheckpointProcessUnlock" name

#define RUNNING      VGPU_CHECKPOINT_STATE_RUNNING
#define LOCKED       VGPU_CHECKPOINT_STATE_LOCKED
#define CHECKPOINTED VGPU_CHECKPOINT_STATE_CHECKPOINTED

static const struct failure {
        const char *fail; /* OPENVGPU_SIM_FAIL of the helper */
        enum action action;
        enum vgpu_checkpoint_error_kind kind;
        int driver_code;
        enum vgpu_checkpoint_state after;
        bool is_undone;
} failures[] = {
        { STATE_("@1=3"), STATE, VGPU_CHECKPOINT_ERROR_NO_CUDA, 3, RUNNING, true },
        { STATE_("@1=304"), STATE, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 304, RUNNING, true },
        { STATE_("@1=801"), STATE, VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED, 801, RUNNING, true },
        { LOCK_("@1=600"), LOCK, VGPU_CHECKPOINT_ERROR_TIMED_OUT, 600, RUNNING, true },
        { LOCK_("@1=600"), SUSPEND, VGPU_CHECKPOINT_ERROR_TIMED_OUT, 600, RUNNING, true },
        { LOCK_("@1=401"), SUSPEND, VGPU_CHECKPOINT_ERROR_WRONG_STATE, 401, RUNNING, true },
        { LOCK_("@1=304"), SUSPEND, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 304, RUNNING, true },
        { LOCK_("@1=3"), SUSPEND, VGPU_CHECKPOINT_ERROR_NO_CUDA, 3, RUNNING, true },
        { LOCK_("@1=900"), SUSPEND, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 900, RUNNING, true },
        { CHECKPOINT_("@1=801"), SUSPEND, VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED, 801, RUNNING, true },
        { CHECKPOINT_("@1=2"), SUSPEND, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 2, RUNNING, true },
        { CHECKPOINT_("@1=304"), SUSPEND, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 304, RUNNING, true },
        { CHECKPOINT_("@1=401"), SUSPEND, VGPU_CHECKPOINT_ERROR_WRONG_STATE, 401, RUNNING, true },
        { CHECKPOINT_("@1=201"), SUSPEND, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 201, RUNNING, true },
        { CHECKPOINT_("@1=304,") UNLOCK_("@1=304"), SUSPEND, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED,
          304, RUNNING, true }, /* the second unlock succeeds */
        { CHECKPOINT_("@1=304,") UNLOCK_("@1=304,") UNLOCK_("@2=304"), SUSPEND,
          VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 304, LOCKED, false },
        { RESTORE_("@1=1"), RESUME, VGPU_CHECKPOINT_ERROR_INVALID, 1, CHECKPOINTED, true },
        { RESTORE_("@1=304"), RESUME, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 304, CHECKPOINTED,
          true },
        { RESTORE_("@1=800"), RESUME, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 800, CHECKPOINTED,
          true },
        { RESTORE_("@1=2"), RESUME, VGPU_CHECKPOINT_ERROR_LOST, 2, CHECKPOINTED, false },
        { RESTORE_("@1=801"), RESUME, VGPU_CHECKPOINT_ERROR_LOST, 801, CHECKPOINTED, false },
        { UNLOCK_("@1=304"), RESUME, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, 304, CHECKPOINTED, true },
        { UNLOCK_("@1=401"), RESUME, VGPU_CHECKPOINT_ERROR_WRONG_STATE, 401, CHECKPOINTED, true },
};

static void check(const struct failure *failure)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = fixture_new(target.pid);
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = fixture_new(target.pid);
        const struct vgpu_checkpoint_error *error;

        print_message("%s\n", failure->fail);
        if (failure->action == RESUME)
                assert_int_equal(vgpu_checkpoint_suspend(other, NULL), 0);
        (void)setenv("OPENVGPU_SIM_FAIL", failure->fail, 1);
        error = assert_failed(checkpoint, act(checkpoint, failure->action), failure->kind);
        (void)unsetenv("OPENVGPU_SIM_FAIL");
        assert_int_equal(error->driver_code, failure->driver_code);
        assert_true(*error->driver_name && *error->driver_call && *error->driver_text);
        assert_int_equal(error->pid, target.pid);
        assert_int_equal(error->is_undone, failure->is_undone);
        if (failure->action != STATE)
                assert_int_equal(error->state_after, failure->after);
        assert_state(other, failure->after);

        /* In truth nothing is spoilt here, so it can be brought back and goes on. */
        assert_int_equal(vgpu_checkpoint_resume(other, NULL), 0);
        (void)let_work();
}

static void test_every_code_has_its_name_and_is_undone(void **state)
{
        (void)state;
        start(work);
        for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
                check(&failures[i]);
        end();
}

static void hold_managed(int socket)
{
        CUdeviceptr pointer;

        (void)guest_init(0);
        must(cuMemAllocManaged(&pointer, 100, 1));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void test_managed_memory_leaves_the_process_running(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        (void)state;

        start(hold_managed);
        checkpoint = fixture_new(target.pid);
        (void)assert_failed(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL),
                            VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        end();
}

static void test_no_cuda_is_told_from_no_process_and_no_driver(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *none = fixture_new(getpid());
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *gone = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const char *driver = getenv("OPENVGPU_DRIVER");
        (void)state;

        (void)assert_failed(none, vgpu_checkpoint_suspend(none, NULL),
                            VGPU_CHECKPOINT_ERROR_NO_CUDA);
        assert_false(vgpu_checkpoint_is_running(none));
        assert_int_equal(vgpu_checkpoint_get_error(none)->kind, VGPU_CHECKPOINT_ERROR_NO_CUDA);
        start(work);
        gone = fixture_new(target.pid);
        end();
        (void)assert_failed(gone, vgpu_checkpoint_suspend(gone, NULL),
                            VGPU_CHECKPOINT_ERROR_NO_PROCESS);
        assert_false(vgpu_checkpoint_is_checkpointed(gone));
        assert_int_equal(vgpu_checkpoint_get_error(gone)->kind, VGPU_CHECKPOINT_ERROR_NO_PROCESS);
        assert_int_equal(vgpu_checkpoint_new(&checkpoint, 0), -EINVAL);
        assert_int_equal(vgpu_checkpoint_new(&checkpoint, target.pid), -ESRCH);

        (void)setenv("OPENVGPU_DRIVER", "/nonexistent/libcuda.so.1", 1);
        checkpoint = fixture_new(getpid());
        (void)assert_failed(checkpoint, vgpu_checkpoint_lock(checkpoint, NULL),
                            VGPU_CHECKPOINT_ERROR_NO_DRIVER);
        (void)setenv("OPENVGPU_DRIVER", driver, 1);
}

static void let_nvml_say(char path[128])
{
        char pid[16];

        (void)snprintf(path, 128, "%s/nvml", test_directory);
        (void)snprintf(pid, sizeof(pid), "%d", target.pid);
        (void)setenv("FAKE_NVML", path, 1);
        (void)setenv("FAKE_NVML_PID", pid, 1);
        (void)setenv("OPENVGPU_RUN", test_directory, 1);
}

static void end_with_nvml(void)
{
        end();
        (void)unsetenv("FAKE_NVML");
        (void)unsetenv("FAKE_NVML_PID");
        (void)unsetenv("OPENVGPU_RUN");
}

static void test_a_checkpoint_on_a_full_device_is_not_tried(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const struct vgpu_checkpoint_error *error;
        char path[128];
        (void)state;

        start(work);
        let_nvml_say(path);
        checkpoint = fixture_new(target.pid);
        fixture_write(path, "3145728 67108864"); /* 3 MiB left */
        error = assert_failed(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL),
                              VGPU_CHECKPOINT_ERROR_NO_ROOM);
        assert_non_null(strstr(error->message, "has 3 MiB left and the checkpoint needs 8 MiB"));
        assert_true(error->is_undone);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        fixture_write(path, "8388608 67108864"); /* just enough */
        assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
        fixture_write(path, "67108864 0");
        assert_int_equal(vgpu_checkpoint_resume(checkpoint, NULL), 0);
        (void)let_work();
        end_with_nvml();
}

static void test_a_restore_that_does_not_fit_is_not_tried(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const struct vgpu_checkpoint_error *error;
        char path[128];
        (void)state;

        start(work);
        let_nvml_say(path);
        checkpoint = fixture_new(target.pid);
        fixture_write(path, "5000000000 3221225472"); /* 3 GiB used */
        assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
        fixture_write(path, "1073741824 0"); /* 1 GiB left */
        error = assert_failed(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL),
                              VGPU_CHECKPOINT_ERROR_NO_ROOM);
        assert_non_null(strstr(error->message, "has 1 GiB left and the restore needs 3 GiB"));
        assert_non_null(strstr(error->hint, "2 GiB"));
        assert_true(error->is_undone);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        (void)assert_failed(checkpoint, vgpu_checkpoint_restore(checkpoint, NULL),
                            VGPU_CHECKPOINT_ERROR_NO_ROOM);
        fixture_write(path, "3221225472 0"); /* just enough */
        assert_int_equal(vgpu_checkpoint_resume(checkpoint, NULL), 0);
        (void)let_work();
        end_with_nvml();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_code_has_its_name_and_is_undone),
                cmocka_unit_test(test_managed_memory_leaves_the_process_running),
                cmocka_unit_test(test_no_cuda_is_told_from_no_process_and_no_driver),
                cmocka_unit_test(test_a_checkpoint_on_a_full_device_is_not_tried),
                cmocka_unit_test(test_a_restore_that_does_not_fit_is_not_tried),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
