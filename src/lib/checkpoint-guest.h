/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CHECKPOINT_GUEST_H
#define LIB_CHECKPOINT_GUEST_H

/* Says whether a process is the guest of a manager. */

#include <sys/types.h>

#define CHECKPOINT_GUEST_NAME_MAX 64

/*
 * checkpoint_guest_find() - does @pid run in a vGPU of a manager that answers?
 * @ret_name:  gets the name of the vGPU; it has CHECKPOINT_GUEST_NAME_MAX bytes
 *
 * A guest whose manager is gone belongs to nobody, so it may be checkpointed. Returns 1: it is one, 0: it is none.
 * Errors: -ETIMEDOUT, its manager does not answer.
 */
int checkpoint_guest_find(pid_t pid, char *ret_name);

#endif
