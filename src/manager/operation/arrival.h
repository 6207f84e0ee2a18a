/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_ARRIVAL_H
#define MANAGER_ARRIVAL_H

/* The steps with which memory arrives on a device: what resume and migrate have in common. */

struct failure;
struct operation;

/* arrival_check_promise() - has the target quota left for the instance? NoRoom. */
int arrival_check_promise(const struct operation *operation, struct failure *failure);

/*
 * arrival_check_kind() - is the target of the kind that the instance comes from? Unsupported. What NVML
 * answers for the two from their metadata is the same rule.
 */
int arrival_check_kind(const struct operation *operation, struct failure *failure);

/* arrival_check() - is promised the memory that it needs, or waits for it, or is refused. */
void arrival_check(struct operation *operation);

/* arrival_check_again() - more of it, if contexts turned out to be larger than was known. */
void arrival_check_again(struct operation *operation);

void arrival_create(struct operation *operation);
void arrival_undo_create(struct operation *operation);
void arrival_copy(struct operation *operation);
void arrival_undo_copy(struct operation *operation);

/* arrival_record() - the instance runs on the target: the point of no return. */
void arrival_record(struct operation *operation);
void arrival_open(struct operation *operation);

/* arrival_let_go() - the mover lets go of the guests' memory, and of what it staged. */
void arrival_let_go(struct operation *operation);

/* arrival_drop() - give back what the memory was copied from. */
void arrival_drop(struct operation *operation);

#endif
