/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GUEST_ALLOCATIONS_H
#define MANAGER_GUEST_ALLOCATIONS_H

/* Memory that a guest's gate sends: what it exports, and what it has created where it was asked to. */

#include <stddef.h>

struct guest;

/* guest_receive_allocations() - those of @fds that it takes are -1. -EPROTO: cut it off. */
int guest_receive_allocations(struct guest *guest, const void *message, size_t size, int *fds,
                              size_t n_fds);

#endif
