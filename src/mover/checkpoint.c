/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/checkpoint.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "mover/driver.h"

static int get_state(int pid, CUprocessState *ret_state, struct mover_done *done)
{
        return DRIVER_CALL(done, cuCheckpointProcessGetState, pid, ret_state);
}

/*
 * The driver's own thread in the process ends a step that was begun by a mover that has died since: then
 * the step is not allowed any more, and is done.
 */
static int settle(int r, int pid, CUprocessState goal, struct mover_done *done)
{
        struct mover_done ignored = { 0 };
        CUprocessState state;

        if (r == 0 || done->driver_code != CUDA_ERROR_ILLEGAL_STATE ||
            get_state(pid, &state, &ignored) < 0 || state != goal)
                return r;
        done->driver_code = 0;
        done->call[0] = '\0';
        return 0;
}

static int lock(const struct mover_checkpoint *request, struct mover_done *done)
{
        CUcheckpointLockArgs args = { .timeoutMs = request->timeout_ms };
        uint64_t start = clock_now(CLOCK_MONOTONIC);
        int r;

        if (args.timeoutMs == 0)
                args.timeoutMs = 1; /* 0 would wait for ever */

        r = DRIVER_CALL(done, cuCheckpointProcessLock, request->pid, &args);
        done->lock_ns = clock_now(CLOCK_MONOTONIC) - start;
        return r < 0 && done->driver_code == CUDA_ERROR_NOT_READY ? -ETIMEDOUT : r;
}

static int unlock(int pid, struct mover_done *done)
{
        CUcheckpointUnlockArgs args = { 0 };
        uint64_t start = clock_now(CLOCK_MONOTONIC);
        int r;

        r = DRIVER_CALL(done, cuCheckpointProcessUnlock, pid, &args);
        done->lock_ns = clock_now(CLOCK_MONOTONIC) - start;
        return settle(r, pid, CU_PROCESS_STATE_RUNNING, done);
}

static int checkpoint(int pid, struct mover_done *done)
{
        CUcheckpointCheckpointArgs args = { 0 };
        uint64_t start = clock_now(CLOCK_MONOTONIC);
        int r;

        r = DRIVER_CALL(done, cuCheckpointProcessCheckpoint, pid, &args);
        done->checkpoint_ns = clock_now(CLOCK_MONOTONIC) - start;
        return settle(r, pid, CU_PROCESS_STATE_CHECKPOINTED, done);
}

/* The wire's pairs are the driver's: two UUIDs of 16 bytes. NULL with a count would kill us. */
_Static_assert(sizeof(struct mover_pair) == sizeof(CUcheckpointGpuPair), "pairs are copied");

static int restore(const struct mover_checkpoint *request, struct mover_done *done)
{
        CUcheckpointGpuPair pairs[MOVER_PAIRS_MAX];
        CUcheckpointRestoreArgs args = { 0 };
        uint64_t start = clock_now(CLOCK_MONOTONIC);
        int r;

        if (request->n_pairs > 0) {
                memcpy(pairs, request->pair, request->n_pairs * sizeof(pairs[0]));
                args.gpuPairs = pairs;
                args.gpuPairsCount = request->n_pairs;
        }
        r = DRIVER_CALL(done, cuCheckpointProcessRestore, request->pid, &args);
        done->checkpoint_ns = clock_now(CLOCK_MONOTONIC) - start;
        return settle(r, request->pid, CU_PROCESS_STATE_LOCKED, done);
}

/* Back to a running process, as far as the driver lets us; what failed first is what is told. */
static void undo(const struct mover_checkpoint *request)
{
        struct mover_done ignored = { 0 };
        CUprocessState state;

        if (get_state(request->pid, &state, &ignored) < 0)
                return;
        if (state == CU_PROCESS_STATE_CHECKPOINTED && restore(request, &ignored) < 0)
                return;
        if (state != CU_PROCESS_STATE_RUNNING)
                (void)unlock(request->pid, &ignored);
}

static int suspend_from(const struct mover_checkpoint *request, CUprocessState state,
                        struct mover_done *done)
{
        int r = 0;

        if (state == CU_PROCESS_STATE_RUNNING) {
                r = lock(request, done);
                if (r < 0)
                        return r;
                r = driver_fault_point(done, "mover.locked");
        }
        if (r == 0 && state != CU_PROCESS_STATE_CHECKPOINTED)
                r = checkpoint(request->pid, done);
        if (r == 0)
                r = driver_fault_point(done, "mover.checkpointed");
        if (r < 0)
                undo(request);
        return r;
}

static int resume_from(const struct mover_checkpoint *request, CUprocessState state,
                       struct mover_done *done)
{
        int r = 0;

        if (state == CU_PROCESS_STATE_CHECKPOINTED)
                r = restore(request, done);
        if (r == 0)
                r = driver_fault_point(done, "mover.restored");
        if (r == 0 && state != CU_PROCESS_STATE_RUNNING)
                r = unlock(request->pid, done);
        if (r == 0)
                r = driver_fault_point(done, "mover.unlocked");
        return r;
}

static int act(const struct mover_checkpoint *request, CUprocessState state,
               struct mover_done *done)
{
        if (state == CU_PROCESS_STATE_FAILED && request->action != MOVER_CHECKPOINT_STATE)
                return -EUCLEAN;

        switch (request->action) {
        case MOVER_CHECKPOINT_STATE:
                return 0;
        case MOVER_CHECKPOINT_SUSPEND:
                return suspend_from(request, state, done);
        case MOVER_CHECKPOINT_RESUME:
                return resume_from(request, state, done);
        default:
                return -EINVAL;
        }
}

int checkpoint_run(const struct mover_checkpoint *request, struct mover_done *done)
{
        struct mover_done ignored = { 0 };
        CUprocessState state;
        int r;

        done->process_state = -1;
        if (request->pid <= 0 || request->n_pairs > MOVER_PAIRS_MAX ||
            (request->n_pairs > 0 && request->action != MOVER_CHECKPOINT_RESUME))
                return -EINVAL;
        if (!driver.cuCheckpointProcessGetState)
                return -ENOSYS;

        r = get_state(request->pid, &state, done);
        if (r == 0)
                r = act(request, state, done);
        if (get_state(request->pid, &state, &ignored) == 0)
                done->process_state = (int32_t)state;
        if (r < 0 && kill(request->pid, 0) < 0 && errno == ESRCH)
                r = -ESRCH;
        return r;
}
