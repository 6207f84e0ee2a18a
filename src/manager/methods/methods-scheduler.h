/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METHODS_SCHEDULER_H
#define MANAGER_METHODS_SCHEDULER_H

/* The methods of the control protocol that show a device's scheduler. */

struct control_pending;
struct failure;

int methods_get_scheduler(struct control_pending *pending, struct failure *failure);
int methods_get_scheduler_log(struct control_pending *pending, struct failure *failure);

#endif
