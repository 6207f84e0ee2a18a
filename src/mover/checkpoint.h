/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_CHECKPOINT_H
#define MOVER_CHECKPOINT_H

/*
 * The driver's checkpoint of a process: it takes the rest of the process off the device
 * when OpenVGPU has moved the memory.
 *
 * Both actions continue where an earlier one stopped: a suspend of a locked process
 * begins with the checkpoint, and a suspend of a checkpointed process is done. A
 * manager that lost its mover therefore simply asks again.
 *
 * A suspend that fails leaves the process running, where the driver allows this. A
 * resume that fails leaves the process as far as it came. @done says the state: FAILED,
 * when the driver failed twice to restore the process, for then it never will.
 */

#include "mover/device.h"
#include "mover/hold.h"
#include "wire/mover.h"

/*
 * checkpoint_run() - do @request and fill @done: state, times, and the failed call
 * @pidfd: of the process that is meant; when it has ended, another one with its number is not
 *         touched
 *
 * Errors: -EINPROGRESS (a call of the driver has not returned: process-call.h), -ETIMEDOUT (the lock; the process runs), -ESRCH (the process has ended), -EINVAL, -ENOSYS
 * (the driver is older than 570), -EUCLEAN (the driver says that the process failed), -ENOSPC (the
 * device has no room for the restore, which was not begun), -EIO, -ENOMEM.
 */
int checkpoint_run(struct device *device, struct holds *holds,
                   const struct mover_checkpoint *request, int pidfd, struct mover_done *done);

#endif
