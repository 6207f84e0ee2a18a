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

static pid_t fork_process(pid_t pid)
{
        pid_t numbers[] = { pid };
        struct clone_args args = { .exit_signal = SIGCHLD,
                                   .set_tid = (uintptr_t)numbers,
                                   .set_tid_size = 1 };

        return pid ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();
}

/* With the number @number, if that is not 0; false: we may not choose. */
static bool start_process_as(struct process *process, pid_t number, CUuuid *ret_uuid)
{
        int in[2], out[2];

        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        process->pid = fork_process(number);
        if (process->pid < 0)
                return false;
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
        *ret_uuid = read_uuid(process);
        return true;
}

static CUuuid start_process(struct process *process)
{
        CUuuid uuid;

        assert_true(start_process_as(process, 0, &uuid));
        return uuid;
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

/* Of @pid; of this process, where there is none of that number. */
static int open_process(pid_t pid)
{
        int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

        if (pidfd < 0)
                pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        assert_true(pidfd >= 0);
        return pidfd;
}

static int ask(struct fixture *fixture, pid_t pid, enum mover_checkpoint_action action,
               const struct mover_checkpoint_options *options)
{
        CLEANUP(fd_closep) int pidfd = open_process(pid);

        return mover_checkpoint(fixture->mover, pid, pidfd, action, options, on_done, fixture);
}

static int checkpoint(struct fixture *fixture, pid_t pid, enum mover_checkpoint_action action)
{
        const struct mover_checkpoint_options options = { .timeout_ms = 5000 };

        return perform(fixture, ask(fixture, pid, action, &options));
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

        assert_int_equal(checkpoint(fixture, -1, MOVER_CHECKPOINT_SUSPEND), -EINVAL);
        assert_int_equal(checkpoint(fixture, getpid(), 77), -EINVAL);
}

/* Fault points of a mover whose files are here. */

static char fault_directory[] = "/tmp/test-mover-faults-XXXXXX";

static void start_mover_that_pauses_at(struct fixture *fixture, const char *point)
{
        char fault[64];

        snprintf(fault, sizeof(fault), "%s=pause", point);
        assert_non_null(mkdtemp(fault_directory));
        setenv("OPENVGPU_FAULT_DIR", fault_directory, 1);
        start_mover_with(fixture, 0, "OPENVGPU_FAULT", fault);
        unsetenv("OPENVGPU_FAULT_DIR");
}

static void await_pause(const char *point)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", fault_directory, point);
        for (int i = 0; i < 20000 && access(path, F_OK) < 0; i++)
                usleep(1000);
        assert_int_equal(access(path, F_OK), 0);
}

static void end_pause(const char *point)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", fault_directory, point);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(fault_directory), 0);
        memcpy(strrchr(fault_directory, '-'), "-XXXXXX", strlen("-XXXXXX"));
}

static void kill_process(struct process *process)
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
        struct process process, other;
        CUuuid uuid = start_process(&other);
        int pidfd;

        start_mover(fixture, 0);
        start_process(&process);
        pidfd = open_process(process.pid);
        end_process(&process);
        for (size_t i = 0; i < COUNT(actions); i++) { /* as if the other had its number */
                assert_int_equal(
                        perform(fixture, mover_checkpoint(fixture->mover, other.pid, pidfd,
                                                          actions[i], &options, on_done, fixture)),
                        -ESRCH);
                assert_string_equal(fixture->done.call, "");
                assert_true(fixture->done.is_untouched);
                assert_int_equal(fixture->done.process_state, -1);
        }
        assert_int_equal(checkpoint(fixture, other.pid, MOVER_CHECKPOINT_STATE), 0);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_RUNNING);
        assert_runs(&other, &uuid);
        close(pidfd);
        end_process(&other);
}

/* Between the calls as well: the process that is locked is another than the one that has ended. */
static void test_whoever_ends_between_two_calls_is_not_asked_again(void **state)
{
        const struct mover_checkpoint_options options = { .timeout_ms = 5000 };
        struct fixture *fixture = *state;
        struct process process, other;
        CUuuid uuid = start_process(&other);
        int pidfd;

        start_process(&process);
        pidfd = open_process(process.pid);
        start_mover_that_pauses_at(fixture, "mover.locked");
        assert_int_equal(mover_checkpoint(fixture->mover, other.pid, pidfd,
                                          MOVER_CHECKPOINT_SUSPEND, &options, on_done, fixture),
                         0);
        await_pause("mover.locked");
        kill_process(&process);
        end_pause("mover.locked");
        await_done(fixture, 1);
        assert_int_equal(fixture->done.error, -ESRCH);
        assert_int_equal(checkpoint(fixture, other.pid, MOVER_CHECKPOINT_STATE), 0);
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_LOCKED);
        assert_int_equal(checkpoint(fixture, other.pid, MOVER_CHECKPOINT_RESUME), 0);
        assert_runs(&other, &uuid);
        close(pidfd);
        end_process(&other);
}

/* Needs the right to choose the number of a process. */
static void test_a_number_that_another_has_taken_is_not_mistaken(void **state)
{
        const struct mover_checkpoint_options options = { .timeout_ms = 5000 };
        struct fixture *fixture = *state;
        struct process process, other;
        bool is_taken;
        CUuuid uuid;

        start_process(&process);
        start_mover_that_pauses_at(fixture, "mover.asked");
        assert_int_equal(ask(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, &options), 0);
        await_pause("mover.asked");
        kill_process(&process);
        is_taken = start_process_as(&other, process.pid, &uuid);
        end_pause("mover.asked");
        await_done(fixture, 1);
        assert_int_equal(fixture->done.error, -ESRCH);
        if (!is_taken)
                skip();
        assert_int_equal(other.pid, process.pid);
        assert_runs(&other, &uuid);
        end_process(&other);
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
        const struct mover_checkpoint_options all = { 1, pairs, make_pairs(fixture, pairs), 0 };
        const struct mover_checkpoint_options one = { 1, pairs, 1, 0 };
        struct process process;
        CUuuid other = parse_uuid(fixture->devices[1].uuid);

        start_process(&process);
        start_mover(fixture, 1);
        assert_int_equal(ask(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, &all), -EINVAL);
        assert_int_equal(checkpoint(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND), 0);

        /* One pair is not all devices: refused by the driver, and tried again. */
        assert_int_equal(perform(fixture, ask(fixture, process.pid, MOVER_CHECKPOINT_RESUME, &one)),
                         -EIO);
        assert_string_equal(fixture->done.call, "cuCheckpointProcessRestore");
        assert_int_equal(fixture->done.process_state, CU_PROCESS_STATE_CHECKPOINTED);

        assert_int_equal(perform(fixture, ask(fixture, process.pid, MOVER_CHECKPOINT_RESUME, &all)),
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

        return perform(fixture, ask(fixture, pid, action, &options));
}

static void test_what_a_process_leaves_is_held_for_its_way_back(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct process process;
        CUuuid uuid = start_process(&process);

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_mover(fixture, 0);
        assert_int_equal(perform(fixture, mover_context(fixture->mover, true, on_done, fixture)),
                         0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_SUSPEND, CONTEXT), 0);
        assert_int_equal(fixture->done.bytes, CONTEXT); /* measured */
        assert_true(fixture->done.is_held);
        taken = take_all_but(0);
        assert_int_equal(do_with(fixture, process.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        assert_runs(&process, &uuid);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        end_process(&process);
}

static void test_a_restore_without_room_is_not_begun(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct process process;
        CUuuid uuid = start_process(&process);

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
        assert_runs(&process, &uuid);
        end_process(&process);
}

static void test_a_restore_that_runs_out_of_memory_is_told_as_a_loss(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct process process;

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_process(&process);
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
        assert_int_equal(perform(fixture, mover_context(fixture->mover, true, on_done, fixture)),
                         0);
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
        assert_int_equal(perform(fixture, mover_context(fixture->mover, false, on_done, fixture)),
                         -EBUSY);
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
        CLEANUP(fd_closep) int pidfd = open_process(pid);

        *answer = (struct answer){ 0 };
        assert_int_equal(mover_checkpoint(fixture->mover, pid, pidfd, MOVER_CHECKPOINT_RESUME,
                                          &options, on_answer, answer),
                         0);
}

static void test_what_is_let_go_for_a_restore_is_for_that_one_only(void **state)
{
        struct fixture *fixture = *state;
        struct process first, second;
        struct answer one, two, three = { 0 };
        CUmemGenericAllocationHandle taken;
        CUuuid uuid = start_process(&first);

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_process(&second);
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
        assert_int_equal(mover_context(fixture->mover, true, on_answer, &three), 0);
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
        assert_runs(&first, &uuid);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        assert_int_equal(do_with(fixture, second.pid, MOVER_CHECKPOINT_RESUME, CONTEXT), 0);
        assert_runs(&second, &uuid);
        end_process(&first);
        end_process(&second);
}

static void test_a_restore_whose_room_cannot_be_let_go_is_not_begun(void **state)
{
        struct fixture *fixture = *state;
        CUmemGenericAllocationHandle taken;
        struct process process;
        CUuuid uuid = start_process(&process);

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
        assert_runs(&process, &uuid);
        assert_int_equal(guest.cuMemRelease(taken), 0);
        end_process(&process);
}

/* It was sent first, and is dealt with last. */
static void test_who_lets_go_late_leaves_what_was_taken_since(void **state)
{
        struct fixture *fixture = *state;
        struct process process;
        CUuuid uuid = start_process(&process);
        uint64_t free_bytes;

        if (!getenv("TEST_SIMHOST"))
                skip();
        start_mover_that_pauses_at(fixture, "mover.hold-dropping");
        assert_int_equal(perform(fixture, mover_context(fixture->mover, true, on_done, fixture)),
                         0);
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
        assert_runs(&process, &uuid);
        end_process(&process);
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
                TEST(test_what_a_process_leaves_is_held_for_its_way_back),
                TEST(test_a_restore_without_room_is_not_begun),
                TEST(test_a_restore_that_runs_out_of_memory_is_told_as_a_loss),
                TEST(test_what_is_held_is_free_when_it_is_let_go_and_when_the_mover_ends),
                TEST(test_who_lets_go_late_leaves_what_was_taken_since),
                TEST(test_a_restore_whose_room_cannot_be_let_go_is_not_begun),
                TEST(test_what_is_let_go_for_a_restore_is_for_that_one_only),
        };

        if (argc == 2 && strcmp(argv[1], "guest") == 0)
                return run_guest();
        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
