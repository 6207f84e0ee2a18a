/* SPDX-License-Identifier: Apache-2.0 */
/* The mover as it checkpoints a process: in good order, when a call fails, when another mover died in it. */
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

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_a_process_is_suspended_and_resumed(void **state)
{
        struct fixture *fixture = *state;
        struct target process;
        CUuuid uuid = target_start(&process);

        start_mover(fixture, 0);
        assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_STATE), 0);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
        for (int i = 0; i < 2; i++) { /* asked again, it is done already */
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                 0);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_CHECKPOINTED);
        }
        for (int i = 0; i < 2; i++) {
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_RESUME),
                                 0);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
        }
        target_assert_runs(&process, &uuid);
        target_end(&process);

        assert_int_equal(target_checkpoint(fixture, -1, MOVER_CHECKPOINT_SUSPEND), -EINVAL);
        assert_int_equal(target_checkpoint(fixture, getpid(), 77), -EINVAL);
}

/* Fault points of a mover whose files are here. */

static void kill_process(struct target *process)
{
        assert_int_equal(kill(process->pid, SIGKILL), 0);
        assert_int_equal(waitpid(process->pid, NULL, 0), process->pid);
        close(process->input);
        close(process->output);
}

static void test_of_a_process_that_has_ended_nobody_is_asked(void **state)
{
        static const enum mover_checkpoint_action actions[] = { MOVER_CHECKPOINT_STATE,
                                                                MOVER_CHECKPOINT_SUSPEND,
                                                                MOVER_CHECKPOINT_RESUME };
        const struct mover_checkpoint_options options = { .timeout_ms = 5000 };
        struct fixture *fixture = *state;
        struct target process, other;
        CUuuid uuid = target_start(&other);
        int pidfd;

        start_mover(fixture, 0);
        target_start(&process);
        pidfd = target_open(process.pid);
        target_end(&process);
        for (size_t i = 0; i < COUNT(actions); i++) { /* as if the other had its number */
                assert_int_equal(
                        perform(fixture, mover_checkpoint(fixture->mover, other.pid, pidfd,
                                                          actions[i], &options, on_done, fixture)),
                        -ESRCH);
                assert_string_equal(fixture->done.call, "");
                assert_true(fixture->done.is_untouched);
                assert_int_equal(fixture->done.process_state, -1);
        }
        assert_int_equal(target_checkpoint(fixture, other.pid, MOVER_CHECKPOINT_STATE), 0);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
        target_assert_runs(&other, &uuid);
        close(pidfd);
        target_end(&other);
}

/* Between the calls as well: the process that is locked is another than the one that has ended. */
static void test_whoever_ends_between_two_calls_is_not_asked_again(void **state)
{
        const struct mover_checkpoint_options options = { .timeout_ms = 5000 };
        struct fixture *fixture = *state;
        struct target process, other;
        CUuuid uuid = target_start(&other);
        int pidfd;

        target_start(&process);
        pidfd = target_open(process.pid);
        start_mover_that_pauses_at(fixture, "mover.locked");
        assert_int_equal(mover_checkpoint(fixture->mover, other.pid, pidfd,
                                          MOVER_CHECKPOINT_SUSPEND, &options, on_done, fixture),
                         0);
        await_pause("mover.locked");
        kill_process(&process);
        end_pause("mover.locked");
        await_done(fixture, 1);
        assert_int_equal(fixture->done.error, -ESRCH);
        assert_int_equal(target_checkpoint(fixture, other.pid, MOVER_CHECKPOINT_STATE), 0);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_LOCKED);
        assert_int_equal(target_checkpoint(fixture, other.pid, MOVER_CHECKPOINT_RESUME), 0);
        target_assert_runs(&other, &uuid);
        close(pidfd);
        target_end(&other);
}

/* Needs the right to choose the number of a process. */
static void test_a_number_that_another_has_taken_is_not_mistaken(void **state)
{
        const struct mover_checkpoint_options options = { .timeout_ms = 5000 };
        struct fixture *fixture = *state;
        struct target process, other;
        bool is_taken;
        CUuuid uuid;

        target_start(&process);
        start_mover_that_pauses_at(fixture, "mover.asked");
        assert_int_equal(target_ask(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, &options), 0);
        await_pause("mover.asked");
        kill_process(&process);
        is_taken = target_start_as(&other, process.pid, &uuid);
        end_pause("mover.asked");
        await_done(fixture, 1);
        assert_int_equal(fixture->done.error, -ESRCH);
        if (!is_taken)
                skip();
        assert_int_equal(other.pid, process.pid);
        target_assert_runs(&other, &uuid);
        target_end(&other);
}

static CUuuid parse_uuid(const char *text)
{
        CUuuid uuid;
        size_t n = 0;

        for (const char *c = text + strlen("GPU-"); *c && n < sizeof(uuid.bytes); c++) {
                unsigned int byte;

                if (*c == '-')
                        continue;
                assert_int_equal(sscanf(c, "%2x", &byte), 1);
                uuid.bytes[n++] = (unsigned char)byte;
                c++;
        }
        return uuid;
}

/* The pairs that exchange the first two devices: every device of the machine is in them. */
static size_t make_pairs(const struct fixture *fixture, struct mover_pair *pairs)
{
        for (size_t i = 0; i < fixture->n_devices; i++) {
                CUuuid from = parse_uuid(fixture->devices[i].uuid);
                CUuuid to = parse_uuid(fixture->devices[i < 2 ? 1 - i : i].uuid);

                memcpy(pairs[i].old_uuid, from.bytes, sizeof(from.bytes));
                memcpy(pairs[i].new_uuid, to.bytes, sizeof(to.bytes));
        }
        return fixture->n_devices;
}

static void test_a_process_is_resumed_on_another_device(void **state)
{
        struct fixture *fixture = *state;
        struct mover_pair pairs[MOVER_PAIRS_MAX];
        const struct mover_checkpoint_options all = { 1, pairs, make_pairs(fixture, pairs), 0, 0 };
        const struct mover_checkpoint_options one = { 1, pairs, 1, 0, 0 };
        struct target process;
        CUuuid other = parse_uuid(fixture->devices[1].uuid);

        target_start(&process);
        start_mover(fixture, 1);
        assert_int_equal(target_ask(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, &all), -EINVAL);
        assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND), 0);

        /* One pair is not all devices: refused by the driver, and tried again. */
        assert_int_equal(
                perform(fixture, target_ask(fixture, process.pid, MOVER_CHECKPOINT_RESUME, &one)),
                -EIO);
        assert_string_equal(fixture->done.call, "cuCheckpointProcessRestore");
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_CHECKPOINTED);

        assert_int_equal(
                perform(fixture, target_ask(fixture, process.pid, MOVER_CHECKPOINT_RESUME, &all)),
                0);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
        target_assert_runs(&process, &other);
        target_end(&process);
}

/* A failing driver call, what is answered, and the state that the process is left in. */
static void test_a_checkpoint_that_fails_leaves_a_process_that_runs(void **state)
{
        static const struct {
                const char *fail;
                const char *call;
                int error;
        } failures[] = {
                { "cuCheckpointProcessLock@1=600", "cuCheckpointProcessLock", -ETIMEDOUT },
                { "cuCheckpointProcessLock@1=304", "cuCheckpointProcessLock", -EIO },
                { "cuCheckpointProcessCheckpoint@1=801", "cuCheckpointProcessCheckpoint", -EIO },
                { "cuCheckpointProcessCheckpoint@1=2", "cuCheckpointProcessCheckpoint", -ENOMEM },
        };
        struct fixture *fixture = *state;
        struct target process;
        CUuuid uuid = target_start(&process);

        for (size_t i = 0; i < COUNT(failures); i++) {
                start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", failures[i].fail);
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                 failures[i].error);
                assert_string_equal(fixture->done.call, failures[i].call);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
                target_assert_runs(&process, &uuid);
                stop_mover(fixture);
        }
        target_end(&process);
}

/* What a mover meets that comes after one that was killed in the middle of the call. */
static void test_a_step_that_is_done_meanwhile_is_no_failure(void **state)
{
        static const struct {
                const char *fail;
                uint32_t action;
                CUprocessState state;
        } steps[] = {
                { "cuCheckpointProcessCheckpoint@1=+401", MOVER_CHECKPOINT_SUSPEND,
                  CU_PROCESS_STATE_CHECKPOINTED },
                { "cuCheckpointProcessRestore@1=+401", MOVER_CHECKPOINT_RESUME,
                  CU_PROCESS_STATE_RUNNING },
                { "", MOVER_CHECKPOINT_SUSPEND, CU_PROCESS_STATE_CHECKPOINTED },
                { "cuCheckpointProcessUnlock@1=+401", MOVER_CHECKPOINT_RESUME,
                  CU_PROCESS_STATE_RUNNING },
        };
        struct fixture *fixture = *state;
        struct target process;
        CUuuid uuid = target_start(&process);

        for (size_t i = 0; i < COUNT(steps); i++) {
                start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", steps[i].fail);
                assert_int_equal(target_checkpoint(fixture, process.pid, steps[i].action), 0);
                assert_string_equal(fixture->done.call, "");
                assert_int_equal(fixture->done.process_state, steps[i].state);
                stop_mover(fixture);
        }
        target_assert_runs(&process, &uuid);
        target_end(&process);
}

static void test_a_resume_that_fails_can_be_tried_again(void **state)
{
        static const struct {
                const char *fail;
                int error;
                CUprocessState state;
        } failures[] = {
                { "cuCheckpointProcessUnlock@1=999", -EIO, CU_PROCESS_STATE_LOCKED },
        };
        struct fixture *fixture = *state;
        struct target process;
        CUuuid uuid = target_start(&process);

        for (size_t i = 0; i < COUNT(failures); i++) {
                start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", failures[i].fail);
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                 0);
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_RESUME),
                                 failures[i].error);
                assert_int_equal(fixture->done.process_state, failures[i].state);
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_RESUME),
                                 0);
                target_assert_runs(&process, &uuid);
                stop_mover(fixture);
        }
        target_end(&process);
}

static void test_killed_during_a_checkpoint_another_mover_goes_on_from_there(void **state)
{
        static const struct {
                const char *fault;
                bool resumes;
                CUprocessState left;
        } faults[] = {
                { "mover.locked=kill", false, CU_PROCESS_STATE_LOCKED },
                { "mover.checkpointed=kill", false, CU_PROCESS_STATE_CHECKPOINTED },
                { "mover.restored=kill", true, CU_PROCESS_STATE_LOCKED },
                { "mover.unlocked=kill", true, CU_PROCESS_STATE_RUNNING },
        };
        struct fixture *fixture = *state;
        struct target process;
        CUuuid uuid = target_start(&process);

        for (size_t i = 0; i < COUNT(faults); i++) {
                start_mover_with(fixture, 0, "OPENVGPU_FAULT", faults[i].fault);
                if (faults[i].resumes)
                        assert_int_equal(
                                target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                0);
                assert_int_equal(target_checkpoint(fixture, process.pid,
                                                   faults[i].resumes ? MOVER_CHECKPOINT_RESUME
                                                                     : MOVER_CHECKPOINT_SUSPEND),
                                 -ECONNRESET);
                await_loss(fixture);
                stop_mover(fixture);

                start_mover(fixture, 0);
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_STATE),
                                 0);
                assert_int_equal(fixture->done.process_state, faults[i].left);
                if (!faults[i].resumes)
                        assert_int_equal(
                                target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                0);
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_RESUME),
                                 0);
                target_assert_runs(&process, &uuid);
                stop_mover(fixture);
        }
        target_end(&process);
}

static void test_a_suspend_that_fails_at_a_fault_point_is_undone(void **state)
{
        static const char *const points[] = { "mover.locked", "mover.checkpointed" };
        struct fixture *fixture = *state;
        struct target process;
        CUuuid uuid = target_start(&process);

        for (size_t i = 0; i < COUNT(points); i++) {
                char fault[64];

                snprintf(fault, sizeof(fault), "%s=fail", points[i]);
                start_mover_with(fixture, 0, "OPENVGPU_FAULT", fault);
                assert_int_equal(target_checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                 -EIO);
                assert_string_equal(fixture->done.call, points[i]);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
                target_assert_runs(&process, &uuid);
                stop_mover(fixture);
        }
        target_end(&process);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(int argc, char **argv)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_a_process_is_suspended_and_resumed),
                TEST(test_of_a_process_that_has_ended_nobody_is_asked),
                TEST(test_whoever_ends_between_two_calls_is_not_asked_again),
                TEST(test_a_number_that_another_has_taken_is_not_mistaken),
                TEST(test_a_process_is_resumed_on_another_device),
                TEST(test_a_checkpoint_that_fails_leaves_a_process_that_runs),
                TEST(test_a_step_that_is_done_meanwhile_is_no_failure),
                TEST(test_a_resume_that_fails_can_be_tried_again),
                TEST(test_killed_during_a_checkpoint_another_mover_goes_on_from_there),
                TEST(test_a_suspend_that_fails_at_a_fault_point_is_undone),
        };

        if (argc == 2 && strcmp(argv[1], "guest") == 0)
                return target_run_guest();
        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
