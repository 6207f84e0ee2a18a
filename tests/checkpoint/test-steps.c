/* SPDX-License-Identifier: Apache-2.0 */
/* The steps one by one, and together: from every state, with every answer of the driver. */

#include "tests/checkpoint/fixture.h"

static void test_each_step_leads_to_its_state(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const struct vgpu_checkpoint_process *const *processes;
        size_t n;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        assert_int_equal(vgpu_checkpoint_get_pid(checkpoint), target.pid);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        assert_true(vgpu_checkpoint_is_running(checkpoint));
        assert_int_equal(vgpu_checkpoint_lock(checkpoint, NULL), 0);
        assert_true(vgpu_checkpoint_is_locked(checkpoint));
        assert_false(vgpu_checkpoint_is_running(checkpoint));
        assert_int_equal(vgpu_checkpoint_get_error(checkpoint)->kind, VGPU_CHECKPOINT_ERROR_NONE);
        assert_int_equal(vgpu_checkpoint_checkpoint(checkpoint, NULL), 0);
        assert_true(vgpu_checkpoint_is_checkpointed(checkpoint));
        assert_int_equal(vgpu_checkpoint_restore(checkpoint, NULL), 0);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_LOCKED);
        assert_int_equal(vgpu_checkpoint_unlock(checkpoint, NULL), 0);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        (void)let_work();

        assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
        processes = vgpu_checkpoint_get_processes(checkpoint, &n);
        assert_int_equal(n, 1);
        assert_int_equal(processes[0]->pid, target.pid);
        assert_int_equal(processes[0]->state_before, VGPU_CHECKPOINT_STATE_RUNNING);
        assert_int_equal(processes[0]->state, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_true(processes[0]->lock_seconds > 0 && processes[0]->checkpoint_seconds > 0);
        assert_true(processes[0]->restore_seconds == 0 && processes[0]->unlock_seconds == 0);
        assert_int_equal(vgpu_checkpoint_resume(checkpoint, NULL), 0);
        assert_int_equal(vgpu_checkpoint_toggle(checkpoint, NULL),
                         VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_int_equal(vgpu_checkpoint_toggle(checkpoint, NULL), VGPU_CHECKPOINT_STATE_RUNNING);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        (void)let_work();
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_step_leads_to_its_state),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
