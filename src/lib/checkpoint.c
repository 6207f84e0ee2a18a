/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handle of one or more processes. Each action on them is a request to the helper.
 *
 * If the helper dies in the middle (the driver crashed in it), another helper undoes what the first one
 * began. The notes of the first helper say how far it came.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process-stat.h"
#include "lib/checkpoint-handle.h"

DEFINE_CLEANUP(struct vgpu_checkpoint *, vgpu_checkpoint_free);

const char *vgpu_checkpoint_state_get_name(enum vgpu_checkpoint_state state)
{
        return checkpoint_state_name((int)state);
}

/* The process of thread @tid, in which the driver and pidfds know only the process. */
static int find_process(pid_t tid)
{
        CLEANUP(freep) char *line = NULL;
        char path[32];
        size_t room = 0;
        int pid = -ESRCH;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
        file = fopen(path, "re");
        if (!file)
                return -ESRCH;
        while (getline(&line, &room, file) > 0)
                if (sscanf(line, "Tgid: %d", &pid) == 1)
                        break;
        fclose(file);
        return pid;
}

int vgpu_checkpoint_add(struct vgpu_checkpoint *checkpoint, pid_t pid)
{
        int process, pidfd;

        if (pid <= 0)
                return -EINVAL;
        if (checkpoint->n == CHECKPOINT_PROCESSES_MAX)
                return -E2BIG;
        process = find_process(pid);
        if (process < 0)
                return process;
        for (size_t i = 0; i < checkpoint->n; i++)
                if (checkpoint->pid[i] == process)
                        return 0;
        pidfd = (int)syscall(SYS_pidfd_open, process, 0);
        if (pidfd < 0)
                return -errno;
        checkpoint->pid[checkpoint->n] = process;
        checkpoint->pidfd[checkpoint->n++] = pidfd;
        return 0;
}

int vgpu_checkpoint_new(struct vgpu_checkpoint **ret_checkpoint, pid_t pid)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        int r;

        checkpoint = calloc(1, sizeof(*checkpoint));
        if (!checkpoint)
                return -ENOMEM;
        checkpoint->helper = CHECKPOINT_HELPER_NONE;
        checkpoint_error_clear(&checkpoint->error);
        r = vgpu_checkpoint_add(checkpoint, pid);
        if (r < 0)
                return r;
        *ret_checkpoint = TAKE(checkpoint);
        return 0;
}

int vgpu_checkpoint_new_current(struct vgpu_checkpoint **ret_checkpoint)
{
        return vgpu_checkpoint_new(ret_checkpoint, getpid());
}

struct vgpu_checkpoint *vgpu_checkpoint_free(struct vgpu_checkpoint *checkpoint)
{
        if (!checkpoint)
                return NULL;
        checkpoint_helper_stop(&checkpoint->helper);
        for (size_t i = 0; i < checkpoint->n; i++)
                fd_close(checkpoint->pidfd[i]);
        free(checkpoint);
        return NULL;
}

pid_t vgpu_checkpoint_get_pid(const struct vgpu_checkpoint *checkpoint)
{
        return checkpoint->pid[0];
}

const struct vgpu_checkpoint_error *
vgpu_checkpoint_get_error(const struct vgpu_checkpoint *checkpoint)
{
        return &checkpoint->error.value;
}

const struct vgpu_checkpoint_process *const *
vgpu_checkpoint_get_processes(const struct vgpu_checkpoint *checkpoint, size_t *ret_n)
{
        *ret_n = checkpoint->n_results;
        return checkpoint->results;
}

static void take_results(struct vgpu_checkpoint *checkpoint,
                         const struct checkpoint_wire_answer *answer)
{
        checkpoint->n_results = answer->n_processes;
        for (uint32_t i = 0; i < answer->n_processes; i++) {
                const struct checkpoint_wire_process *from = &answer->process[i];

                checkpoint->results[i] = &checkpoint->result[i];
                checkpoint->result[i] = (struct vgpu_checkpoint_process){
                        .pid = from->pid,
                        .restore_thread = from->thread,
                        .state_before = (enum vgpu_checkpoint_state)from->state_before,
                        .state = (enum vgpu_checkpoint_state)from->state,
                        .lock_seconds = (double)from->lock_ns * 1e-9,
                        .checkpoint_seconds = (double)from->checkpoint_ns * 1e-9,
                        .restore_seconds = (double)from->restore_ns * 1e-9,
                        .unlock_seconds = (double)from->unlock_ns * 1e-9,
                        .bytes = from->bytes,
                };
        }
}

static int start_helper(struct vgpu_checkpoint *checkpoint)
{
        int r = checkpoint_helper_start(&checkpoint->helper);

        if (r == 0)
                return 0;
        return checkpoint_error_set(
                &checkpoint->error, VGPU_CHECKPOINT_ERROR_FAILED,
                r == -ENOENT ? "install all of OpenVGPU, or set OPENVGPU_LIB to "
                               "its folder lib/openvgpu"
                             : "",
                "the helper vgpu-checkpointer cannot be started: %s", strerrordesc_np(-r));
}

/* Of the process that the helper told of, and of no other that has its number by now. */
static int open_noted(pid_t pid, uint64_t start)
{
        CLEANUP(fd_closep) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        struct process_stat stat;

        if (pidfd < 0 || process_stat_read(&stat, pid) < 0 || stat.start != start)
                return -ESRCH;
        return TAKE_FD(pidfd);
}

/* Another helper brings back what the one that died had changed; not @except, of which the driver would tell nothing. */
static int undo(struct vgpu_checkpoint *checkpoint, const struct checkpoint_helper_notes *notes,
                pid_t except, struct checkpoint_wire_answer *answer)
{
        struct checkpoint_wire_request request = {
                .header = { CHECKPOINT_WIRE_MAGIC, CHECKPOINT_REQUEST }, .action = CHECKPOINT_UNDO
        };
        struct checkpoint_helper_notes ignored;
        int pidfds[CHECKPOINT_PROCESSES_MAX], pidfd, r;

        for (size_t i = 0; i < notes->n; i++) {
                if (notes->process[i].pid == except)
                        continue;
                pidfd = open_noted(notes->process[i].pid, notes->process[i].start);
                if (pidfd < 0)
                        continue;
                request.pid[request.n_processes] = notes->process[i].pid;
                request.goal[request.n_processes] = notes->process[i].state_before;
                pidfds[request.n_processes++] = pidfd;
        }
        r = request.n_processes > 0 ? start_helper(checkpoint) : 0;
        if (r == 0 && request.n_processes > 0)
                r = checkpoint_helper_ask(&checkpoint->helper, &request, pidfds, answer, &ignored);
        for (uint32_t i = 0; i < request.n_processes; i++)
                fd_close(pidfds[i]);
        return r == 0 && request.n_processes + (except > 0) < notes->n ? -ESRCH : r;
}

/* How a process has come through it: as it was, in another state, or lost. */
enum outcome { OUTCOME_UNDONE, OUTCOME_CHANGED, OUTCOME_LOST };

static enum outcome get_outcome(const struct checkpoint_wire_answer *answer)
{
        enum outcome outcome = OUTCOME_UNDONE;

        for (uint32_t i = 0; i < answer->n_processes; i++) {
                const struct checkpoint_wire_process *process = &answer->process[i];

                if (process->state_before < 0 || process->state == process->state_before)
                        continue;
                /* An operation that is still open has nobody any more who could complete it. */
                if (process->state < 0 || process->state >= VGPU_CHECKPOINT_STATE_FAILED)
                        return OUTCOME_LOST;
                outcome = OUTCOME_CHANGED;
        }
        return outcome;
}

static int fail_with_helper(struct vgpu_checkpoint *checkpoint,
                            const struct checkpoint_helper_notes *notes)
{
        static const char *const ends[] = {
                [OUTCOME_UNDONE] = ", and everything is as it was",
                [OUTCOME_CHANGED] = "",
                [OUTCOME_LOST] = ", and a process could not be brought back",
        };
        struct checkpoint_wire_answer answer = { 0 };
        enum outcome outcome =
                undo(checkpoint, notes, 0, &answer) < 0 ? OUTCOME_LOST : get_outcome(&answer);

        take_results(checkpoint, &answer);
        answer.kind = outcome == OUTCOME_LOST ? VGPU_CHECKPOINT_ERROR_LOST
                                              : VGPU_CHECKPOINT_ERROR_DRIVER_FAILED;
        answer.is_undone = outcome == OUTCOME_UNDONE;
        answer.pid = notes->pid;
        memcpy(answer.call, notes->call, sizeof(answer.call));
        snprintf(answer.message, sizeof(answer.message), "the helper died in %.47s on process %d%s",
                 *notes->call ? notes->call : "its start", notes->pid, ends[outcome]);
        snprintf(answer.hint, sizeof(answer.hint), "%s",
                 outcome == OUTCOME_UNDONE ? "" : "look with 'vgpu checkpoint state'");
        return checkpoint_error_set_answer(&checkpoint->error, &answer);
}

/* All others are as they were before it is told. */
static int fail_silent(struct vgpu_checkpoint *checkpoint,
                       const struct checkpoint_helper_notes *notes)
{
        struct checkpoint_wire_answer answer = { 0 };
        int r = undo(checkpoint, notes, notes->pid, &answer);

        take_results(checkpoint, &answer);
        answer.kind = VGPU_CHECKPOINT_ERROR_TIMED_OUT;
        answer.pid = notes->pid;
        answer.is_undone = false;
        memcpy(answer.call, notes->call, sizeof(answer.call));
        snprintf(answer.message, sizeof(answer.message),
                 "the driver does not answer for process %d: %.47s has not returned%s", notes->pid,
                 notes->call, r < 0 ? ", and another process could not be brought back" : "");
        snprintf(answer.hint, sizeof(answer.hint),
                 "end it, or look later with 'vgpu checkpoint state'");
        return checkpoint_error_set_answer(&checkpoint->error, &answer);
}

int checkpoint_ask(struct vgpu_checkpoint *checkpoint, struct checkpoint_wire_request *request)
{
        struct checkpoint_wire_answer answer;
        struct checkpoint_helper_notes notes;
        int r;

        checkpoint_error_clear(&checkpoint->error);
        checkpoint->n_results = 0;
        r = start_helper(checkpoint);
        if (r < 0)
                return r;
        request->header = (struct checkpoint_header){ CHECKPOINT_WIRE_MAGIC, CHECKPOINT_REQUEST };
        request->n_processes = (uint32_t)checkpoint->n;
        memcpy(request->pid, checkpoint->pid, sizeof(request->pid));
        r = checkpoint_helper_ask(&checkpoint->helper, request, checkpoint->pidfd, &answer, &notes);
        if (r == -ETIMEDOUT)
                return fail_silent(checkpoint, &notes);
        if (r < 0)
                return fail_with_helper(checkpoint, &notes);
        take_results(checkpoint, &answer);
        return answer.kind ? checkpoint_error_set_answer(&checkpoint->error, &answer) : 0;
}
