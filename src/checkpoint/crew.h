/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_CREW_H
#define CHECKPOINT_CREW_H

/* A few threads share work: each takes the next task until none is left. */

#include <stddef.h>

/* Four threads saturate a bus, as users of the driver report; further ones feed the memory or the disks. */
#define CREW_MAX 8

/* crew_get_size() - return the number of members: one for each processor, at least 1, at most CREW_MAX. */
unsigned int crew_get_size(void);

/*
 * crew_run() - call @run for each of the tasks 0 to @n_tasks - 1, in any order and at the same time
 * @member:  the member that runs the task, 0 to crew_get_size() - 1
 *
 * Waits for all tasks. The calling thread is a member, so the work is done even if no thread can be made.
 */
void crew_run(size_t n_tasks, void (*run)(void *data, size_t task, unsigned int member),
              void *data);

#endif
