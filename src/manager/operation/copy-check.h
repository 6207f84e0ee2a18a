/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COPY_CHECK_H
#define MANAGER_COPY_CHECK_H

struct failure;
struct guest;

/* copy_check() - is what the pool has for the guest its memory? Errors: -ESTALE, GuestLost. */
int copy_check(const struct guest *guest, struct failure *failure);

#endif
