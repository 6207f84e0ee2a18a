/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/checkpoint.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/size.h"
#include "mover/driver.h"
#include "mover/process-call.h"

/* A restore begins so often with a hold that is found taken when it is let go; the last time it is not looked. */
#define RESTORE_TRIES 3

#define LOOK_NS 1000000

/* The process that is meant, and what is to be done with it. */
struct target {
        const struct mover_checkpoint *request;
        struct process_target process;
};

static int get_state(const struct target *target, CUprocessState *ret_state,
                     struct mover_done *done)
{
        return process_get_state(&target->process, ret_state, done);
}

/*
 * The driver's own thread in the process ends a step that was begun by a mover that has died since: then
 * the step is not allowed any more, and is done.
 */
static int settle(int r, const struct target *target, CUprocessState goal, struct mover_done *done)
{
        struct mover_done ignored = { 0 };
        CUprocessState state;

        if (r == 0 || done->driver_code != CUDA_ERROR_ILLEGAL_STATE ||
            get_state(target, &state, &ignored) < 0 || state != goal)
                return r;
        driver_forget(done);
        return 0;
}

static int lock(const struct target *target, struct mover_done *done)
{
        uint32_t ms = target->request->timeout_ms;
        uint64_t start = clock_now(CLOCK_MONOTONIC);
        int r = process_lock(&target->process, ms ? ms : 1, done); /* 0 would wait for ever */

        done->lock_ns = clock_now(CLOCK_MONOTONIC) - start;
        return r < 0 && done->driver_code == CUDA_ERROR_NOT_READY ? -ETIMEDOUT : r;
}

static int unlock(const struct target *target, struct mover_done *done)
{
        uint64_t start = clock_now(CLOCK_MONOTONIC);
        int r = process_unlock(&target->process, done);

        done->lock_ns = clock_now(CLOCK_MONOTONIC) - start;
        return settle(r, target, CU_PROCESS_STATE_RUNNING, done);
}

static int checkpoint(const struct target *target, struct mover_done *done)
{
        uint64_t start = clock_now(CLOCK_MONOTONIC);
        int r = process_checkpoint(&target->process, done);

        done->checkpoint_ns = clock_now(CLOCK_MONOTONIC) - start;
        return settle(r, target, CU_PROCESS_STATE_CHECKPOINTED, done);
}

static int restore_once(const struct target *target, struct mover_done *done)
{
        const struct mover_checkpoint *request = target->request;
        int r = process_restore(&target->process, request->pair, request->n_pairs, done);

        return settle(r, target, CU_PROCESS_STATE_LOCKED, done);
}

/* A refusal of the driver before it does anything leaves the process as it was. */
static bool was_refused(const struct mover_done *done)
{
        return done->driver_code == CUDA_ERROR_INVALID_VALUE ||
               done->driver_code == CUDA_ERROR_ILLEGAL_STATE ||
               done->driver_code == CUDA_ERROR_NOT_INITIALIZED;
}

/* The second time shows whether the first has lost the process: then no restore succeeds any more. */
static int restore(const struct target *target, struct mover_done *done)
{
        uint64_t start = clock_now(CLOCK_MONOTONIC);
        struct mover_done again = { 0 };
        int r = restore_once(target, done);

        if (r < 0 && r != -ESRCH && r != -EINPROGRESS && !was_refused(done)) {
                r = restore_once(target, &again);
                if (r == 0)
                        driver_forget(done);
                else if (r != -EINPROGRESS)
                        r = -EUCLEAN;
        }
        done->checkpoint_ns = clock_now(CLOCK_MONOTONIC) - start;
        return r;
}

/* With what is lent of the margin. False: not known, for want of a context. */
static bool read_free(struct device *device, uint64_t *ret_bytes)
{
        struct mover_done ignored = { 0 };
        size_t bytes = 0, total;

        if (!device_enter_existing(device) ||
            DRIVER_CALL(&ignored, cuMemGetInfo_v2, &bytes, &total) < 0)
                return false;
        *ret_bytes = bytes;
        return true;
}

/*
 * The one checkpoint: from before the margin is lent until what it makes free is held nothing else of the mover takes any.
 */

/*
 * A process with too little for the call is never checkpointed again, so it is not asked. @ret_before: what was free right
 * before the call, behind the ends of others; UINT64_MAX: not known.
 */
static int checkpoint_with_claim(struct device *device, const struct target *target,
                                 uint64_t *ret_before, struct mover_done *done)
{
        struct margin_claim claim;
        int r = device_claim(device, MARGIN_CHECKPOINT, 0, &claim);

        if (r < 0)
                return r;
        if (!read_free(device, ret_before))
                *ret_before = UINT64_MAX;
        (void)fault_point("mover.checkpointing"); /* to wait; it cannot fail */
        r = checkpoint(target, done);
        device_unclaim(device, &claim);
        return r;
}

static int checkpoint_and_hold(struct device *device, struct holds *holds,
                               const struct target *target, struct mover_done *done)
{
        const struct mover_checkpoint *request = target->request;
        struct mover_done ignored = { 0 };
        uint64_t before, after;
        int r;

        r = checkpoint_with_claim(device, target, &before, done);
        if (r < 0)
                return r;
        (void)fault_point("mover.freed"); /* to kill or to wait; it cannot fail */
        done->bytes = read_free(device, &after) && after > before ? after - before : 0;
        done->is_held = hold_take_within(holds, device, request->pid, request->bytes,
                                         request->header.id, HOLD_WITHIN_MS, &ignored) == 0;
        return 0;
}

static int checkpoint_in_window(struct device *device, struct holds *holds,
                                const struct target *target, struct mover_done *done)
{
        int r;

        device_open_window(device, ROOM_FREEING);
        device_lend_margin(device);
        r = checkpoint_and_hold(device, holds, target, done);
        device_close_window(device, ROOM_FREEING);
        device_return_margin(device);
        return r;
}

/* The one restore: from before its hold is let go until the driver has answered nothing of the mover takes memory. */

/* More than that no spare helps against. */
#define THEFT_MAX (512 * MIB)

static void note_theft(struct device *device, uint64_t bytes)
{
        uint64_t seen = device->theft;

        if (bytes > THEFT_MAX)
                bytes = THEFT_MAX;
        while (bytes > seen && !atomic_compare_exchange_weak(&device->theft, &seen, bytes))
                continue;
}

/*
 * With a spare as large as the largest theft, where there is room for that at once: with windows open in other movers
 * nothing is waited for without bound.
 */
static int take_hold(struct device *device, struct holds *holds,
                     const struct mover_checkpoint *request, struct mover_done *done)
{
        uint64_t spare = device->theft;
        struct mover_done ignored = { 0 };

        if (spare > 0 && request->bytes > 0 && request->bytes < UINT64_MAX - spare &&
            hold_take(holds, device, request->pid, request->bytes + spare, request->header.id, 0,
                      &ignored) == 0)
                return 0;
        return hold_take(holds, device, request->pid, request->bytes, request->header.id,
                         HOLD_WITHIN_MS, done);
}

/* The driver may be late to tell what we have just let go. Where it cannot be asked, there is. */
static bool has_room(struct device *device, uint64_t bytes)
{
        const struct timespec moment = { .tv_nsec = LOOK_NS };
        uint64_t until_ns = clock_now(CLOCK_MONOTONIC) + MARGIN_LATE_NS, free_bytes;

        while (read_free(device, &free_bytes)) {
                if (free_bytes >= bytes)
                        return true;
                if (clock_now(CLOCK_MONOTONIC) >= until_ns) {
                        note_theft(device, bytes - free_bytes);
                        return false;
                }
                (void)nanosleep(&moment, NULL);
        }
        return true;
}

/* Part of the hold; -EAGAIN: nothing was asked of the driver, for a program outside has taken some of it. */
static int restore_in_window(struct device *device, struct holds *holds,
                             const struct target *target, bool is_last, struct mover_done *done)
{
        const struct mover_checkpoint *request = target->request;
        struct margin_claim claim;
        int r;

        device_open_window(device, ROOM_RESTORING);
        (void)device_claim(device, MARGIN_RESTORE, hold_get(holds, request->pid), &claim);
        r = hold_drop(holds, request->pid, request->header.id, done);
        (void)fault_point("mover.restoring"); /* to kill or to wait: there is no way back */
        if (r == 0 && !is_last && !has_room(device, request->bytes))
                r = -EAGAIN;
        if (r == 0)
                r = restore(target, done);
        device_unclaim(device, &claim);
        device_close_window(device, ROOM_RESTORING);
        return r;
}

/*
 * A hold that was taken again is memory, whatever the driver says of it a moment later: so the last time none asks
 * how much is free.
 */
static int restore_from_hold(struct device *device, struct holds *holds,
                             const struct target *target, struct mover_done *done)
{
        const struct mover_checkpoint *request = target->request;
        int r = -EAGAIN;

        for (int i = 1; i <= RESTORE_TRIES && r == -EAGAIN; i++) {
                r = take_hold(device, holds, request, done);
                if (r == 0)
                        r = driver_fault_point(done, "mover.held");
                if (r < 0)
                        return r == -ENOMEM ? -ENOSPC : r;
                r = restore_in_window(device, holds, target, i == RESTORE_TRIES, done);
        }
        return r;
}

/* A margin that is kept leaves no call behind, and loses no process. */
static int restore_with_room(struct device *device, struct holds *holds,
                             const struct target *target, struct mover_done *done)
{
        int r;

        device_lend_margin(device);
        r = restore_from_hold(device, holds, target, done);
        device_return_margin(device);
        return r;
}

/* Back to a running process, as far as the driver lets us; what failed first is what is told. */
static void undo(struct device *device, struct holds *holds, const struct target *target)
{
        struct mover_done ignored = { 0 };
        CUprocessState state;

        if (get_state(target, &state, &ignored) < 0)
                return;
        if (state == CU_PROCESS_STATE_CHECKPOINTED &&
            restore_with_room(device, holds, target, &ignored) < 0)
                return;
        if (state != CU_PROCESS_STATE_RUNNING)
                (void)unlock(target, &ignored);
}

static int suspend_from(struct device *device, struct holds *holds, const struct target *target,
                        CUprocessState state, struct mover_done *done)
{
        int r = 0;

        if (state == CU_PROCESS_STATE_RUNNING) {
                r = lock(target, done);
                if (r < 0)
                        return r;
                r = driver_fault_point(done, "mover.locked");
        }
        if (r == 0 && state != CU_PROCESS_STATE_CHECKPOINTED)
                r = checkpoint_in_window(device, holds, target, done);
        if (r == 0)
                r = driver_fault_point(done, "mover.checkpointed");
        if (r < 0)
                undo(device, holds, target);
        return r;
}

static int resume_from(struct device *device, struct holds *holds, const struct target *target,
                       CUprocessState state, struct mover_done *done)
{
        int r = 0;

        if (state == CU_PROCESS_STATE_CHECKPOINTED)
                r = restore_with_room(device, holds, target, done);
        else
                r = hold_drop(holds, target->request->pid, target->request->header.id, done);
        if (r == 0)
                r = driver_fault_point(done, "mover.restored");
        if (r == 0 && state != CU_PROCESS_STATE_RUNNING)
                r = unlock(target, done);
        if (r == 0)
                r = driver_fault_point(done, "mover.unlocked");
        return r;
}

static int act(struct device *device, struct holds *holds, const struct target *target,
               CUprocessState state, struct mover_done *done)
{
        if (state == CU_PROCESS_STATE_FAILED && target->request->action != MOVER_CHECKPOINT_STATE)
                return -EUCLEAN;

        switch (target->request->action) {
        case MOVER_CHECKPOINT_STATE:
                return 0;
        case MOVER_CHECKPOINT_SUSPEND:
                return suspend_from(device, holds, target, state, done);
        case MOVER_CHECKPOINT_RESUME:
                return resume_from(device, holds, target, state, done);
        default:
                return -EINVAL;
        }
}

int checkpoint_run(struct device *device, struct holds *holds,
                   const struct mover_checkpoint *request, int pidfd, struct mover_done *done)
{
        const struct target target = { request, { request->pid, pidfd, request->call_ms } };
        struct mover_done ignored = { 0 };
        CUprocessState state;
        int r;

        (void)fault_point("mover.asked"); /* to kill or to wait: nothing is done yet */
        done->process_state = -1;
        done->is_untouched = 1;
        if (request->pid <= 0 || request->n_pairs > MOVER_PAIRS_MAX ||
            (request->n_pairs > 0 && request->action != MOVER_CHECKPOINT_RESUME))
                return -EINVAL;
        if (!driver.cuCheckpointProcessGetState)
                return -ENOSYS;

        r = get_state(&target, &state, done);
        if (r == 0) {
                done->is_untouched = 0;
                r = act(device, holds, &target, state, done);
        }
        if (get_state(&target, &state, &ignored) == 0)
                done->process_state = (int32_t)state;
        if (r == -EUCLEAN)
                done->process_state = CU_PROCESS_STATE_FAILED;
        if (r < 0 && r != -EINVAL && process_has_ended(&target.process))
                r = -ESRCH;
        return r;
}
