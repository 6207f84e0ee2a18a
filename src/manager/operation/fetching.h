/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_FETCHING_H
#define MANAGER_FETCHING_H

/* A resume that has its room on the device goes on with this: what the spill has of the vGPU comes back to the pool. */

#include <stdbool.h>

struct operation;

void fetching_run(struct operation *operation);

/* fetching_is_needed() - will it wait for the disk? */
bool fetching_is_needed(const struct operation *operation);

/* fetching_go_on() - if it has waited for what is read ahead (model/reading.h): that has ended. */
void fetching_go_on(struct operation *operation);

#endif
