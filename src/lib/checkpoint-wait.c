/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the states of processes, and waits for a state. */

#include <math.h>
#include <poll.h>

#include "base/clock.h"
#include "lib/checkpoint-handle.h"

int vgpu_checkpoint_get_state(struct vgpu_checkpoint *checkpoint,
                              enum vgpu_checkpoint_state *ret_state)
{
        struct checkpoint_wire_request request = { .action = CHECKPOINT_STATE };
        int r = checkpoint_ask(checkpoint, &request);

        if (r == 0)
                *ret_state = checkpoint->result[0].state;
        return r;
}

static bool is_in(struct vgpu_checkpoint *checkpoint, enum vgpu_checkpoint_state wanted)
{
        enum vgpu_checkpoint_state state;

        return vgpu_checkpoint_get_state(checkpoint, &state) == 0 && state == wanted;
}

bool vgpu_checkpoint_is_running(struct vgpu_checkpoint *checkpoint)
{
        return is_in(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
}

bool vgpu_checkpoint_is_locked(struct vgpu_checkpoint *checkpoint)
{
        return is_in(checkpoint, VGPU_CHECKPOINT_STATE_LOCKED);
}

bool vgpu_checkpoint_is_checkpointed(struct vgpu_checkpoint *checkpoint)
{
        return is_in(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
}

int vgpu_checkpoint_get_restore_thread(struct vgpu_checkpoint *checkpoint, pid_t *ret_thread)
{
        struct checkpoint_wire_request request = { .action = CHECKPOINT_THREAD };
        int r = checkpoint_ask(checkpoint, &request);

        if (r == 0)
                *ret_thread = checkpoint->result[0].restore_thread;
        return r;
}

static double now(void)
{
        return (double)clock_now(CLOCK_MONOTONIC) / NS_PER_S;
}

/* The driver tells nobody of a change: we look again, at first soon, then every 25 ms. */
#define LOOK_MS_MAX 25

/* Sleeps until it is time to look again, or the process ends. */
static void pause_between_looks(const struct vgpu_checkpoint *checkpoint, int *look_ms, double left)
{
        struct pollfd fd = { .fd = checkpoint->pidfd[0], .events = POLLIN };
        int timeout = *look_ms;

        if (left < timeout / 1000.0)
                timeout = (int)checkpoint_milliseconds(left);
        (void)poll(&fd, 1, timeout);
        if (*look_ms < LOOK_MS_MAX)
                (*look_ms)++;
}

static bool may_still_come(const struct vgpu_checkpoint *checkpoint, int r)
{
        return r == 0 || checkpoint->error.value.kind == VGPU_CHECKPOINT_ERROR_NO_CUDA;
}

int vgpu_checkpoint_wait(struct vgpu_checkpoint *checkpoint, enum vgpu_checkpoint_state state,
                         double timeout_seconds)
{
        double deadline = timeout_seconds < 0 ? INFINITY : now() + timeout_seconds;
        enum vgpu_checkpoint_state is = VGPU_CHECKPOINT_STATE_UNKNOWN;
        int look_ms = 1, r;

        if (isnan(timeout_seconds))
                return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_INVALID,
                                            "give seconds, or VGPU_CHECKPOINT_FOREVER",
                                            "timeout_seconds is not a number");
        for (;;) {
                r = vgpu_checkpoint_get_state(checkpoint, &is);
                if (!may_still_come(checkpoint, r))
                        return r;
                if (r == 0 && is == state)
                        return 0;
                if (r == 0 && is == VGPU_CHECKPOINT_STATE_FAILED)
                        return checkpoint_error_set(
                                &checkpoint->error, VGPU_CHECKPOINT_ERROR_LOST,
                                "the process can only be killed",
                                "process %d has failed: it will not be %s any more",
                                checkpoint->pid[0], vgpu_checkpoint_state_get_name(state));
                if (now() >= deadline)
                        break;
                pause_between_looks(checkpoint, &look_ms, deadline - now());
        }
        return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_TIMED_OUT, "",
                                    "process %d is not %s yet: it is %s", checkpoint->pid[0],
                                    vgpu_checkpoint_state_get_name(state),
                                    r < 0 ? "without CUDA" : vgpu_checkpoint_state_get_name(is));
}
