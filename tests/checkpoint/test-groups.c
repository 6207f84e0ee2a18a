/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes, all or none; trees of them; and moves to other devices. */

#include "tests/checkpoint/fixture.h"

#define CHILDREN 2

static struct guest family; /* a process without CUDA, above two that have it */

/* Tells the numbers of its children; ends when it hears something, with what they ended with. */
static void be_parent(int socket)
{
        struct guest children[CHILDREN];

        for (int i = 0; i < CHILDREN; i++) {
                children[i] = guest_start(work);
                (void)guest_hear(children[i].socket, NULL);
                guest_tell(socket, (uint64_t)children[i].pid, -1);
        }
        while (guest_hear(socket, NULL)) {
                for (int i = 0; i < CHILDREN; i++) {
                        guest_tell(children[i].socket, 1, -1);
                        (void)guest_hear(children[i].socket, NULL);
                }
                guest_tell(socket, 0, -1);
        }
        for (int i = 0; i < CHILDREN; i++) {
                guest_tell(children[i].socket, 0, -1);
                must_equal(guest_end(&children[i]), 0);
        }
}

static pid_t child_pid[CHILDREN];

static void start_family(void)
{
        family = guest_start(be_parent);
        for (int i = 0; i < CHILDREN; i++)
                child_pid[i] = (pid_t)guest_hear(family.socket, NULL);
}

static void let_family_work(void)
{
        guest_tell(family.socket, 1, -1);
        (void)guest_hear(family.socket, NULL);
}

static void end_family(void)
{
        guest_tell(family.socket, 0, -1);
        assert_int_equal(guest_end(&family), 0);
}

static void assert_children(enum vgpu_checkpoint_state expected)
{
        for (int i = 0; i < CHILDREN; i++) {
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *child = fixture_new(child_pid[i]);

                assert_state(child, expected);
        }
}

static void test_a_tree_is_suspended_and_resumed_as_one(void **state)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *tree = NULL;
        const struct vgpu_checkpoint_process *const *processes;
        size_t n;
        (void)state;

        options.with_children = true;
        start_family();
        tree = fixture_new(family.pid);
        (void)assert_failed(tree, vgpu_checkpoint_suspend(tree, NULL),
                            VGPU_CHECKPOINT_ERROR_NO_CUDA);
        assert_int_equal(vgpu_checkpoint_suspend(tree, &options), 0);
        processes = vgpu_checkpoint_get_processes(tree, &n);
        assert_int_equal(n, CHILDREN);
        for (int i = 0; i < CHILDREN; i++)
                assert_int_equal(processes[i]->pid, child_pid[i]);
        assert_children(VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_int_equal(vgpu_checkpoint_resume(tree, &options), 0);
        assert_children(VGPU_CHECKPOINT_STATE_RUNNING);
        let_family_work();
        end_family();
}

static const struct {
        const char *fail;
        bool is_resume;
} partial[] = {
        { "cuCheckpointProcessLock@2=600", false },
        { "cuCheckpointProcessCheckpoint@2=304", false },
        { "cuCheckpointProcessRestore@2=304", true },
};

static void test_all_of_a_tree_or_none(void **state)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *whole = NULL;
        (void)state;

        options.with_children = true;
        start_family();
        whole = fixture_new(family.pid);
        for (size_t i = 0; i < sizeof(partial) / sizeof(partial[0]); i++) {
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *tree = fixture_new(family.pid);
                int r;

                if (partial[i].is_resume)
                        assert_int_equal(vgpu_checkpoint_suspend(whole, &options), 0);
                (void)setenv("OPENVGPU_SIM_FAIL", partial[i].fail, 1);
                r = partial[i].is_resume ? vgpu_checkpoint_resume(tree, &options)
                                         : vgpu_checkpoint_suspend(tree, &options);
                (void)unsetenv("OPENVGPU_SIM_FAIL");
                assert_true(r < 0 && vgpu_checkpoint_get_error(tree)->is_undone);
                assert_children(partial[i].is_resume ? VGPU_CHECKPOINT_STATE_CHECKPOINTED
                                                     : VGPU_CHECKPOINT_STATE_RUNNING);
                assert_int_equal(vgpu_checkpoint_resume(whole, &options), 0);
                let_family_work();
        }
        end_family();
}

static void test_processes_that_were_added_are_handled_together(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *both = NULL;
        (void)state;

        start_family();
        both = fixture_new(child_pid[0]);
        assert_int_equal(vgpu_checkpoint_add(both, child_pid[1]), 0);
        assert_int_equal(vgpu_checkpoint_add(both, child_pid[1]), 0); /* is in it */
        assert_int_equal(vgpu_checkpoint_suspend(both, NULL), 0);
        assert_children(VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_int_equal(vgpu_checkpoint_resume(both, NULL), 0);
        assert_children(VGPU_CHECKPOINT_STATE_RUNNING);
        end_family();
}

static int restore_onto(struct vgpu_checkpoint *checkpoint,
                        const struct vgpu_checkpoint_pair *pairs, size_t n)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;

        options.pairs = pairs;
        options.n_pairs = n;
        return vgpu_checkpoint_resume(checkpoint, &options);
}

/* Devices 0 and 1 are of one kind, 2 is of another. */
static void test_pairs_are_checked_before_the_driver_sees_them(void **state)
{
        static const struct {
                struct vgpu_checkpoint_pair pairs[2];
                size_t n;
                const char *message;
        } wrong[] = {
                { { { "0", "7" } }, 1, "there is no device 7" },
                { { { "GPU-nope", "1" } }, 1, "no device is called 'GPU-nope'" },
                { { { "0", "2" } }, 1, "of different kinds" },
                { { { "0", "1" }, { "0", "0" } }, 2, "is moved twice" },
                { { { "0", "1" }, { "1", "1" } }, 2, "is the target twice" },
                { { { "GPU-", "1" } }, 1, "the beginning of several UUIDs" },
                { { { "", "1" } }, 1, "no device is called ''" },
        };
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const struct vgpu_checkpoint_pair move = { "0", "1" };
        uint64_t first, second;
        (void)state;

        start(work);
        first = let_work();
        checkpoint = fixture_new(target.pid);
        assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                const struct vgpu_checkpoint_error *error = assert_failed(
                        checkpoint, restore_onto(checkpoint, wrong[i].pairs, wrong[i].n),
                        VGPU_CHECKPOINT_ERROR_INVALID);

                if (!strstr(error->message, wrong[i].message))
                        fail_msg("%s: not '%s'", error->message, wrong[i].message);
                assert_true(error->is_undone);
                assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        }
        (void)assert_failed(checkpoint, restore_onto(checkpoint, NULL, 1),
                            VGPU_CHECKPOINT_ERROR_INVALID);
        assert_int_equal(restore_onto(checkpoint, &move, 1), 0);
        second = let_work();
        assert_int_not_equal(first, second);

        assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
        assert_int_equal(restore_onto(checkpoint, &move, 1), 0); /* the two are exchanged */
        assert_int_equal(let_work(), first);
        end();
}

static void suspend_itself(int socket)
{
        struct vgpu_checkpoint *itself;
        CUdeviceptr pointer;

        (void)socket;
        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 100));
        must_equal(vgpu_checkpoint_new_current(&itself), 0);
        must_equal(vgpu_checkpoint_get_pid(itself), getpid());
        must_equal(vgpu_checkpoint_suspend(itself, NULL), 0);
        must_equal(vgpu_checkpoint_is_checkpointed(itself), true);
        must_equal(vgpu_checkpoint_resume(itself, NULL), 0);
        must(cuMemFree_v2(pointer));
        must_equal(vgpu_checkpoint_free(itself), NULL);
        must_equal(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, 1); /* nothing to be seen */
}

static void test_a_process_may_suspend_itself(void **state)
{
        (void)state;
        guest_run(suspend_itself);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_tree_is_suspended_and_resumed_as_one),
                cmocka_unit_test(test_all_of_a_tree_or_none),
                cmocka_unit_test(test_processes_that_were_added_are_handled_together),
                cmocka_unit_test(test_pairs_are_checked_before_the_driver_sees_them),
                cmocka_unit_test(test_a_process_may_suspend_itself),
        };
        int failed;

        test_host_create("2xH200:1G,1xA100:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
