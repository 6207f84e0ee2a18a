/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An action applies to all processes of a group or to none.
 *
 * Steps away from running walk the group from its first process (the root of a tree, which feeds
 * the others) to the last; steps back to running walk it in reverse. A failed action is undone in
 * the reverse order. Undoing never locks: a process that runs again keeps running, because a lock
 * that nobody asked for is worse.
 */

#include "checkpoint/action.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "checkpoint/driver.h"
#include "checkpoint/hold.h"
#include "checkpoint/holder.h"
#include "checkpoint/memory.h"
#include "checkpoint/note.h"
#include "checkpoint/step.h"
#include "checkpoint/tree.h"

/* How long a process takes to die of its checkpoint, with a core dump perhaps. */
#define DEATH_MS 3000

static int for_each(struct job *job, int (*step)(struct job *job, int i))
{
        for (int i = 0; i < (int)job->answer.n_processes; i++)
                if (step(job, i) < 0)
                        return -1;
        return 0;
}

static int for_each_backwards(struct job *job, int (*step)(struct job *job, int i))
{
        for (int i = (int)job->answer.n_processes - 1; i >= 0; i--)
                if (step(job, i) < 0)
                        return -1;
        return 0;
}

static int walk_all(struct job *job, CUprocessState goal)
{
        for (int i = 0; i < (int)job->answer.n_processes; i++)
                if (step_walk(job, i, goal) < 0)
                        return -1;
        return 0;
}

/* The states of those from @first on; what has no CUDA is no part of a tree. */
static int read_states_of_tree(struct job *job, int first)
{
        for (int i = first; i < (int)job->answer.n_processes;) {
                if (step_read_state(job, i) == 0) {
                        i++;
                        continue;
                }
                if (job->answer.kind != VGPU_CHECKPOINT_ERROR_NO_CUDA && !job_is_dead(job, i, 0))
                        return -1;
                job->answer.kind = VGPU_CHECKPOINT_ERROR_NONE;
                job_drop(job, i);
        }
        return 0;
}

static int read_tree(struct job *job)
{
        int root = job->answer.n_processes ? job->answer.process[0].pid : 0;

        if (tree_add_children(job) < 0 || read_states_of_tree(job, 0) < 0)
                return -1;
        if (job->answer.n_processes > 0)
                return 0;
        return job_fail(job, -1, VGPU_CHECKPOINT_ERROR_NO_CUDA, "", CUDA_SUCCESS, "",
                        "no process below %d uses CUDA", root);
}

/*
 * Processes that came while we were locking the others. A locked process starts none that use its
 * context, but a new one may have come before, or below a process without CUDA.
 */
static int lock_newcomers(struct job *job)
{
        for (;;) {
                int n = (int)job->answer.n_processes;

                if (tree_add_children(job) < 0 || read_states_of_tree(job, n) < 0)
                        return -1;
                if ((int)job->answer.n_processes == n)
                        return 0;
                for (int i = n; i < (int)job->answer.n_processes; i++)
                        if (step_walk(job, i, CU_PROCESS_STATE_LOCKED) < 0)
                                return -1;
        }
}

static int lock_unless_checkpointed(struct job *job, int i)
{
        if (job->answer.process[i].state == CU_PROCESS_STATE_CHECKPOINTED)
                return 0;
        return step_walk(job, i, CU_PROCESS_STATE_LOCKED);
}

static int hold(struct job *job, int i)
{
        int pid = job->answer.process[i].pid;
        int r = holder_hold(pid, job->pidfd[i]);

        if (r == 0)
                return 0;
        return job_fail(
                job, i, VGPU_CHECKPOINT_ERROR_FAILED, "", CUDA_SUCCESS,
                r == -EPERM
                        ? "another program traces it (a debugger, strace?), or you may not trace it"
                        : "",
                "the threads of process %d cannot be stopped: %s", pid, strerrordesc_np(-r));
}

/* A locked process, before its checkpoint. */
static int prepare(struct job *job, int i)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];

        if (process->state != CU_PROCESS_STATE_LOCKED)
                return 0;
        if (memory_note(job, i) < 0)
                return -1;
        if (job->request->flags & CHECKPOINT_CAREFUL)
                return hold(job, i);
        if (job->request->flags & CHECKPOINT_FORCED || !hold_look(process->pid))
                return 0;
        return job_fail(
                job, i, VGPU_CHECKPOINT_ERROR_DANGEROUS, "", CUDA_SUCCESS,
                "use --careful, which stops the threads, or a vGPU and 'vgpu suspend'; --force tries the checkpoint as it is",
                "a thread of process %d keeps running in the driver although the process is locked, as cuCtxSynchronize does: the checkpoint would kill the process",
                process->pid);
}

static int suspend(struct job *job)
{
        if (for_each(job, lock_unless_checkpointed) < 0)
                return -1;
        if (job->request->flags & CHECKPOINT_WITH_CHILDREN && lock_newcomers(job) < 0)
                return -1;
        if (for_each(job, prepare) < 0)
                return -1;
        return walk_all(job, CU_PROCESS_STATE_CHECKPOINTED);
}

static int make_pairs(struct job *job)
{
        char problem[256];
        const char *call;
        CUresult code;

        if (job->request->n_pairs == 0)
                return 0;
        if (device_list_read(&job->devices, &call, &code) < 0)
                return job_fail(job, -1, VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, call, code, "",
                                "the devices cannot be read: %s answers %d", call, (int)code);
        if (pairs_make(&job->pairs, &job->devices, job->request->pair, job->request->n_pairs,
                       problem, sizeof(problem)) < 0)
                return job_fail(job, -1, VGPU_CHECKPOINT_ERROR_INVALID, "", CUDA_SUCCESS,
                                "give OLD=NEW, each an index, a UUID or the beginning of one", "%s",
                                problem);
        return 0;
}

static int restore_if_checkpointed(struct job *job, int i)
{
        if (job->answer.process[i].state != CU_PROCESS_STATE_CHECKPOINTED)
                return 0;
        return step_restore(job, i);
}

static int prepare_restores(struct job *job)
{
        if (make_pairs(job) < 0)
                return -1;
        return memory_check(job);
}

static int check_all(struct job *job, enum step step)
{
        for (int i = 0; i < (int)job->answer.n_processes; i++)
                if (step_check(job, i, step) < 0)
                        return -1;
        return 0;
}

static int restore(struct job *job)
{
        if (check_all(job, STEP_RESTORE) < 0 || prepare_restores(job) < 0)
                return -1;
        return for_each_backwards(job, step_restore);
}

static int unlock_or_restore(struct job *job, int i)
{
        return step_walk(job, i, CU_PROCESS_STATE_RUNNING);
}

static int resume(struct job *job)
{
        if (prepare_restores(job) < 0 || for_each_backwards(job, restore_if_checkpointed) < 0)
                return -1;
        return for_each_backwards(job, unlock_or_restore);
}

static int toggle(struct job *job)
{
        const struct checkpoint_wire_process *first = &job->answer.process[0];

        switch (first->state) {
        case CU_PROCESS_STATE_RUNNING:
                return suspend(job);
        case CU_PROCESS_STATE_CHECKPOINTED:
                return resume(job);
        default:
                return job_fail(job, 0, VGPU_CHECKPOINT_ERROR_WRONG_STATE, "", CUDA_SUCCESS,
                                "use suspend or resume",
                                "process %d is neither running nor checkpointed", first->pid);
        }
}

static int lock(struct job *job)
{
        if (check_all(job, STEP_LOCK) < 0 || for_each(job, step_lock) < 0)
                return -1;
        return job->request->flags & CHECKPOINT_WITH_CHILDREN ? lock_newcomers(job) : 0;
}

static int checkpoint(struct job *job)
{
        if (check_all(job, STEP_CHECKPOINT) < 0 || for_each(job, prepare) < 0)
                return -1;
        return for_each(job, step_checkpoint);
}

static int unlock(struct job *job)
{
        if (check_all(job, STEP_UNLOCK) < 0)
                return -1;
        return for_each_backwards(job, step_unlock);
}

static int read_threads(struct job *job)
{
        return for_each(job, step_read_thread);
}

static int no_more(struct job *job)
{
        (void)job;
        return 0;
}

static void undo(struct job *job);

/* A former helper of ours died in the middle: its request is undone, and was answered by others. */
static int undo_former(struct job *job)
{
        for (uint32_t i = 0; i < job->answer.n_processes; i++)
                job->answer.process[i].state_before = job->request->goal[i];
        undo(job);
        return 0;
}

static int (*const actions[CHECKPOINT_ACTIONS])(struct job *job) = {
        [CHECKPOINT_STATE] = no_more,   [CHECKPOINT_THREAD] = read_threads,
        [CHECKPOINT_LOCK] = lock,       [CHECKPOINT_CHECKPOINT] = checkpoint,
        [CHECKPOINT_RESTORE] = restore, [CHECKPOINT_UNLOCK] = unlock,
        [CHECKPOINT_SUSPEND] = suspend, [CHECKPOINT_RESUME] = resume,
        [CHECKPOINT_TOGGLE] = toggle,   [CHECKPOINT_UNDO] = undo_former,
};

/* Towards running only: from checkpointed by a restore, from locked by an unlock. */
static void undo_one(struct job *job, int i)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];
        int before = process->state_before;

        if (before < 0 || step_read_state(job, i) < 0 || process->state == before)
                return;
        if (before == CU_PROCESS_STATE_CHECKPOINTED && process->state == CU_PROCESS_STATE_LOCKED)
                (void)step_checkpoint(job, i);
        else if (process->state == CU_PROCESS_STATE_CHECKPOINTED && memory_check(job) < 0)
                return; /* as it is, it can still be restored later */
        else if (before < process->state && step_walk(job, i, (CUprocessState)before) < 0)
                (void)step_walk(job, i,
                                (CUprocessState)before); /* once more: it may have been busy */
}

static void undo(struct job *job)
{
        job->is_undoing = true;
        for (int i = (int)job->answer.n_processes - 1; i >= 0; i--)
                undo_one(job, i);
}

static void call_lost(struct job *job, int i, const char *how)
{
        struct checkpoint_wire_answer *answer = &job->answer;
        char first[sizeof(answer->message)];

        if (answer->kind == VGPU_CHECKPOINT_ERROR_LOST)
                return;
        answer->kind = VGPU_CHECKPOINT_ERROR_LOST;
        answer->pid = answer->process[i].pid;
        memcpy(first, answer->message, sizeof(first));
        snprintf(answer->message, sizeof(answer->message), "process %d %s, after this: %.440s",
                 answer->pid, how, first);
}

static void call_left(struct job *job, int i)
{
        struct checkpoint_wire_answer *answer = &job->answer;
        const struct checkpoint_wire_process *process = &answer->process[i];

        answer->is_undone = false;
        snprintf(answer->hint, sizeof(answer->hint),
                 "process %d is left %s: 'vgpu checkpoint resume %d' continues it", process->pid,
                 checkpoint_state_name(process->state), process->pid);
}

/* How did it end for process @i? */
static void conclude_one(struct job *job, int i)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];

        if (process->state_before < 0)
                return; /* never touched */
        if (step_read_state(job, i) < 0) {
                job->answer.is_undone = false;
                call_lost(job, i,
                          job_is_dead(job, i, DEATH_MS) ? "died" : "cannot be reached any more");
        } else if (process->state == CU_PROCESS_STATE_FAILED) {
                job->answer.is_undone = false;
                call_lost(job, i, "has failed beyond repair");
        } else if (process->state > CU_PROCESS_STATE_FAILED &&
                   process->state != process->state_before) {
                job->answer.is_undone = false; /* an operation whose caller has died in it */
                call_lost(job, i, "is stuck in the driver");
        } else if (process->state != process->state_before) {
                call_left(job, i);
        }
}

static void conclude(struct job *job)
{
        job->answer.is_undone = job->answer.kind != VGPU_CHECKPOINT_ERROR_LOST;
        job->is_undoing = true; /* what is found now is not the first failure */
        for (int i = 0; i < (int)job->answer.n_processes; i++)
                conclude_one(job, i);
}

static bool is_known(const struct checkpoint_wire_request *request)
{
        return request->action > 0 && request->action < CHECKPOINT_ACTIONS &&
               request->n_processes <= CHECKPOINT_PROCESSES_MAX &&
               request->n_pairs <= CHECKPOINT_PAIRS_MAX;
}

static int begin(struct job *job, const int *pidfds, size_t n_pidfds)
{
        const struct checkpoint_wire_request *request = job->request;
        char problem[256];

        for (size_t i = 0; i < n_pidfds; i++)
                if (job_add(job, request->pid[i], pidfds[i]) < 0)
                        return -1;
        if (driver_load(problem, sizeof(problem)) < 0)
                return job_fail(job, -1, VGPU_CHECKPOINT_ERROR_NO_DRIVER, "", CUDA_SUCCESS,
                                "install NVIDIA's driver, branch 570 or newer", "%s", problem);
        note_sweep();
        /*
         * CRIU's plugin asks for the thread of a process that it has stopped whole. That is
         * answered; the question for the state is not (measured: an error after 15 s).
         */
        if (request->action == CHECKPOINT_UNDO || request->action == CHECKPOINT_THREAD)
                return 0;
        if (request->flags & CHECKPOINT_WITH_CHILDREN)
                return read_tree(job);
        return for_each(job, step_read_state);
}

static bool is_reading(uint32_t action)
{
        return action == CHECKPOINT_STATE || action == CHECKPOINT_THREAD ||
               action == CHECKPOINT_UNDO;
}

void action_run(const struct checkpoint_wire_request *request, const int *pidfds, size_t n_pidfds,
                int socket, struct checkpoint_wire_answer *ret_answer)
{
        struct job job = { .socket = socket,
                           .request = request,
                           .deadline_ms =
                                   clock_now(CLOCK_MONOTONIC) / NS_PER_MS + request->timeout_ms,
                           .answer.header = { CHECKPOINT_WIRE_MAGIC, CHECKPOINT_ANSWER } };

        if (request->timeout_ms == CHECKPOINT_FOREVER_MS)
                job.deadline_ms = UINT64_MAX;
        if (!is_known(request) || n_pidfds != request->n_processes)
                (void)job_fail(&job, -1, VGPU_CHECKPOINT_ERROR_INVALID, "", CUDA_SUCCESS, "",
                               "library and helper are of different versions");
        else if (begin(&job, pidfds, n_pidfds) == 0 && actions[request->action](&job) < 0)
                undo(&job);
        if (job.answer.kind)
                conclude(&job);
        else if (!is_reading(request->action))
                for (int i = 0; i < (int)job.answer.n_processes; i++)
                        (void)step_read_state(&job, i);
        job.answer.is_holding = holder_check();
        *ret_answer = job.answer;
        job_deinit(&job);
}
