/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_CHECKPOINT_H
#define MOVER_CHECKPOINT_H

/*
 * The driver's checkpoint of a process: what is left of it on the device when
 * its memory has been moved away by us.
 *
 * Both actions go on from where a former one stopped: a suspend of a process
 * that is locked already begins with the checkpoint, and one of a process that
 * is checkpointed is done. So a manager that lost its mover just asks again.
 *
 * A suspend that fails leaves the process running, where the driver lets us; a
 * resume that fails leaves it as far as it came. @done says the state: FAILED, when
 * the driver was asked twice to restore it, for then it never will.
 */

#include "mover/device.h"
#include "mover/hold.h"
#include "wire/mover.h"

/*
 * checkpoint_run() - do @request and fill @done: state, times, and the failed call
 * @pidfd: of the process that is meant; when it has ended, another one with its number is not touched
 *
 * Errors: -ETIMEDOUT (the lock; the process runs), -ESRCH (the process has ended), -EINVAL, -ENOSYS (the
 * driver is older than 570), -EUCLEAN (the driver says that the process failed), -ENOSPC (the device
 * has no room for the restore, which was not begun), -EIO, -ENOMEM.
 */
int checkpoint_run(struct device *device, struct holds *holds,
                   const struct mover_checkpoint *request, int pidfd, struct mover_done *done);

#endif
