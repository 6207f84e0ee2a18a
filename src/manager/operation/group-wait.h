/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GROUP_WAIT_H
#define MANAGER_GROUP_WAIT_H

/*
 * A call with "group" that has come before the gates told a new manager who shares memory. It waits for
 * them and is then made again.
 */

#include <stdint.h>

struct control_pending;
struct failure;
struct guest;
struct instance;

/* group_wait_begin() - 0: @pending will be made again, or answered; one call for a vGPU at a time. */
int group_wait_begin(struct instance *instance, const struct guest *untold,
                     struct control_pending *pending, uint32_t timeout_ms, struct failure *failure);

/* group_wait_end_removed() - @instance is no vGPU any more: who waits is told so. */
void group_wait_end_removed(struct instance *instance);

/* group_wait_drop() - @instance is about to be freed. */
void group_wait_drop(struct instance *instance);

#endif
