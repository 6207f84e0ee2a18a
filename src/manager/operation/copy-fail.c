/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copy-fail.h"

#include <errno.h>
#include <string.h>

#include "abi/cuda.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/operation/copy-check.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* Memory of the host, which no room of a device replaces: a copy begins before all of it is pinned, and fails with it. */
static bool lacks_pinned(const struct mover_done *done)
{
        return done && done->driver_code == CUDA_ERROR_OUT_OF_MEMORY &&
               strcmp(done->call, "cuMemHostRegister_v2") == 0;
}

void copy_fail(struct guest_job *job, int error, const struct mover_done *done)
{
        struct guest *guest = job->guest;
        struct operation *operation = guest->instance->operation;

        if (error == -ECONNRESET)
                operation_lost_mover(operation, job->device);
        else if (guest_is_dead(guest))
                (void)0; /* nobody needs it any more */
        else if (error == -ESTALE && copy_check(guest, &operation->failure) < 0)
                operation_fail_errno(operation, error, "looking for memory in the pool");
        else if (lacks_pinned(done))
                operation_fail_errno(operation, error, "pinning memory of the host");
        else if (done && done->driver_code == CUDA_ERROR_OUT_OF_MEMORY)
                lack_fail_copy(operation, job->device);
        else if (done)
                operation_fail_driver(operation, guest, done->call, done->driver_code, error);
        else
                operation_fail_errno(operation, error, "copying memory");
        if (!guest_is_dead(guest))
                operation_leave_guest(operation, guest);
}
