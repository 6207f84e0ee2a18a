/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RUN_LOCK_H
#define DAEMON_RUN_LOCK_H

/*
 * One manager a run directory: a lock on a file in it, which the kernel takes away from a process
 * that dies. The file says who holds it.
 */

#include "daemon/failure.h"

/* run_lock_take() - Errors: -EBUSY, with the process in @failure. */
int run_lock_take(const char *directory, int *ret_lock, struct failure *failure);

#endif
