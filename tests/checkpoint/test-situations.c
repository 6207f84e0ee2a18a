/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Situations in which a checkpoint is asked for, made for real: the wrong state, work that does not
 * end, a process without CUDA, one that is somebody else's, one that nobody may look into, a thread.
 * test-failures.c has the codes that a driver answers in situations that cannot be made here.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sys/stat.h>

#include "tests/checkpoint/fixture.h"

#define NOBODY 65534

typedef int action(struct vgpu_checkpoint *checkpoint,
                   const struct vgpu_checkpoint_options *options);

static action *const actions[] = {
        vgpu_checkpoint_look,    vgpu_checkpoint_lock,   vgpu_checkpoint_checkpoint,
        vgpu_checkpoint_restore, vgpu_checkpoint_unlock, vgpu_checkpoint_suspend,
        vgpu_checkpoint_resume,  vgpu_checkpoint_toggle,
};

#define N_ACTIONS (sizeof(actions) / sizeof(actions[0]))

/* In the order of the states: running, locked, checkpointed. */
static action *const wrong[3][3] = {
        { vgpu_checkpoint_checkpoint, vgpu_checkpoint_restore, vgpu_checkpoint_unlock },
        { vgpu_checkpoint_lock, vgpu_checkpoint_restore, NULL },
        { vgpu_checkpoint_lock, vgpu_checkpoint_checkpoint, vgpu_checkpoint_unlock },
};
static action *const onward[3] = { vgpu_checkpoint_lock, vgpu_checkpoint_checkpoint,
                                   vgpu_checkpoint_resume };

static void test_the_wrong_state_changes_nothing(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const struct vgpu_checkpoint_error *error;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        for (int at = 0; at < 3; at++) {
                for (int i = 0; i < 3 && wrong[at][i]; i++) {
                        error = assert_failed(checkpoint, wrong[at][i](checkpoint, NULL),
                                              VGPU_CHECKPOINT_ERROR_WRONG_STATE);
                        assert_int_equal(error->driver_code, CUDA_ERROR_ILLEGAL_STATE);
                        assert_true(error->is_undone);
                        assert_state(checkpoint, (enum vgpu_checkpoint_state)at);
                }
                assert_int_equal(onward[at](checkpoint, NULL), 0);
        }
        (void)let_work();
        end();
}

static void wait_for_word(void *data)
{
        (void)guest_hear(*(int *)data, NULL);
}

/* Its work waits in a host function until it is told. */
static void be_busy(int socket)
{
        (void)guest_init(0);
        must(cuLaunchHostFunc(NULL, wait_for_word, &socket));
        guest_tell(socket, 0, -1);
        must(cuStreamSynchronize(NULL));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void test_a_lock_that_times_out_leaves_the_process_running(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        static action *const locks[] = { vgpu_checkpoint_lock, vgpu_checkpoint_suspend,
                                         vgpu_checkpoint_toggle };
        const struct vgpu_checkpoint_error *error;
        (void)state;

        start(be_busy);
        checkpoint = fixture_new(target.pid);
        options.timeout_seconds = 0.05;
        for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++) {
                error = assert_failed(checkpoint, locks[i](checkpoint, &options),
                                      VGPU_CHECKPOINT_ERROR_TIMED_OUT);
                assert_int_equal(error->driver_code, CUDA_ERROR_NOT_READY);
                assert_true(error->is_undone && *error->hint);
                assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        }
        assert_false(vgpu_checkpoint_try_lock(checkpoint, &options));
        assert_int_equal(vgpu_checkpoint_get_error(checkpoint)->kind,
                         VGPU_CHECKPOINT_ERROR_TIMED_OUT);
        assert_true(vgpu_checkpoint_get_error(checkpoint)->is_undone);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        options.timeout_seconds = 0; /* for the driver that would be for ever */
        assert_false(vgpu_checkpoint_try_lock(checkpoint, &options));
        assert_int_equal(vgpu_checkpoint_get_error(checkpoint)->kind,
                         VGPU_CHECKPOINT_ERROR_TIMED_OUT);
        assert_true(vgpu_checkpoint_get_error(checkpoint)->is_undone);
        options.timeout_seconds = NAN;
        (void)assert_failed(checkpoint, vgpu_checkpoint_lock(checkpoint, &options),
                            VGPU_CHECKPOINT_ERROR_INVALID);
        options.timeout_seconds = 0.05;
        guest_tell(target.socket, 0, -1); /* the work ends */
        (void)guest_hear(target.socket, NULL);
        assert_true(vgpu_checkpoint_try_lock(checkpoint, &options));
        assert_int_equal(vgpu_checkpoint_unlock(checkpoint, NULL), 0);
        end();
}

static void be_without_cuda(int socket)
{
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

/* No action gets to the process: each says why, in the same way. */
static void all_fail(pid_t pid, enum vgpu_checkpoint_error_kind kind, int driver_code,
                     const char *hint)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = fixture_new(pid);
        const struct vgpu_checkpoint_error *error;
        char number[16];
        pid_t thread;

        (void)snprintf(number, sizeof(number), "%d", (int)pid);
        for (size_t i = 0; i < N_ACTIONS; i++) {
                error = assert_failed(checkpoint, actions[i](checkpoint, NULL), kind);
                assert_int_equal(error->driver_code, driver_code);
                assert_int_equal(error->pid, pid);
                assert_non_null(strstr(error->message, number));
                assert_non_null(strstr(error->hint, hint));
                assert_true(error->is_undone);
        }
        (void)assert_failed(checkpoint, vgpu_checkpoint_get_restore_thread(checkpoint, &thread),
                            kind);
}

static void test_a_process_without_cuda_is_told_of_by_every_action(void **state)
{
        (void)state;
        start(be_without_cuda);
        all_fail(target.pid, VGPU_CHECKPOINT_ERROR_NO_CUDA, CUDA_ERROR_NOT_INITIALIZED, "cuInit()");
        end();
}

static void test_what_is_no_process_is_refused(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        (void)state;

        assert_int_equal(vgpu_checkpoint_new(&checkpoint, -1), -EINVAL);
        assert_int_equal(vgpu_checkpoint_new(&checkpoint, 0), -EINVAL);
        assert_int_equal(vgpu_checkpoint_new(&checkpoint, INT_MAX), -ESRCH);
        assert_null(checkpoint);
}

static void test_the_number_of_a_thread_stands_for_its_process(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *by_thread = NULL;
        pid_t thread = 0;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        assert_int_equal(vgpu_checkpoint_get_restore_thread(checkpoint, &thread), 0);
        assert_int_not_equal(thread, target.pid);
        by_thread = fixture_new(thread);
        assert_int_equal(vgpu_checkpoint_get_pid(by_thread), target.pid);
        assert_int_equal(vgpu_checkpoint_suspend(by_thread, NULL), 0);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_int_equal(vgpu_checkpoint_resume(by_thread, NULL), 0);
        assert_int_equal(vgpu_checkpoint_add(checkpoint, thread), 0); /* is part of it already */
        assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
        assert_int_equal(vgpu_checkpoint_resume(checkpoint, NULL), 0);
        (void)let_work();
        end();
}

static void become_nobody(bool may_be_looked_into)
{
        must_equal(setgid(NOBODY), 0);
        must_equal(setuid(NOBODY), 0);
        must_equal(prctl(PR_SET_DUMPABLE, may_be_looked_into), 0);
}

/* Where the helper is, that user may run it (tests/system/reach.py). */
static void need_nobody(void)
{
        if (geteuid() != 0) {
                print_message("SKIPPED: needs root to be somebody else\n");
                skip();
        }
}

static void work_as_nobody(int socket)
{
        become_nobody(true);
        work(socket);
}

static void hide_as_nobody(int socket)
{
        become_nobody(false);
        work(socket);
}

#define FORBIDDEN VGPU_CHECKPOINT_ERROR_PERMISSION, CUDA_ERROR_OPERATING_SYSTEM, "CAP_SYS_PTRACE"

/* As another user than the target's: told of, and nothing happens to it. */
static void be_forbidden(int socket)
{
        become_nobody(true);
        guest_tell(socket, 0, -1);
        target.pid = (pid_t)guest_hear(socket, NULL);
        all_fail(target.pid, FORBIDDEN);
}

static void control_own(int socket)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;

        become_nobody(true);
        guest_tell(socket, 0, -1);
        target.pid = (pid_t)guest_hear(socket, NULL);
        checkpoint = fixture_new(target.pid);
        assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
        assert_int_equal(vgpu_checkpoint_resume(checkpoint, NULL), 0);
}

static void control(void (*run)(int socket))
{
        struct guest controller = guest_start(run);

        (void)guest_hear(controller.socket, NULL);
        guest_tell(controller.socket, (uint64_t)target.pid, -1);
        assert_int_equal(guest_end(&controller), 0);
}

static void test_a_process_of_another_user_is_told_of_and_unharmed(void **state)
{
        (void)state;
        need_nobody();
        start(work);
        control(be_forbidden);
        (void)let_work();
        end();
        start(be_without_cuda); /* not even that is told of it */
        control(be_forbidden);
        end();
}

static void test_without_privileges_own_processes_only_if_they_may_be_traced(void **state)
{
        (void)state;
        need_nobody();
        start(work_as_nobody);
        control(control_own);
        (void)let_work();
        end();
        start(hide_as_nobody);
        control(be_forbidden);
        (void)let_work();
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_wrong_state_changes_nothing),
                cmocka_unit_test(test_a_lock_that_times_out_leaves_the_process_running),
                cmocka_unit_test(test_a_process_without_cuda_is_told_of_by_every_action),
                cmocka_unit_test(test_what_is_no_process_is_refused),
                cmocka_unit_test(test_the_number_of_a_thread_stands_for_its_process),
                cmocka_unit_test(test_a_process_of_another_user_is_told_of_and_unharmed),
                cmocka_unit_test(test_without_privileges_own_processes_only_if_they_may_be_traced),
        };
        int failed;

        test_host_create("2xH200:1G");
        (void)chmod(test_directory, 0777); /* of other users, too */
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
