/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SHARED_H
#define MANAGER_SHARED_H

/* Processes that share memory (sharing.h) go together, or not at all. */

struct failure;
struct operation;

/*
 * shared_check() - are all that share memory with those of @operation among them, and can they share it
 * where they go? NotMovable.
 */
int shared_check(struct operation *operation, struct failure *failure);

#endif
