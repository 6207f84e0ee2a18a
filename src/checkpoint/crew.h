/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_CREW_H
#define CHECKPOINT_CREW_H

/* A few threads that share work: each takes the next task until none is left. */

#include <stddef.h>

/* Four saturate a bus, users of the driver report; what is more feeds the memory or the disks. */
#define CREW_MAX 8

/* crew_get_size() - how many there would be: at least 1, at most CREW_MAX, and one a processor. */
unsigned int crew_get_size(void);

/*
 * crew_run() - @run for each of the tasks 0 to @n_tasks - 1, in any order and at the same time
 * @member:  0 to crew_get_size() - 1: who runs it
 *
 * Waits for all. The calling thread is a member, so it works also when no thread can be made.
 */
void crew_run(size_t n_tasks, void (*run)(void *data, size_t task, unsigned int member),
              void *data);

#endif
