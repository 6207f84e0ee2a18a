/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps from wrong states, by drivers with and without custom storage: refused before anything is touched,
 * so that a restore afterwards brings back what was there.
 */

#include <pthread.h>

#include "tests/checkpoint/deaths.h"
#include "tests/checkpoint/storage.h"

#define STATES 3

typedef int step(struct vgpu_checkpoint *checkpoint, const struct vgpu_checkpoint_options *options);

/* Each leads from one state only. */
static const struct {
        const char *name;
        step *run;
        enum vgpu_checkpoint_state from;
} steps[] = {
        { "lock", vgpu_checkpoint_lock, VGPU_CHECKPOINT_STATE_RUNNING },
        { "checkpoint", vgpu_checkpoint_checkpoint, VGPU_CHECKPOINT_STATE_LOCKED },
        { "restore", vgpu_checkpoint_restore, VGPU_CHECKPOINT_STATE_CHECKPOINTED },
        { "unlock", vgpu_checkpoint_unlock, VGPU_CHECKPOINT_STATE_LOCKED },
};

#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

/* From running. */
static void bring_to(struct vgpu_checkpoint *checkpoint, int state)
{
        if (state >= VGPU_CHECKPOINT_STATE_LOCKED)
                assert_done(checkpoint, vgpu_checkpoint_lock(checkpoint, NULL));
        if (state == VGPU_CHECKPOINT_STATE_CHECKPOINTED)
                assert_done(checkpoint, vgpu_checkpoint_checkpoint(checkpoint, NULL));
}

static void assert_refused(struct vgpu_checkpoint *checkpoint, size_t i)
{
        assert_true(assert_failed(checkpoint, steps[i].run(checkpoint, NULL),
                                  VGPU_CHECKPOINT_ERROR_WRONG_STATE)
                            ->is_undone);
}

static void refuse_one_by_one(const char *version)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;

        (void)setenv(DRIVER_VERSION_VARIABLE, version, 1);
        start(work);
        checkpoint = fixture_new(target.pid);
        for (int at = 0; at < STATES; at++)
                for (size_t i = 0; i < N_STEPS; i++) {
                        if (steps[i].from == (enum vgpu_checkpoint_state)at)
                                continue;
                        print_message("%s: %s in state %d\n", version, steps[i].name, at);
                        bring_to(checkpoint, at);
                        assert_refused(checkpoint, i);
                        assert_state(checkpoint, (enum vgpu_checkpoint_state)at);
                        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
                        assert_nothing_stored(target.pid);
                        (void)let_work();
                }
        end();
        (void)setenv(DRIVER_VERSION_VARIABLE, "13040", 1);
}

static void test_a_step_from_a_wrong_state_changes_nothing(void **state)
{
        (void)state;
        refuse_one_by_one("13000");
        refuse_one_by_one("13040");
}

static struct guest second;

static void let_second_work(void)
{
        guest_tell(second.socket, 1, -1);
        (void)guest_hear(second.socket, NULL);
}

/* One of the two may take the step; with the other one it is refused to both. */
static void refuse_to_both(struct vgpu_checkpoint *one, struct vgpu_checkpoint *other, size_t i,
                           int at)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *both = fixture_new(target.pid);
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *backwards = fixture_new(second.pid);

        assert_int_equal(vgpu_checkpoint_add(both, second.pid), 0);
        assert_int_equal(vgpu_checkpoint_add(backwards, target.pid), 0);
        bring_to(one, (int)steps[i].from);
        bring_to(other, at);
        assert_refused(both, i);
        assert_refused(backwards, i);
        assert_state(one, steps[i].from);
        assert_state(other, (enum vgpu_checkpoint_state)at);
        assert_done(both, vgpu_checkpoint_resume(both, NULL));
        assert_nothing_stored(target.pid);
        assert_nothing_stored(second.pid);
        (void)let_work();
        let_second_work();
}

static void test_one_in_a_wrong_state_stops_all_of_its_group(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *one = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = NULL;
        (void)state;

        start(work);
        second = guest_start(work);
        (void)guest_hear(second.socket, NULL);
        one = fixture_new(target.pid);
        other = fixture_new(second.pid);
        for (size_t i = 0; i < N_STEPS; i++)
                for (int at = 0; at < STATES; at++)
                        if (steps[i].from != (enum vgpu_checkpoint_state)at) {
                                print_message("%s, one in state %d\n", steps[i].name, at);
                                refuse_to_both(one, other, i, at);
                        }
        guest_tell(second.socket, 0, -1);
        assert_int_equal(guest_end(&second), 0);
        end();
}

static void *checkpoint_it(void *data)
{
        static int r;

        r = vgpu_checkpoint_checkpoint(data, NULL);
        return &r;
}

/* What another one has stored since we looked is the process' only copy. */
static void test_a_checkpoint_by_somebody_else_in_between_is_kept(void **state)
{
        const struct point looked = { .name = "checkpointer.looked" };
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *late = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = NULL;
        pthread_t thread;
        char path[128];
        void *r;
        (void)state;

        start(work);
        late = fixture_new(target.pid);
        other = fixture_new(target.pid);
        assert_done(other, vgpu_checkpoint_lock(other, NULL));
        set_fault(&looked, "pause"); /* at the helper's start */
        assert_int_equal(pthread_create(&thread, NULL, checkpoint_it, late), 0);
        wait_paused(path, sizeof(path), &looked);
        (void)unsetenv("OPENVGPU_FAULT");
        assert_done(other, vgpu_checkpoint_checkpoint(other, NULL));
        assert_int_equal(unlink(path), 0);
        assert_int_equal(pthread_join(thread, &r), 0);
        (void)assert_failed(late, *(int *)r, VGPU_CHECKPOINT_ERROR_WRONG_STATE);
        assert_state(other, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_done(other, vgpu_checkpoint_resume(other, NULL));
        (void)let_work();
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_step_from_a_wrong_state_changes_nothing),
                cmocka_unit_test(test_one_in_a_wrong_state_stops_all_of_its_group),
                cmocka_unit_test(test_a_checkpoint_by_somebody_else_in_between_is_kept),
        };
        int failed;

        storage_setup();
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        storage_teardown();
        return failed;
}
