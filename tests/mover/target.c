/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* This program again, as a guest that waits with a context. */

int target_run_guest(void)
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

static CUuuid read_uuid(const struct target *process)
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
bool target_start_as(struct target *process, pid_t number, CUuuid *ret_uuid)
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

CUuuid target_start(struct target *process)
{
        CUuuid uuid;

        assert_true(target_start_as(process, 0, &uuid));
        return uuid;
}

static CUuuid ask_uuid(const struct target *process)
{
        assert_int_equal(write(process->input, "?", 1), 1);
        return read_uuid(process);
}

void target_end(struct target *process)
{
        int status;

        close(process->input);
        assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
        assert_int_equal(status, 0);
        close(process->output);
}

/* Of @pid; of this process, where there is none of that number. */
int target_open(pid_t pid)
{
        int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

        if (pidfd < 0)
                pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        assert_true(pidfd >= 0);
        return pidfd;
}

int target_ask(struct fixture *fixture, pid_t pid, enum mover_checkpoint_action action,
               const struct mover_checkpoint_options *options)
{
        CLEANUP(fd_closep) int pidfd = target_open(pid);

        return mover_checkpoint(fixture->mover, pid, pidfd, action, options, on_done, fixture);
}

int target_checkpoint(struct fixture *fixture, pid_t pid, enum mover_checkpoint_action action)
{
        const struct mover_checkpoint_options options = { .timeout_ms = 5000 };

        return perform(fixture, target_ask(fixture, pid, action, &options));
}

void target_assert_runs(const struct target *process, const CUuuid *uuid)
{
        CUuuid now = ask_uuid(process);

        assert_memory_equal(&now, uuid, sizeof(now));
}

static char fault_directory[] = "/tmp/test-mover-faults-XXXXXX";

void start_mover_that_pauses_at(struct fixture *fixture, const char *point)
{
        char fault[64];

        snprintf(fault, sizeof(fault), "%s=pause", point);
        assert_non_null(mkdtemp(fault_directory));
        setenv("OPENVGPU_FAULT_DIR", fault_directory, 1);
        start_mover_with(fixture, 0, "OPENVGPU_FAULT", fault);
        unsetenv("OPENVGPU_FAULT_DIR");
}

void await_pause(const char *point)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", fault_directory, point);
        for (int i = 0; i < 20000 && access(path, F_OK) < 0; i++)
                usleep(1000);
        assert_int_equal(access(path, F_OK), 0);
}

void end_pause(const char *point)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", fault_directory, point);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(fault_directory), 0);
        memcpy(strrchr(fault_directory, '-'), "-XXXXXX", strlen("-XXXXXX"));
}
