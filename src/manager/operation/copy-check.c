/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copy-check.h"

#include <errno.h>

#include "daemon/log.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

/* What the database says about the pool is believed only when the slabs say the same. */
int copy_check(const struct guest *guest, struct failure *failure)
{
        uint32_t slab = 0;
        int r = -ESTALE;

        if (guest->n_memory == 0 || (guest->spilled && !guest->reservation))
                return 0; /* what is in a file says itself whose it is when it is read */
        if (guest->reservation)
                r = pool_check(guest->instance->manager->pool, guest->reservation, guest->pid,
                               guest->start_time, &slab);
        if (r == 0)
                return 0;
        log_event_of(guest->payer, LOG_LEVEL_ERROR, "the pool has not got what the database says",
                     "vgpu=%s pid=%d slab=%u", guest->instance->name, (int)guest->pid, slab);
        failure->process = guest->pid;
        return failure_set(failure, r, "GuestLost",
                           "end the process, then the others of the vGPU can be resumed",
                           "the memory of process %d (%.40s) of vGPU %s is not in the pool, or "
                           "something else is in its place",
                           (int)guest->pid, guest->name, guest->instance->name);
}
