/* SPDX-License-Identifier: Apache-2.0 */
/* The mover holds the room of a context that left its device, for the way back. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

/* On a simulated device of 1 GiB. */
#define CONTEXT (64 * MIB)

/* All of the first device but @left bytes. */
static CUmemGenericAllocationHandle take_all_but(uint64_t left)
{
        CUmemGenericAllocationHandle handle;
        CUmemAllocationProp prop;

        memset(&prop, 0, sizeof(prop));
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        assert_int_equal(guest.cuMemCreate(&handle, free_on(0) - left, &prop, 0), 0);
        return handle;
}

static int do_with(struct fixture *fixture, pid_t pid, enum mover_checkpoint_action action,
                   uint64_t bytes)
{
        const struct mover_checkpoint_options options = { .timeout_ms = 5000, .bytes = bytes };

        return perform(fixture, target_ask(fixture, pid, action, &options));
}

static void test_what_a_process_leaves_is_held_for_its_way_back(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct target process;
        CUuuid uuid = target_start(&process);

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_mover(fixture, 0);
        assert_int_equal(perform(fixture, mover_context(fixture->mover, on_done, fixture)), 0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, CONTEXT), 0);
        assert_int_equal(fixture->done.bytes, CONTEXT); /* measured */
        assert_true(fixture->done.is_held);
        taken = take_all_but(0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        target_assert_runs(&process, &uuid);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        target_end(&process);
}

/* More is wanted for the way back than a process leaves; the driver needs some of the device for the next one. */
static void test_what_is_held_leaves_room_for_the_checkpoint_of_another(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct target first, second;
        CUuuid uuid = target_start(&first);

        if (!getenv("TEST_SIMHOST"))
                skip();
        target_start(&second);
        start_mover(fixture, 0);
        assert_int_equal(perform(fixture, mover_context(fixture->mover, on_done, fixture)), 0);
        taken = take_all_but(0); /* beside the margin, which is there */
        assert_int_equal(do_with(fixture, first.pid, MOVER_CHECKPOINT_SUSPEND, CONTEXT + 16 * MIB),
                         0);
        assert_false(fixture->done.is_held);
        assert_int_equal(do_with(fixture, second.pid, MOVER_CHECKPOINT_SUSPEND, CONTEXT), 0);
        assert_true(fixture->done.is_held);
        assert_int_equal(do_with(fixture, second.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        assert_int_equal(do_with(fixture, first.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        target_assert_runs(&first, &uuid);
        target_assert_runs(&second, &uuid);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        target_end(&first);
        target_end(&second);
}

static void test_a_restore_without_room_is_not_begun(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct target process;
        CUuuid uuid = target_start(&process);

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_mover(fixture, 0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, 0), 0);
        taken = take_all_but(CONTEXT - 2 * MIB);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, CONTEXT),
                                 -ENOSPC);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_CHECKPOINTED);
        }
        assert_int_equal(free_on(0), CONTEXT - 2 * MIB);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        target_assert_runs(&process, &uuid);
        target_end(&process);
}

static void test_a_restore_that_runs_out_of_memory_is_told_as_a_loss(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct target process;

        if (!getenv("TEST_SIMHOST"))
                skip();
        target_start(&process);
        start_mover(fixture, 0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, 0), 0);
        taken = take_all_but(2 * MIB);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, 0), -EUCLEAN);
        assert_int_equal(fixture->done.driver_code, CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_FAILED);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        assert_int_equal(kill(process.pid, SIGKILL), 0);
        assert_int_equal(waitpid(process.pid, NULL, 0), process.pid);
        close(process.input);
        close(process.output);
}

static void test_what_is_held_is_free_when_it_is_let_go_and_when_the_mover_ends(void **state)
{
        struct fixture *fixture = *state;
        uint64_t free_bytes;

        start_mover(fixture, 0);
        assert_int_equal(perform(fixture, mover_context(fixture->mover, on_done, fixture)), 0);
        free_bytes = free_on(0);
        for (int i = 0; i < 2; i++) { /* what there is already stays */
                assert_int_equal(perform(fixture, mover_hold(fixture->mover, getpid(), 10 * MIB,
                                                             on_done, fixture)),
                                 0);
                assert_int_equal(free_on(0), free_bytes - 10 * MIB);
        }
        assert_int_equal(
                perform(fixture, mover_hold(fixture->mover, getpid(), 16 * MIB, on_done, fixture)),
                0);
        assert_int_equal(free_on(0), free_bytes - 16 * MIB);
        assert_int_equal(perform(fixture, mover_hold(fixture->mover, 1, TIB, on_done, fixture)),
                         -ENOMEM);
        assert_int_equal(
                perform(fixture, mover_hold(fixture->mover, getpid(), 0, on_done, fixture)), 0);
        assert_int_equal(free_on(0), free_bytes);
        assert_int_equal(
                perform(fixture, mover_hold(fixture->mover, getpid(), 16 * MIB, on_done, fixture)),
                0);
        stop_mover(fixture); /* teardown() compares what is free */
}

/* Answers of two requests that are under way at once. */
struct answer {
        struct mover_done done;
        bool is_there;
};

static void on_answer(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct answer *answer = userdata;

        (void)mover;
        *answer = (struct answer){ *done, true };
}

static void await_answer(struct fixture *fixture, const struct answer *answer)
{
        while (!answer->is_there)
                assert_true(sd_event_run(fixture->event, TIMEOUT_US) > 0);
}

/* Long enough for who does not wait; nobody is too late. */
static void give_time(struct fixture *fixture, const struct answer *answer)
{
        for (int i = 0; i < 20 && !answer->is_there; i++)
                assert_true(sd_event_run(fixture->event, 10000) >= 0);
}

static void resume_into(struct fixture *fixture, pid_t pid, struct answer *answer)
{
        const struct mover_checkpoint_options options = { .timeout_ms = 5000, .bytes = CONTEXT };
        CLEANUP(fd_closep) int pidfd = target_open(pid);

        *answer = (struct answer){ 0 };
        assert_int_equal(mover_checkpoint(fixture->mover, pid, pidfd, MOVER_CHECKPOINT_RESUME,
                                          &options, on_answer, answer),
                         0);
}

static void test_what_is_let_go_for_a_restore_is_for_that_one_only(void **state)
{
        struct fixture *fixture = *state;
        struct target first, second;
        struct answer one, two, three = { 0 };
        CUmemGenericAllocationHandle taken;
        CUuuid uuid = target_start(&first);

        if (!getenv("TEST_SIMHOST"))
                skip();
        target_start(&second);
        start_mover_that_pauses_at(fixture, "mover.restoring");
        assert_int_equal(do_with(fixture, first.pid, MOVER_CHECKPOINT_SUSPEND, 0), 0);
        assert_int_equal(do_with(fixture, second.pid, MOVER_CHECKPOINT_SUSPEND, 0), 0);
        assert_int_equal(
                perform(fixture, mover_hold(fixture->mover, first.pid, CONTEXT, on_done, fixture)),
                0);
        taken = take_all_but(0);
        resume_into(fixture, first.pid, &one);
        await_pause("mover.restoring");
        assert_int_equal(free_on(0), CONTEXT);
        resume_into(fixture, second.pid, &two);
        assert_int_equal(mover_context(fixture->mover, on_answer, &three), 0);
        give_time(fixture, &two);
        give_time(fixture, &three);
        end_pause("mover.restoring");
        await_answer(fixture, &one);
        await_answer(fixture, &two);
        await_answer(fixture, &three);
        assert_int_equal(one.done.error, 0);
        assert_int_equal(two.done.error, -ENOSPC);
        assert_int_equal(two.done.process_state, CU_PROCESS_STATE_CHECKPOINTED);
        assert_int_equal(three.done.error, -ENOMEM);
        target_assert_runs(&first, &uuid);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        assert_int_equal(do_with(fixture, second.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        target_assert_runs(&second, &uuid);
        target_end(&first);
        target_end(&second);
}

/* Between the moment that the mover lets go and the driver's call: a program outside of all vGPUs. */
static void test_a_restore_whose_room_is_taken_before_the_call_is_not_begun(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken, stolen;
        struct target process;
        struct answer answer;
        CUuuid uuid = target_start(&process);

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_mover_that_pauses_at(fixture, "mover.restoring");
        assert_int_equal(perform(fixture, mover_context(fixture->mover, on_done, fixture)), 0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, CONTEXT), 0);
        taken = take_all_but(0);
        resume_into(fixture, process.pid, &answer);
        await_pause("mover.restoring");
        stolen = take_all_but(0);
        end_pause("mover.restoring");
        await_answer(fixture, &answer);
        assert_int_equal(answer.done.error, -ENOSPC);
        assert_int_equal(answer.done.process_state, CU_PROCESS_STATE_CHECKPOINTED);
        assert_int_equal(guest.cuMemRelease(stolen), 0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        target_assert_runs(&process, &uuid);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        target_end(&process);
}

/* For a process that the mover of another device calls the driver for. */
static void test_a_device_that_is_lent_is_nobody_elses(void **state)
{
        struct fixture *fixture = *state;
        struct answer other = { 0 };
        const pid_t pid = getpid();
        uint64_t free_bytes;

        start_mover(fixture, 0);
        assert_int_equal(perform(fixture, mover_context(fixture->mover, on_done, fixture)), 0);
        free_bytes = free_on(0);
        assert_int_equal(
                perform(fixture, mover_hold(fixture->mover, pid, 10 * MIB, on_done, fixture)), 0);
        assert_int_equal(perform(fixture, mover_lend(fixture->mover, pid, MOVER_CALL_RESTORE,
                                                     on_done, fixture)),
                         0);
        assert_true(free_on(0) >= free_bytes); /* with the margin */
        assert_int_equal(mover_hold(fixture->mover, 1, 4 * MIB, on_answer, &other), 0);
        give_time(fixture, &other);
        assert_false(other.is_there);
        assert_int_equal(perform(fixture, mover_lend_end(fixture->mover, pid, MOVER_CALL_RESTORE, 0,
                                                         on_done, fixture)),
                         0);
        await_answer(fixture, &other);
        assert_int_equal(other.done.error, 0);

        assert_int_equal(perform(fixture, mover_lend(fixture->mover, pid, MOVER_CALL_CHECKPOINT,
                                                     on_done, fixture)),
                         0);
        assert_int_equal(perform(fixture, mover_lend_end(fixture->mover, pid, MOVER_CALL_CHECKPOINT,
                                                         6 * MIB, on_done, fixture)),
                         0);
        assert_int_equal(free_on(0), free_bytes - 10 * MIB); /* its own, and the other one */
        assert_int_equal(perform(fixture, mover_lend_end(fixture->mover, pid, MOVER_CALL_CHECKPOINT,
                                                         2 * MIB, on_done, fixture)),
                         -ENOENT); /* by a mover before this one */
        assert_int_equal(free_on(0), free_bytes - 10 * MIB);
        stop_mover(fixture);
}

static void test_a_restore_whose_room_cannot_be_let_go_is_not_begun(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct target process;
        CUuuid uuid = target_start(&process);

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", "cuMemRelease@1=719");
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, CONTEXT), 0);
        assert_true(fixture->done.is_held);
        taken = take_all_but(0);
        assert_true(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, CONTEXT) < 0);
        stop_mover(fixture); /* which is broken */
        start_mover(fixture, 0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        target_assert_runs(&process, &uuid);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        target_end(&process);
}

/* It was sent first, and is dealt with last. */
static void test_who_lets_go_late_leaves_what_was_taken_since(void **state)
{
        struct fixture *fixture = *state;
        struct target process;
        CUuuid uuid = target_start(&process);
        uint64_t free_bytes;

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_mover_that_pauses_at(fixture, "mover.hold-dropping");
        assert_int_equal(perform(fixture, mover_context(fixture->mover, on_done, fixture)), 0);
        free_bytes = free_on(0);
        assert_int_equal(mover_hold(fixture->mover, process.pid, 0, on_done, fixture), 0);
        await_pause("mover.hold-dropping");
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, CONTEXT), 0);
        assert_true(fixture->done.is_held);
        end_pause("mover.hold-dropping");
        await_done(fixture, 3);
        assert_int_equal(free_on(0), free_bytes); /* the context is gone, and held */
        assert_int_equal(
                perform(fixture, mover_hold(fixture->mover, process.pid, 0, on_done, fixture)), 0);
        assert_int_equal(free_on(0), free_bytes + CONTEXT);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        target_assert_runs(&process, &uuid);
        target_end(&process);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(int argc, char **argv)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_what_a_process_leaves_is_held_for_its_way_back),
                TEST(test_what_is_held_leaves_room_for_the_checkpoint_of_another),
                TEST(test_a_restore_without_room_is_not_begun),
                TEST(test_a_restore_that_runs_out_of_memory_is_told_as_a_loss),
                TEST(test_what_is_held_is_free_when_it_is_let_go_and_when_the_mover_ends),
                TEST(test_who_lets_go_late_leaves_what_was_taken_since),
                TEST(test_a_restore_whose_room_cannot_be_let_go_is_not_begun),
                TEST(test_what_is_let_go_for_a_restore_is_for_that_one_only),
                TEST(test_a_restore_whose_room_is_taken_before_the_call_is_not_begun),
                TEST(test_a_device_that_is_lent_is_nobody_elses),
        };

        if (argc == 2 && strcmp(argv[1], "guest") == 0)
                return target_run_guest();
        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
