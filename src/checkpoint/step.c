/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each step announces its call to the library, makes the call, takes the time, and describes a
 * failure.
 *
 * A fault point stands before and behind each call, so that tests can kill a process there.
 */

#include "checkpoint/step.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/freezer.h"
#include "base/packet.h"
#include "base/process-stat.h"
#include "checkpoint/driver.h"
#include "checkpoint/meaning.h"
#include "checkpoint/memory.h"
#include "checkpoint/whereabouts.h"

/* The driver gives up on a process a little before it has ended. */
#define DEATH_MS 300

static CUresult call_lock(struct job *job, int i)
{
        CUcheckpointLockArgs args = { 0 }; /* a time-out of 0 waits for ever */
        uint64_t now_ms = clock_now(CLOCK_MONOTONIC) / NS_PER_MS, left_ms;

        if (job->deadline_ms != UINT64_MAX) {
                left_ms = job->deadline_ms > now_ms ? job->deadline_ms - now_ms : 1;
                args.timeoutMs = left_ms < UINT32_MAX ? (unsigned int)left_ms : UINT32_MAX;
        }
        return JOB_CALL(job, i, cuCheckpointProcessLock, &args);
}

static CUresult call_checkpoint(struct job *job, int i)
{
        CUcheckpointCheckpointArgs args = { 0 };

        return JOB_CALL(job, i, cuCheckpointProcessCheckpoint, &args);
}

/* Pairs without a count, or a count without pairs, would crash us. */
static CUresult call_restore(struct job *job, int i)
{
        CUcheckpointRestoreArgs args = { 0 };

        if (job->pairs.n > 0 && !job->is_undoing) {
                args.gpuPairs = job->pairs.pair;
                args.gpuPairsCount = job->pairs.n;
        }
        return JOB_CALL(job, i, cuCheckpointProcessRestore, &args);
}

static CUresult call_unlock(struct job *job, int i)
{
        CUcheckpointUnlockArgs args = { 0 };

        return JOB_CALL(job, i, cuCheckpointProcessUnlock, &args);
}

static const struct {
        const char *call;
        const char *before, *behind; /* fault points */
        CUresult (*run)(struct job *job, int i);
        size_t time;
        CUprocessState from, goal;
        const char *name; /* follows "can be" */
        bool leads_away;  /* from running */
} steps[] = {
        [STEP_LOCK] = { "cuCheckpointProcessLock", "checkpointer.lock", "checkpointer.locked",
                        call_lock, offsetof(struct checkpoint_wire_process, lock_ns),
                        CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED, "locked", true },
        [STEP_CHECKPOINT] = { "cuCheckpointProcessCheckpoint", "checkpointer.checkpoint",
                              "checkpointer.checkpointed", call_checkpoint,
                              offsetof(struct checkpoint_wire_process, checkpoint_ns),
                              CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED,
                              "checkpointed", true },
        [STEP_RESTORE] = { "cuCheckpointProcessRestore", "checkpointer.restore",
                           "checkpointer.restored", call_restore,
                           offsetof(struct checkpoint_wire_process, restore_ns),
                           CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED, "restored",
                           false },
        [STEP_UNLOCK] = { "cuCheckpointProcessUnlock", "checkpointer.unlock",
                          "checkpointer.unlocked", call_unlock,
                          offsetof(struct checkpoint_wire_process, unlock_ns),
                          CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING, "unlocked", false },
};

/* For who would have to find it again. */
static uint64_t get_start(const struct job *job, int i)
{
        struct process_stat stat;

        if (process_stat_read(&stat, job->answer.process[i].pid) < 0 || job_is_dead(job, i, 0))
                return 0;
        return stat.start;
}

/*
 * A call may never return (measured: of a process with a pool in host memory), and say nothing. Longer than the
 * time-out and as long again as the driver was ever seen to take, no call is waited for.
 */
#define CALL_LEAST_MS     5000u
#define CALL_BYTES_PER_MS ((uint64_t)(1 << 30) / 1000)
#define BYTES_UNKNOWN     ((uint64_t)256 << 30)

static uint64_t find_most_ms(const struct job *job, int i, const char *call)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];
        bool is_moving = strcmp(call, steps[STEP_CHECKPOINT].call) == 0 ||
                         strcmp(call, steps[STEP_RESTORE].call) == 0;
        uint64_t bytes = process->bytes > 0 ? process->bytes : BYTES_UNKNOWN;

        if (job->deadline_ms == UINT64_MAX)
                return 0;
        return job->request->timeout_ms + CALL_LEAST_MS +
               (is_moving ? bytes / CALL_BYTES_PER_MS : 0);
}

static void tell(const struct job *job, int i, const char *call)
{
        struct checkpoint_wire_note note = { .header = { CHECKPOINT_WIRE_MAGIC, CHECKPOINT_NOTE },
                                             .pid = job->answer.process[i].pid,
                                             .state_before = job->answer.process[i].state_before,
                                             .start = get_start(job, i),
                                             .most_ms = find_most_ms(job, i, call) };

        snprintf(note.call, sizeof(note.call), "%s", call);
        if (job->socket >= 0) /* without a reader it is lost, and that is noticed elsewhere */
                (void)packet_send(job->socket, &note, sizeof(note), NULL, 0);
}

static int check_fault(struct job *job, int i, const char *point)
{
        if (!fault_point(point))
                return 0;
        return job_fail(job, i, VGPU_CHECKPOINT_ERROR_FAILED, point, CUDA_SUCCESS, "",
                        "the fault point %s failed process %d", point, job->answer.process[i].pid);
}

static int fail_ended(struct job *job, int i)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];

        return job_fail(job, i,
                        process->state_before < 0 ? VGPU_CHECKPOINT_ERROR_NO_PROCESS
                                                  : VGPU_CHECKPOINT_ERROR_LOST,
                        "", CUDA_SUCCESS, "", "process %d has ended", process->pid);
}

static int fail(struct job *job, int i, const char *call, CUresult code)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];
        int patience = code == CUDA_ERROR_OPERATING_SYSTEM && !job->is_undoing ? DEATH_MS : 0;
        struct meaning meaning;

        if (code == JOB_NOT_ASKED)
                return fail_ended(job, i);
        meaning = meaning_find(call, code, process->pid, job_is_dead(job, i, patience),
                               process->state_before);

        return job_fail(job, i, meaning.kind, call, code, meaning.hint, "process %d %s: %s: %d %s",
                        process->pid, meaning.text, call, (int)code, driver_error_name(code));
}

/* Who asked for something that stops a process, and is gone, can't be told how to start it again. */
static int check_caller(struct job *job, enum step step)
{
        if (job->is_undoing || !steps[step].leads_away || !job_caller_is_gone(job))
                return 0;
        return job_fail(job, -1, VGPU_CHECKPOINT_ERROR_FAILED, "", CUDA_SUCCESS, "",
                        "the caller is gone");
}

/*
 * The driver's thread in a process that is stopped or frozen can't answer. Measured: then not even the question for
 * its state returns, and no time-out of a lock passes.
 */
static int check_halted(struct job *job, int i)
{
        int pid = job->answer.process[i].pid;
        char folder[PATH_MAX];
        struct process_stat stat;

        if (process_stat_read(&stat, pid) < 0 || stat.state == 'Z' || !whereabouts_has_driver(pid))
                return 0;
        if (stat.state == 'T')
                return job_fail(job, i, VGPU_CHECKPOINT_ERROR_WRONG_STATE, "", CUDA_SUCCESS,
                                "continue it first: kill -CONT",
                                "process %d is stopped by a signal: the driver could not reach it",
                                pid);
        if (!freezer_find(pid, folder))
                return 0;
        return job_fail(
                job, i, VGPU_CHECKPOINT_ERROR_WRONG_STATE, "", CUDA_SUCCESS,
                "thaw it first: docker unpause, podman unpause",
                "process %d is frozen (its container is paused): the driver could not reach it",
                pid);
}

static int fail_state(struct job *job, int i)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];

        if (process->state == CU_PROCESS_STATE_FAILED)
                return job_fail(job, i, VGPU_CHECKPOINT_ERROR_LOST, "", CUDA_SUCCESS,
                                "the process can only be killed",
                                "process %d has failed: the driver calls it beyond repair",
                                process->pid);
        return job_fail(job, i, VGPU_CHECKPOINT_ERROR_WRONG_STATE, "", CUDA_SUCCESS,
                        "somebody else checkpoints or restores it: try again when this has ended",
                        "process %d is busy: the driver says state %d", process->pid,
                        process->state);
}

/* The driver would refuse it, too, with this code; but of a group we must know before the first is touched. */
int step_check(struct job *job, int i, enum step step)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];

        if (process->state == (int32_t)steps[step].from)
                return 0;
        if (process->state < 0 || process->state > CU_PROCESS_STATE_CHECKPOINTED)
                return fail_state(job, i);
        return job_fail(job, i, VGPU_CHECKPOINT_ERROR_WRONG_STATE, steps[step].call,
                        CUDA_ERROR_ILLEGAL_STATE, "suspend and resume work from any state",
                        "process %d is %s; only a %s one can be %s", process->pid,
                        checkpoint_state_name(process->state),
                        checkpoint_state_name((int)steps[step].from), steps[step].name);
}

static int run_step(struct job *job, int i, enum step step)
{
        struct checkpoint_wire_process *process = &job->answer.process[i];
        uint64_t start, *time = (uint64_t *)(void *)((char *)process + steps[step].time);
        CUresult code;

        if (check_caller(job, step) < 0 || check_halted(job, i) < 0 || step_check(job, i, step) < 0)
                return -1;
        tell(job, i, steps[step].call);
        if (check_fault(job, i, steps[step].before) < 0)
                return -1;
        start = clock_now(CLOCK_MONOTONIC);
        code = steps[step].run(job, i);
        *time += clock_now(CLOCK_MONOTONIC) - start;
        tell(job, i, "");
        if (code != CUDA_SUCCESS)
                return fail(job, i, steps[step].call, code);

        process->state = (int32_t)steps[step].goal;
        if (check_fault(job, i, steps[step].behind) < 0)
                return -1;
        return check_caller(job, step);
}

int step_lock(struct job *job, int i)
{
        return run_step(job, i, STEP_LOCK);
}

int step_checkpoint(struct job *job, int i)
{
        return run_step(job, i, STEP_CHECKPOINT);
}

int step_restore(struct job *job, int i)
{
        int r = run_step(job, i, STEP_RESTORE);

        if (job->answer.process[i].state == CU_PROCESS_STATE_LOCKED)
                memory_forget(job, i);
        return r;
}

int step_unlock(struct job *job, int i)
{
        return run_step(job, i, STEP_UNLOCK);
}

int step_read_state(struct job *job, int i)
{
        struct checkpoint_wire_process *process = &job->answer.process[i];
        CUprocessState state;
        CUresult code;

        if (check_halted(job, i) < 0)
                return -1;
        tell(job, i, "cuCheckpointProcessGetState");
        code = JOB_CALL(job, i, cuCheckpointProcessGetState, &state);
        tell(job, i, "");
        if (code != CUDA_SUCCESS) {
                process->state = CHECKPOINT_NO_STATE;
                return fail(job, i, "cuCheckpointProcessGetState", code);
        }
        process->state = (int32_t)state;
        if (process->state_before == CHECKPOINT_NO_STATE)
                process->state_before = process->state;
        return 0;
}

int step_read_thread(struct job *job, int i)
{
        struct checkpoint_wire_process *process = &job->answer.process[i];
        CUresult code;
        int thread = 0;

        tell(job, i, "cuCheckpointProcessGetRestoreThreadId");
        code = JOB_CALL(job, i, cuCheckpointProcessGetRestoreThreadId, &thread);
        tell(job, i, "");
        if (code != CUDA_SUCCESS)
                return fail(job, i, "cuCheckpointProcessGetRestoreThreadId", code);
        process->thread = thread;
        return 0;
}

/* The next step from a state (row) to a goal (column); NULL: is there. */
static int (*const ways[3][3])(struct job *job, int i) = {
        [CU_PROCESS_STATE_RUNNING] = { NULL, step_lock, step_lock },
        [CU_PROCESS_STATE_LOCKED] = { step_unlock, NULL, step_checkpoint },
        [CU_PROCESS_STATE_CHECKPOINTED] = { step_restore, step_restore, NULL },
};

int step_walk(struct job *job, int i, CUprocessState goal)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];

        while (process->state != (int32_t)goal) {
                if (process->state < 0 || process->state > CU_PROCESS_STATE_CHECKPOINTED)
                        return fail_state(job, i);
                if (ways[process->state][goal](job, i) < 0)
                        return -1;
        }
        return 0;
}
