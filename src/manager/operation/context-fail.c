/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/context-fail.h"

#include <errno.h>

#include "abi/cuda.h"
#include "base/process-maps.h"
#include "daemon/process.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* The driver may fail on a process that is being killed, or by exec(), a little before the loop sees its end. */
static bool has_died(const struct guest *guest, const struct mover_done *done)
{
        uint64_t start_time;

        return done->error == -ESRCH || guest_is_replaced(guest) ||
               process_get_start_time(guest->pid, &start_time) == -ESRCH;
}

/* Tools that make the driver's lock answer, in the process that has them, that it is not supported. */
static const struct tool {
        const char *library, *is, *remedy;
} tools[] = {
        /* one that was used once leaves the process so for ever */
        { "libcupti.so", "a profiler in it (CUPTI)",
          "it runs on; start it without torch.profiler, Nsight or whatever uses CUPTI" },
        { "libsanitizer-collection.so", "compute-sanitizer in it",
          "it runs on; start it without compute-sanitizer" },
};

static const struct tool *find_tool(pid_t pid)
{
        for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
                if (process_maps(pid, tools[i].library))
                        return &tools[i];
        return NULL;
}

static void fail_unsupported(struct operation *operation, const struct guest *guest)
{
        const struct tool *tool = find_tool(guest->pid);

        if (tool)
                operation_fail(operation, -EOPNOTSUPP, "NotMovable", tool->remedy,
                               "process %d (%.40s) has %s, and the driver cannot checkpoint a "
                               "process in which one was used",
                               (int)guest->pid, guest->name, tool->is);
        else
                operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                               "the driver cannot checkpoint e.g. managed memory",
                               "process %d (%.40s) holds something that cannot be suspended",
                               (int)guest->pid, guest->name);
}

void context_fail(struct guest *guest, const struct device *device, const struct mover_done *done)
{
        struct operation *operation = guest->instance->operation;
        bool is_dead = has_died(guest, done);

        if (done->error == -ECONNRESET)
                operation_lost_mover(operation, device);
        else if (is_dead)
                (void)0; /* it died; what is left of it is buried at the end */
        else if (guest->context.state == GUEST_CONTEXT_LOST)
                operation_lose_guest(operation, guest);
        else if (done->error == -EINPROGRESS)
                operation_fail_silent(operation, guest);
        else if (done->driver_code == CUDA_ERROR_DEINITIALIZED)
                operation_let_go_guest(operation, guest, "it is ending: its driver has ended");
        else if (done->error == -ENOSPC && !place_is_nowhere(&guest->participant->context.wanted))
                lack_fail_context(operation, device, guest);
        else if (done->error == -ENOSPC)
                operation_fail(operation, -ENOSPC, "NoRoom",
                               "free some memory there, or end a program; it runs on",
                               "device %u is full to the last: the driver needs some MiB of it to "
                               "checkpoint process %d (%.40s)",
                               device->index, (int)guest->pid, guest->name);
        else if (done->error == -ETIMEDOUT)
                operation_fail(operation, -ETIMEDOUT, "TimedOut",
                               "try again with a longer --timeout",
                               "process %d did not come to rest within %u ms", (int)guest->pid,
                               operation->request.timeout_ms);
        else if (done->driver_code == CUDA_ERROR_NOT_SUPPORTED)
                fail_unsupported(operation, guest);
        else
                operation_fail_driver(operation, guest, done->call, done->driver_code, done->error);
        if (!is_dead && !guest_is_dead(guest))
                operation_leave_guest(operation, guest);
}
