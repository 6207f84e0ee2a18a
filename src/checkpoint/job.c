/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/job.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "checkpoint/driver.h"

int job_fail(struct job *job, int i, enum vgpu_checkpoint_error_kind kind, const char *call,
             CUresult code, const char *hint, const char *message, ...)
{
        struct checkpoint_wire_answer *answer = &job->answer;
        va_list args;

        if (job->is_undoing || answer->kind)
                return -1;
        answer->kind = (int32_t)kind;
        answer->driver_code = (int32_t)code;
        answer->pid = i >= 0 ? answer->process[i].pid : 0;
        snprintf(answer->call, sizeof(answer->call), "%s", call);
        snprintf(answer->driver_name, sizeof(answer->driver_name), "%s", driver_error_name(code));
        snprintf(answer->driver_text, sizeof(answer->driver_text), "%s", driver_error_text(code));
        snprintf(answer->hint, sizeof(answer->hint), "%s", hint);
        va_start(args, message);
        vsnprintf(answer->message, sizeof(answer->message), message, args);
        va_end(args);
        return -1;
}

int job_add(struct job *job, int pid, int pidfd)
{
        struct checkpoint_wire_answer *answer = &job->answer;
        uint32_t n = answer->n_processes;

        if (n == CHECKPOINT_PROCESSES_MAX) {
                fd_close(pidfd);
                return job_fail(job, -1, VGPU_CHECKPOINT_ERROR_INVALID, "", CUDA_SUCCESS,
                                "handle parts of the tree one after another",
                                "more than %d processes that use CUDA", CHECKPOINT_PROCESSES_MAX);
        }
        answer->process[n] = (struct checkpoint_wire_process){ .pid = pid,
                                                               .state_before = CHECKPOINT_NO_STATE,
                                                               .state = CHECKPOINT_NO_STATE };
        job->pidfd[n] = pidfd;
        answer->n_processes++;
        return 0;
}

/* Before anything was done to it. */
void job_drop(struct job *job, int i)
{
        struct checkpoint_wire_answer *answer = &job->answer;
        size_t after = answer->n_processes - (size_t)i - 1;

        fd_close(job->pidfd[i]);
        memmove(&answer->process[i], &answer->process[i + 1], after * sizeof(answer->process[0]));
        memmove(&job->pidfd[i], &job->pidfd[i + 1], after * sizeof(job->pidfd[0]));
        answer->n_processes--;
}

void job_deinit(struct job *job)
{
        for (uint32_t i = 0; i < job->answer.n_processes; i++)
                job->pidfd[i] = fd_close(job->pidfd[i]);
}

bool job_read_devices(struct job *job)
{
        const char *call;
        CUresult code;

        return job->devices.n > 0 || device_list_read(&job->devices, &call, &code) == 0;
}

bool job_is_dead(const struct job *job, int i, int timeout_ms)
{
        struct pollfd fd = { .fd = job->pidfd[i], .events = POLLIN };

        return poll(&fd, 1, timeout_ms) > 0;
}

bool job_caller_is_gone(const struct job *job)
{
        struct pollfd fd = { .fd = job->socket, .events = POLLRDHUP };

        return job->socket >= 0 && poll(&fd, 1, 0) > 0;
}
