/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/holder.h"

#include <errno.h>
#include <stddef.h>

#include "checkpoint/driver.h"
#include "checkpoint/hold.h"
#include "wire/checkpoint.h"

/* For each thread to be found outside of the driver. */
#define LEAVE_MS 500

static struct hold holds[CHECKPOINT_PROCESSES_MAX];

static struct hold *find(pid_t pid)
{
        for (size_t i = 0; i < CHECKPOINT_PROCESSES_MAX; i++)
                if (holds[i].pid == pid)
                        return &holds[i];
        return NULL;
}

int holder_hold(pid_t pid)
{
        struct hold *hold = find(0);

        if (find(pid))
                return 0;
        return hold ? hold_begin(hold, pid, LEAVE_MS) : -E2BIG;
}

bool holder_check(void)
{
        bool is_holding = false;
        CUprocessState state;

        for (size_t i = 0; i < CHECKPOINT_PROCESSES_MAX; i++) {
                if (holds[i].pid == 0)
                        continue;
                if (driver.cuCheckpointProcessGetState(holds[i].pid, &state) == CUDA_SUCCESS &&
                    state != CU_PROCESS_STATE_RUNNING)
                        is_holding = true;
                else
                        hold_end(&holds[i]);
        }
        return is_holding;
}
