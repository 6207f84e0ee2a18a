/* SPDX-License-Identifier: Apache-2.0 */
/* The helper, the target and the caller die at every step: who is left is as it was, or told of. */

#include <math.h>
#include <pthread.h>

#include "lib/checkpoint-handle.h"
#include "tests/checkpoint/deaths.h"

static const struct point points[] = {
        { "checkpointer.lock", false, VGPU_CHECKPOINT_STATE_RUNNING },
        { "checkpointer.locked", false, VGPU_CHECKPOINT_STATE_RUNNING },
        { "checkpointer.checkpoint", false, VGPU_CHECKPOINT_STATE_RUNNING },
        { "checkpointer.checkpointed", false, VGPU_CHECKPOINT_STATE_RUNNING },
        { "checkpointer.restore", true, VGPU_CHECKPOINT_STATE_CHECKPOINTED },
        { "checkpointer.restored", true, VGPU_CHECKPOINT_STATE_CHECKPOINTED },
        { "checkpointer.unlock", true, VGPU_CHECKPOINT_STATE_CHECKPOINTED },
        { "checkpointer.unlocked", true, VGPU_CHECKPOINT_STATE_RUNNING },
};

#define N_POINTS (sizeof(points) / sizeof(points[0]))

static void helper_dies(const struct point *point)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = fixture_new(target.pid);
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = fixture_new(target.pid);
        const struct vgpu_checkpoint_error *error;

        prepare(other, point);
        set_fault(point, "kill");
        error = assert_failed(checkpoint, act(checkpoint, point),
                              VGPU_CHECKPOINT_ERROR_DRIVER_FAILED);
        (void)unsetenv("OPENVGPU_FAULT");
        assert_non_null(strstr(error->driver_call, "cuCheckpointProcess"));
        assert_int_equal(error->pid, target.pid);
        assert_state(other, point->after);
        assert_int_equal(vgpu_checkpoint_resume(other, NULL), 0);
        (void)let_work();
}

static void test_another_helper_undoes_what_a_dead_one_began(void **state)
{
        (void)state;
        start(work);
        for (size_t i = 0; i < N_POINTS; i++)
                helper_dies(&points[i]);
        end();
}

/* The caller, whose death the helper notices. It is a process of its own. */
static const struct point *point_of_caller;
static pid_t target_of_caller;

static void be_caller(int socket)
{
        struct vgpu_checkpoint *checkpoint;

        (void)socket;
        must_equal(vgpu_checkpoint_new(&checkpoint, target_of_caller), 0);
        (void)act(checkpoint, point_of_caller);
}

static void caller_dies(const struct point *point)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = fixture_new(target.pid);
        struct guest caller;
        char path[128];

        prepare(other, point);
        set_fault(point, "pause");
        point_of_caller = point;
        target_of_caller = target.pid;
        caller = guest_start(be_caller);
        (void)unsetenv("OPENVGPU_FAULT");
        wait_paused(path, sizeof(path), point);
        assert_int_equal(guest_kill(&caller), 128 + SIGKILL);
        assert_int_equal(unlink(path), 0);

        /* What leads away from running is undone, what leads to it is finished. */
        assert_int_equal(vgpu_checkpoint_wait(other, VGPU_CHECKPOINT_STATE_RUNNING, 60), 0);
        (void)let_work();
}

static void test_the_helper_brings_back_what_a_dead_caller_began(void **state)
{
        (void)state;
        start(work);
        for (size_t i = 0; i < N_POINTS; i++)
                caller_dies(&points[i]);
        end();
}

struct caller {
        struct vgpu_checkpoint *checkpoint;
        const struct point *point;
        int r;
};

static void *call(void *data)
{
        struct caller *caller = data;

        caller->r = act(caller->checkpoint, caller->point);
        return NULL;
}

static void target_dies(const struct point *point)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        struct caller caller = { .point = point };
        pthread_t thread;
        char path[128];

        start(work);
        checkpoint = fixture_new(target.pid);
        {
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *other = fixture_new(target.pid);

                prepare(other, point);
        }
        set_fault(point, "pause");
        caller.checkpoint = checkpoint;
        assert_int_equal(pthread_create(&thread, NULL, call, &caller), 0);
        wait_paused(path, sizeof(path), point);
        (void)unsetenv("OPENVGPU_FAULT");
        assert_int_equal(guest_kill(&target), 128 + SIGKILL);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_false(assert_failed(checkpoint, caller.r, VGPU_CHECKPOINT_ERROR_LOST)->is_undone);
}

static void test_a_dead_target_is_told_of(void **state)
{
        (void)state;
        for (size_t i = 0; i < N_POINTS; i++)
                target_dies(&points[i]);
}

/* A handle of one that will end, with the number of the target: as if that had taken it. */
static struct vgpu_checkpoint *new_with_taken_number(struct guest *ret_ending)
{
        struct vgpu_checkpoint *checkpoint;

        *ret_ending = guest_start(work);
        (void)guest_hear(ret_ending->socket, NULL);
        start(work);
        checkpoint = fixture_new(ret_ending->pid);
        checkpoint->pid[0] = target.pid;
        return checkpoint;
}

static void test_whoever_has_the_number_of_one_that_has_ended_is_not_touched(void **state)
{
        struct guest ending;
        CLEANUP(vgpu_checkpoint_freep)
        struct vgpu_checkpoint *checkpoint = new_with_taken_number(&ending);
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = fixture_new(target.pid);
        enum vgpu_checkpoint_state found;
        const struct vgpu_checkpoint_error *error;
        (void)state;

        assert_int_equal(guest_kill(&ending), 128 + SIGKILL);
        error = assert_failed(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL),
                              VGPU_CHECKPOINT_ERROR_NO_PROCESS);
        assert_non_null(strstr(error->message, "has ended"));
        (void)assert_failed(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL),
                            VGPU_CHECKPOINT_ERROR_NO_PROCESS);
        (void)assert_failed(checkpoint, vgpu_checkpoint_get_state(checkpoint, &found),
                            VGPU_CHECKPOINT_ERROR_NO_PROCESS);
        assert_state(other, VGPU_CHECKPOINT_STATE_RUNNING);
        (void)let_work();
        end();
}

static void test_nor_is_it_between_two_calls(void **state)
{
        static const struct point point = { "checkpointer.locked", false,
                                            VGPU_CHECKPOINT_STATE_LOCKED };
        struct guest ending;
        CLEANUP(vgpu_checkpoint_freep)
        struct vgpu_checkpoint *checkpoint = new_with_taken_number(&ending);
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = fixture_new(target.pid);
        struct caller caller = { .checkpoint = checkpoint, .point = &point };
        pthread_t thread;
        char path[128];
        (void)state;

        set_fault(&point, "pause");
        assert_int_equal(pthread_create(&thread, NULL, call, &caller), 0);
        wait_paused(path, sizeof(path), &point);
        (void)unsetenv("OPENVGPU_FAULT");
        assert_int_equal(guest_kill(&ending), 128 + SIGKILL);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        (void)assert_failed(checkpoint, caller.r, VGPU_CHECKPOINT_ERROR_LOST);
        assert_state(other, point.after);
        assert_int_equal(vgpu_checkpoint_resume(other, NULL), 0);
        (void)let_work();
        end();
}

static void *kill_target(void *unused)
{
        assert_int_equal(kill(target.pid, SIGKILL), 0);
        return unused;
}

static void test_waiting_ends_with_the_process_and_with_its_time(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        pthread_t thread;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        assert_int_equal(vgpu_checkpoint_wait(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING, 0), 0);
        (void)assert_failed(checkpoint,
                            vgpu_checkpoint_wait(checkpoint, VGPU_CHECKPOINT_STATE_LOCKED, 0),
                            VGPU_CHECKPOINT_ERROR_TIMED_OUT);
        (void)assert_failed(checkpoint,
                            vgpu_checkpoint_wait(checkpoint, VGPU_CHECKPOINT_STATE_LOCKED, 0.0001),
                            VGPU_CHECKPOINT_ERROR_TIMED_OUT);
        (void)assert_failed(checkpoint,
                            vgpu_checkpoint_wait(checkpoint, VGPU_CHECKPOINT_STATE_LOCKED, NAN),
                            VGPU_CHECKPOINT_ERROR_INVALID);
        assert_int_equal(pthread_create(&thread, NULL, kill_target, NULL), 0);
        (void)assert_failed(checkpoint,
                            vgpu_checkpoint_wait(checkpoint, VGPU_CHECKPOINT_STATE_LOCKED,
                                                 VGPU_CHECKPOINT_FOREVER),
                            VGPU_CHECKPOINT_ERROR_NO_PROCESS);
        assert_int_equal(pthread_join(thread, NULL), 0);
        (void)guest_end(&target);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_another_helper_undoes_what_a_dead_one_began),
                cmocka_unit_test(test_the_helper_brings_back_what_a_dead_caller_began),
                cmocka_unit_test(test_a_dead_target_is_told_of),
                cmocka_unit_test(test_whoever_has_the_number_of_one_that_has_ended_is_not_touched),
                cmocka_unit_test(test_nor_is_it_between_two_calls),
                cmocka_unit_test(test_waiting_ends_with_the_process_and_with_its_time),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
