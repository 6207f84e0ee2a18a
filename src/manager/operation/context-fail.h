/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTEXT_FAIL_H
#define MANAGER_CONTEXT_FAIL_H

struct device;
struct guest;
struct mover_done;

/* context_fail() - the mover of @device says that the call on @guest has come to @done: what that means for the operation. */
void context_fail(struct guest *guest, const struct device *device, const struct mover_done *done);

#endif
