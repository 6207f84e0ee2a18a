/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/join.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "gate/agent.h"
#include "gate/child.h"
#include "gate/ending.h"
#include "gate/entry.h"
#include "gate/link.h"
#include "gate/log.h"
#include "gate/visible.h"
#include "gate/wait.h"

static struct {
        struct wait_lock lock; /* by the thread that initialises; the manager may answer late */
        bool is_member;
        bool is_initialized; /* the driver is, by this process or by the one that it was forked from */
} join;

static CUresult join_locked(void)
{
        const struct link_report report = { GATE_STATE_OPEN, agent_describe };
        struct gate_welcome welcome;
        char text[GATE_TEXT_MAX];
        CLEANUP(fd_closep) int socket = -1;
        int r;

        ending_watch(); /* it may wait for long */
        socket = link_join(&report, &welcome, text);
        if (socket < 0) {
                if (socket == -ECANCELED)
                        return CUDA_ERROR_DEINITIALIZED;
                log_to_user("this process cannot use its vGPU: %s", text);
                return socket == -EACCES ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_SYSTEM_NOT_READY;
        }
        visible_show(&welcome);
        (void)visible_tell(socket); /* what does not arrive is told when we join again */
        r = agent_start(TAKE_FD(socket));
        if (r < 0) {
                log_to_user("this process cannot use its vGPU: no thread for it (%s)",
                            strerrordesc_np(-r));
                return CUDA_ERROR_SYSTEM_NOT_READY;
        }
        join.is_member = true;
        log_write("joined, slot %u, %u devices, the first %s", welcome.slot, welcome.n_devices,
                  welcome.device_uuid[0]);
        return CUDA_SUCCESS;
}

/* Other threads that initialise at the same time wait for the outcome. A handler that interrupts the wait cannot. */
static CUresult ensure_member(void)
{
        CUresult result = CUDA_SUCCESS;
        struct wait_hold hold;
        int r;

        r = wait_lock(&join.lock, &hold);
        if (r < 0)
                return r == -EDEADLK ? CUDA_ERROR_SYSTEM_NOT_READY : CUDA_ERROR_DEINITIALIZED;
        if (!join.is_member && !join.is_initialized && link_is_wanted())
                result = join_locked();
        if (!join.is_initialized)
                visible_prepare();
        wait_unlock(&hold);
        return result;
}

static void settle(CUresult result)
{
        struct wait_hold hold;
        int n;

        if (wait_lock(&join.lock, &hold) < 0)
                return;
        if (!join.is_initialized)
                visible_settle();
        if (!join.is_initialized && result == CUDA_SUCCESS &&
            DRIVER(cuDeviceGetCount)(&n) == CUDA_SUCCESS)
                visible_correct(n);
        join.is_initialized |= result == CUDA_SUCCESS;
        wait_unlock(&hold);
}

CUresult our_cuInit(unsigned int flags)
{
        CUresult result = ensure_member();

        if (result != CUDA_SUCCESS)
                return result;
        if (fault_point("gate-joined"))
                return CUDA_ERROR_UNKNOWN;
        result = DRIVER(cuInit)(flags);
        settle(result);
        return result;
}

void join_forget(void)
{
        join.lock = (struct wait_lock){ NULL };
        join.is_member = false;
}
