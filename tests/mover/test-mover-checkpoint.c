/* SPDX-License-Identifier: Apache-2.0 */
/* The mover as it checkpoints a process: in good order, when a call fails, when another mover died in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* This program again, as a guest that waits with a context. */

struct process {
        pid_t pid;
        int input, output;
};

static int run_guest(void)
{
        CUcontext context;
        CUdevice device;
        char byte = 'r';

        load_guest_driver();
        if (guest.cuInit(0) || guest.cuDeviceGet(&device, 0) ||
            guest.cuDevicePrimaryCtxRetain(&context, device))
                return 1;
        do {
                CUuuid uuid;

                if (guest.cuDeviceGetUuid(&uuid, device))
                        return 1;
                if (write(STDOUT_FILENO, &uuid, sizeof(uuid)) != sizeof(uuid))
                        return 1;
        } while (read(STDIN_FILENO, &byte, 1) == 1);
        return 0;
}

static CUuuid read_uuid(const struct process *process)
{
        CUuuid uuid;

        assert_int_equal(read(process->output, &uuid, sizeof(uuid)), sizeof(uuid));
        return uuid;
}

static CUuuid start_process(struct process *process)
{
        int in[2], out[2];

        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        process->pid = fork();
        if (process->pid == 0) {
                dup2(in[0], STDIN_FILENO);
                dup2(out[1], STDOUT_FILENO);
                execl("/proc/self/exe", "guest", "guest", NULL);
                _exit(127);
        }
        close(in[0]);
        close(out[1]);
        process->input = in[1];
        process->output = out[0];
        return read_uuid(process);
}

static CUuuid ask_uuid(const struct process *process)
{
        assert_int_equal(write(process->input, "?", 1), 1);
        return read_uuid(process);
}

static void end_process(struct process *process)
{
        int status;

        close(process->input);
        assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
        assert_int_equal(status, 0);
        close(process->output);
}

static int checkpoint(struct fixture *fixture, pid_t pid, enum mover_checkpoint_action action)
{
        return perform(fixture, mover_checkpoint(fixture->mover, pid, action, 5000, NULL, 0,
                                                 on_done, fixture));
}

static void assert_runs(const struct process *process, const CUuuid *uuid)
{
        CUuuid now = ask_uuid(process);

        assert_memory_equal(&now, uuid, sizeof(now));
}

static void test_a_process_is_suspended_and_resumed(void **state)
{
        struct fixture *fixture = *state;
        struct process process;
        CUuuid uuid = start_process(&process);

        start_mover(fixture, 0);
        assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_STATE), 0);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
        for (int i = 0; i < 2; i++) { /* asked again, it is done already */
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND), 0);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_CHECKPOINTED);
        }
        for (int i = 0; i < 2; i++) {
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_RESUME), 0);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
        }
        assert_runs(&process, &uuid);
        end_process(&process);

        assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND), -ESRCH);
        assert_int_equal(checkpoint(fixture, -1, MOVER_CHECKPOINT_SUSPEND), -EINVAL);
        assert_int_equal(checkpoint(fixture, getpid(), 77), -EINVAL);
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
        size_t n = make_pairs(fixture, pairs);
        struct process process;
        CUuuid other = parse_uuid(fixture->devices[1].uuid);

        start_process(&process);
        start_mover(fixture, 1);
        assert_int_equal(mover_checkpoint(fixture->mover, process.pid, MOVER_CHECKPOINT_SUSPEND, 1,
                                          pairs, n, on_done, fixture),
                         -EINVAL);
        assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND), 0);

        /* One pair is not all devices: refused by the driver, and tried again. */
        assert_int_equal(perform(fixture, mover_checkpoint(fixture->mover, process.pid,
                                                           MOVER_CHECKPOINT_RESUME, 1, pairs, 1,
                                                           on_done, fixture)),
                         -EIO);
        assert_string_equal(fixture->done.call, "cuCheckpointProcessRestore");
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_CHECKPOINTED);

        assert_int_equal(perform(fixture, mover_checkpoint(fixture->mover, process.pid,
                                                           MOVER_CHECKPOINT_RESUME, 1, pairs, n,
                                                           on_done, fixture)),
                         0);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
        assert_runs(&process, &other);
        end_process(&process);
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
        struct process process;
        CUuuid uuid = start_process(&process);

        for (size_t i = 0; i < COUNT(failures); i++) {
                start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", failures[i].fail);
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                 failures[i].error);
                assert_string_equal(fixture->done.call, failures[i].call);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
                assert_runs(&process, &uuid);
                stop_mover(fixture);
        }
        end_process(&process);
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
        struct process process;
        CUuuid uuid = start_process(&process);

        for (size_t i = 0; i < COUNT(steps); i++) {
                start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", steps[i].fail);
                assert_int_equal(checkpoint(fixture, process.pid, steps[i].action), 0);
                assert_string_equal(fixture->done.call, "");
                assert_int_equal(fixture->done.process_state, steps[i].state);
                stop_mover(fixture);
        }
        assert_runs(&process, &uuid);
        end_process(&process);
}

static void test_a_resume_that_fails_can_be_tried_again(void **state)
{
        static const struct {
                const char *fail;
                int error;
                CUprocessState state;
        } failures[] = {
                { "cuCheckpointProcessRestore@1=2", -ENOMEM, CU_PROCESS_STATE_CHECKPOINTED },
                { "cuCheckpointProcessUnlock@1=999", -EIO, CU_PROCESS_STATE_LOCKED },
        };
        struct fixture *fixture = *state;
        struct process process;
        CUuuid uuid = start_process(&process);

        for (size_t i = 0; i < COUNT(failures); i++) {
                start_mover_with(fixture, 0, "OPENVGPU_SIM_FAIL", failures[i].fail);
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND), 0);
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_RESUME),
                                 failures[i].error);
                assert_int_equal(fixture->done.process_state, failures[i].state);
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_RESUME), 0);
                assert_runs(&process, &uuid);
                stop_mover(fixture);
        }
        end_process(&process);
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
        struct process process;
        CUuuid uuid = start_process(&process);

        for (size_t i = 0; i < COUNT(faults); i++) {
                start_mover_with(fixture, 0, "OPENVGPU_FAULT", faults[i].fault);
                if (faults[i].resumes)
                        assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                         0);
                assert_int_equal(checkpoint(fixture, process.pid,
                                            faults[i].resumes ? MOVER_CHECKPOINT_RESUME
                                                              : MOVER_CHECKPOINT_SUSPEND),
                                 -ECONNRESET);
                await_loss(fixture);
                stop_mover(fixture);

                start_mover(fixture, 0);
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_STATE), 0);
                assert_int_equal(fixture->done.process_state, faults[i].left);
                if (!faults[i].resumes)
                        assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND),
                                         0);
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_RESUME), 0);
                assert_runs(&process, &uuid);
                stop_mover(fixture);
        }
        end_process(&process);
}

static void test_a_suspend_that_fails_at_a_fault_point_is_undone(void **state)
{
        static const char *const points[] = { "mover.locked", "mover.checkpointed" };
        struct fixture *fixture = *state;
        struct process process;
        CUuuid uuid = start_process(&process);

        for (size_t i = 0; i < COUNT(points); i++) {
                char fault[64];

                snprintf(fault, sizeof(fault), "%s=fail", points[i]);
                start_mover_with(fixture, 0, "OPENVGPU_FAULT", fault);
                assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND), -EIO);
                assert_string_equal(fixture->done.call, points[i]);
                assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
                assert_runs(&process, &uuid);
                stop_mover(fixture);
        }
        end_process(&process);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(int argc, char **argv)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_a_process_is_suspended_and_resumed),
                TEST(test_a_process_is_resumed_on_another_device),
                TEST(test_a_checkpoint_that_fails_leaves_a_process_that_runs),
                TEST(test_a_step_that_is_done_meanwhile_is_no_failure),
                TEST(test_a_resume_that_fails_can_be_tried_again),
                TEST(test_killed_during_a_checkpoint_another_mover_goes_on_from_there),
                TEST(test_a_suspend_that_fails_at_a_fault_point_is_undone),
        };

        if (argc == 2 && strcmp(argv[1], "guest") == 0)
                return run_guest();
        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
