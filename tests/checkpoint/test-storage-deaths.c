/* SPDX-License-Identifier: Apache-2.0 */
/* Who dies while device memory is being stored or brought back: what is left, and what is told. */

#include <pthread.h>

#include "tests/checkpoint/deaths.h"
#include "tests/checkpoint/storage.h"

#define RUNS  VGPU_CHECKPOINT_STATE_RUNNING
#define WAITS VGPU_CHECKPOINT_STATE_CHECKPOINTED
#define LOST  VGPU_CHECKPOINT_STATE_FAILED

static const struct point points[] = {
        { "checkpointer.checkpoint", false, RUNS }, { "checkpointer.reserve", false, RUNS },
        { "checkpointer.storing", false, LOST },    { "checkpointer.write", false, LOST },
        { "checkpointer.stored", false, LOST },     { "checkpointer.checkpointed", false, RUNS },
        { "checkpointer.restore", true, WAITS },    { "checkpointer.loading", true, LOST },
        { "checkpointer.read", true, LOST },        { "checkpointer.loaded", true, LOST },
        { "checkpointer.restored", true, WAITS },   { "checkpointer.unlock", true, WAITS },
        { "checkpointer.unlocked", true, RUNS },
};

#define N_POINTS (sizeof(points) / sizeof(points[0]))

/* Nobody completes the operation any more; the driver is asked until it has noticed. */
static void assert_lost(struct vgpu_checkpoint *other)
{
        assert_failed(other, vgpu_checkpoint_wait(other, VGPU_CHECKPOINT_STATE_LOCKED, 60),
                      VGPU_CHECKPOINT_ERROR_LOST);
        assert_failed(other, vgpu_checkpoint_resume(other, NULL), VGPU_CHECKPOINT_ERROR_LOST);
        assert_int_equal(guest_kill(&target), 128 + SIGKILL);
}

static void helper_dies(const struct point *point)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        pid_t pid;

        start(work);
        pid = target.pid;
        other = fixture_new(pid);
        checkpoint = fixture_new(pid);
        prepare(other, point);
        set_fault(point, "kill");
        (void)assert_failed(checkpoint, act(checkpoint, point),
                            point->after == LOST ? VGPU_CHECKPOINT_ERROR_LOST
                                                 : VGPU_CHECKPOINT_ERROR_DRIVER_FAILED);
        (void)unsetenv("OPENVGPU_FAULT");
        if (point->after == LOST) {
                assert_false(vgpu_checkpoint_get_error(checkpoint)->is_undone);
                assert_lost(other);
        } else {
                assert_state(other, point->after);
                assert_done(other, vgpu_checkpoint_resume(other, NULL));
                (void)let_work();
                end();
        }
        start(work); /* any action on anybody sweeps what the dead one has left */
        {
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *any = fixture_new(target.pid);

                assert_state(any, VGPU_CHECKPOINT_STATE_RUNNING);
        }
        end();
        assert_nothing_stored(pid);
}

static void test_a_helper_that_dies(void **state)
{
        (void)state;
        for (size_t i = 0; i < N_POINTS; i++)
                helper_dies(&points[i]);
}

static const struct point *point_of_caller;

static void be_caller(int socket)
{
        struct vgpu_checkpoint *checkpoint;

        (void)socket;
        must_equal(vgpu_checkpoint_new(&checkpoint, target.pid), 0);
        (void)act(checkpoint, point_of_caller);
}

/* The helper goes on to the end of the operation, and from there back. */
static void caller_dies(const struct point *point)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = fixture_new(target.pid);
        struct guest caller;
        char path[128];

        prepare(other, point);
        set_fault(point, "pause");
        point_of_caller = point;
        caller = guest_start(be_caller);
        (void)unsetenv("OPENVGPU_FAULT");
        wait_paused(path, sizeof(path), point);
        assert_int_equal(guest_kill(&caller), 128 + SIGKILL);
        assert_int_equal(unlink(path), 0);
        assert_done(other, vgpu_checkpoint_wait(other, VGPU_CHECKPOINT_STATE_RUNNING, 60));
        (void)let_work();
}

static void test_a_caller_that_dies(void **state)
{
        pid_t pid;
        (void)state;

        start(work);
        pid = target.pid;
        for (size_t i = 0; i < N_POINTS; i++)
                caller_dies(&points[i]);
        end();
        assert_int_equal(storage_count(MEMORY_FOLDER, pid, NULL, 0), 0);
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
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *any = NULL;
        struct caller caller = { .point = point };
        pthread_t thread;
        char path[128];
        pid_t pid;

        start(work);
        pid = target.pid;
        checkpoint = fixture_new(pid);
        {
                CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = fixture_new(pid);

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
        start(work);
        any = fixture_new(target.pid);
        assert_state(any, VGPU_CHECKPOINT_STATE_RUNNING);
        end();
        assert_nothing_stored(pid);
}

static void test_a_target_that_dies(void **state)
{
        (void)state;
        for (size_t i = 0; i < N_POINTS; i++)
                target_dies(&points[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_helper_that_dies),
                cmocka_unit_test(test_a_caller_that_dies),
                cmocka_unit_test(test_a_target_that_dies),
        };
        int failed;

        storage_setup();
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        storage_teardown();
        return failed;
}
