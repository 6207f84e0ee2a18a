/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GROUP_H
#define MANAGER_GROUP_H

/*
 * Several vGPUs whose processes share memory, operated on as one: each has an operation of its own, and
 * these operations meet.
 *
 * An operation waits before a step with OPERATION_MEETS until all others of its group are there as well,
 * and before it undoes a step with OPERATION_MEETS_BACK until they have undone as much. When one fails
 * before the point of no return, all are undone. They are recorded in one transaction, by the first that
 * gets there: so the next manager finds all of them, or none.
 */

#include <stdbool.h>

struct failure;
struct instance;
struct operation;

/* group_break_one() - because of @why, unless that was said before, or it is recorded. */
void group_break_one(struct operation *operation, const struct failure *why);

/* group_has() - is @other of the group of @operation? */
bool group_has(const struct operation *operation, const struct instance *other);

/* group_next() - the member behind @after (NULL: the first); also an operation without a group is one. */
struct operation *group_next(const struct operation *operation, const struct operation *after);

/* group_must_wait() - for others, before its next step, or before it undoes this one. */
bool group_must_wait(const struct operation *operation);

/*
 * group_record() - the point of no return, for all of the group in one transaction: @put says it to the
 * store, and @settle says it here.
 */
void group_record(struct operation *operation, int (*put)(struct operation *operation),
                  void (*settle)(struct operation *operation));

/* group_break() - @operation is being undone: so are the others. group_wake(): it has come further. */
void group_break(const struct operation *operation);
void group_wake(const struct operation *operation);

#endif
