/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/shared.h"

#include <errno.h>

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/sharing.h"
#include "manager/operation/operation.h"

static int refuse_outside(const struct guest *guest, const struct guest *other,
                          struct failure *failure)
{
        return failure_set(failure, -EOPNOTSUPP, "NotMovable",
                           "processes that share memory can only go together: run them in one "
                           "vGPU, or end one of them",
                           "process %d (%.40s) shares memory with process %d (%.40s) of vGPU %s",
                           (int)guest->pid, guest->name, (int)other->pid, other->name,
                           other->instance->name);
}

/* A process that was moved to another device cannot import memory there: driver 580 answers 3. */
static int refuse_move(const struct operation *operation, const struct guest *guest,
                       struct failure *failure)
{
        return failure_set(failure, -EOPNOTSUPP, "NotMovable",
                           operation->kind == &operation_resume
                                   ? "resume the vGPU on the device where it was"
                                   : "suspend and resume work; so does a move once the memory is "
                                     "not shared any more",
                           "process %d (%.40s) shares memory with another process, and the driver "
                           "cannot share memory on a device that processes were moved to",
                           (int)guest->pid, guest->name);
}

int shared_check(struct operation *operation, struct failure *failure)
{
        const struct guest *other;
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                other = sharing_find_outside(guest);
                if (other)
                        return refuse_outside(guest, other, failure);
                if (operation->target != operation->source &&
                    (sharing_is_any(guest) || guest->n_imports > 0))
                        return refuse_move(operation, guest, failure);
        }
        return 0;
}
