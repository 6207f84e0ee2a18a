/* SPDX-License-Identifier: Apache-2.0 */
/* Steps from wrong states are refused before anything is touched: a restore brings back what was there. */

#include "tests/checkpoint/deaths.h"

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

static void assert_done(struct vgpu_checkpoint *checkpoint, int r)
{
        if (r < 0)
                fail_msg("%s (%s)", vgpu_checkpoint_get_error(checkpoint)->message,
                         vgpu_checkpoint_get_error(checkpoint)->hint);
}

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

static void test_a_step_from_a_wrong_state_changes_nothing(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        for (int at = 0; at < STATES; at++)
                for (size_t i = 0; i < N_STEPS; i++) {
                        if (steps[i].from == (enum vgpu_checkpoint_state)at)
                                continue;
                        print_message("%s in state %d\n", steps[i].name, at);
                        bring_to(checkpoint, at);
                        assert_refused(checkpoint, i);
                        assert_state(checkpoint, (enum vgpu_checkpoint_state)at);
                        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
                        (void)let_work();
                }
        end();
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_step_from_a_wrong_state_changes_nothing),
                cmocka_unit_test(test_one_in_a_wrong_state_stops_all_of_its_group),
        };
        int failed;

        test_host_create("2xH200:1G");
        (void)setenv("OPENVGPU_RUN", test_directory, 1);
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
