/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RUN_LOCK_H
#define DAEMON_RUN_LOCK_H

/*
 * Ensures one manager for each run directory, by a lock on a file in it. The kernel releases the
 * lock of a process that dies. The file names the process that holds the lock.
 */

#include "daemon/failure.h"

/* run_lock_take() - lock the run directory. Errors: -EBUSY; @failure names the process that holds it. */
int run_lock_take(const char *directory, int *ret_lock, struct failure *failure);

#endif
