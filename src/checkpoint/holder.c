/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "checkpoint/driver.h"
#include "checkpoint/hold.h"
#include "wire/checkpoint.h"

/* For each thread to be found outside of the driver. */
#define LEAVE_MS 500

static struct hold holds[CHECKPOINT_PROCESSES_MAX];
static int pidfds[CHECKPOINT_PROCESSES_MAX]; /* of those that hold something */

static bool has_ended(int pidfd)
{
        struct pollfd end = { .fd = pidfd, .events = POLLIN };

        return poll(&end, 1, 0) != 0;
}

static struct hold *find(pid_t pid)
{
        for (size_t i = 0; i < CHECKPOINT_PROCESSES_MAX; i++)
                if (holds[i].pid == pid)
                        return &holds[i];
        return NULL;
}

static void end(size_t i)
{
        hold_end(&holds[i]);
        pidfds[i] = fd_close(pidfds[i]);
}

/* A former one of that number has ended, and nobody has looked since. */
static void forget(pid_t pid)
{
        struct hold *hold = find(pid);

        if (hold && has_ended(pidfds[hold - holds]))
                end((size_t)(hold - holds));
}

int holder_hold(pid_t pid, int pidfd)
{
        CLEANUP(fd_closep) int own = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
        struct hold *hold;
        int r;

        if (own < 0)
                return -errno;
        forget(pid);
        if (find(pid))
                return 0;
        hold = find(0);
        if (!hold)
                return -E2BIG;
        if (has_ended(own))
                return -ESRCH;
        r = hold_begin(hold, pid, LEAVE_MS);
        if (r == 0 && has_ended(own)) { /* who knows who that was */
                hold_end(hold);
                r = -ESRCH;
        }
        if (r == 0)
                pidfds[hold - holds] = TAKE_FD(own);
        return r;
}

bool holder_check(void)
{
        bool is_holding = false;
        CUprocessState state;

        for (size_t i = 0; i < CHECKPOINT_PROCESSES_MAX; i++) {
                if (holds[i].pid == 0)
                        continue;
                if (!has_ended(pidfds[i]) &&
                    driver.cuCheckpointProcessGetState(holds[i].pid, &state) == CUDA_SUCCESS &&
                    state != CU_PROCESS_STATE_RUNNING)
                        is_holding = true;
                else
                        end(i);
        }
        return is_holding;
}
