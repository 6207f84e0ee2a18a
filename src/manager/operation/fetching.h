/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_FETCHING_H
#define MANAGER_FETCHING_H

/* A resume begins with this: what the spill has of the vGPU comes back to the pool. */

struct operation;

void fetching_run(struct operation *operation);

/* fetching_go_on() - if it has waited for what is read ahead (model/reading.h): that has ended. */
void fetching_go_on(struct operation *operation);

#endif
