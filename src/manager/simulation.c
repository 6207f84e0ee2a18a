/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/simulation.h"

#include <errno.h>

int simulation_start(struct manager *manager, struct failure *failure)
{
        (void)manager;
        return failure_set(failure, -ENOSYS, "Failed", "", "this vgpud has no simulated GPUs");
}
