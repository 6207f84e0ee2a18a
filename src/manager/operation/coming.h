/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COMING_H
#define MANAGER_COMING_H

/* The steps with which memory arrives on a device: what resume and migrate have in common. */

struct failure;
struct operation;

/* coming_check_promise() - has the target quota left for the instance? NoRoom. */
int coming_check_promise(const struct operation *operation, struct failure *failure);

/*
 * coming_check_fit() - can the instance be on the target at all? Unsupported: the target is of another kind or
 * takes no vGPUs; NoRoom: it is smaller. What NVML answers for the two from their metadata is the same rule.
 */
int coming_check_fit(const struct operation *operation, struct failure *failure);

/* coming_check() - is promised the memory that it needs, or waits for it, or is refused. */
void coming_check(struct operation *operation);

/* coming_check_again() - more of it, if contexts turned out to be larger than was known. */
void coming_check_again(struct operation *operation);

void coming_create(struct operation *operation);
void coming_undo_create(struct operation *operation);
void coming_copy(struct operation *operation);
void coming_undo_copy(struct operation *operation);

/* coming_record() - the instance runs on the target: the point of no return. */
void coming_record(struct operation *operation);
void coming_open(struct operation *operation);

/* coming_let_go() - the mover lets go of the guests' memory, and of what it staged. */
void coming_let_go(struct operation *operation);

/* coming_drop() - give back what the memory was copied from. */
void coming_drop(struct operation *operation);

#endif
