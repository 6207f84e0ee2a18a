/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GUESTS_TOOLKIT_H
#define MANAGER_GUESTS_TOOLKIT_H

/* NVIDIA's container toolkit is asked what a container needs of the driver (cdi/nvidia.h). */

#include "daemon/child.h"

struct manager;

/*
 * toolkit_ask() - when it has answered, call @ended
 *
 * Returns 0; then *@ret_child is for child_forget(). -ENOENT: there is no toolkit, or no real driver. -errno.
 */
int toolkit_ask(struct child **ret_child, struct manager *manager, child_ended_fn ended,
                void *userdata);

#endif
