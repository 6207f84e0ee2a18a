/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SHARED_H
#define MANAGER_SHARED_H

/* Processes that share memory (sharing.h) go together, or not at all. */

struct failure;
struct guest;
struct instance;
struct operation;

/*
 * shared_check() - are all that share memory with those of @operation among them, and can they share it
 * where they go? NotMovable. -EAGAIN: that is not known of all yet (shared_find_unheard()).
 */
int shared_check(struct operation *operation, struct failure *failure);

/* shared_check_image() - could CRIU make the processes of @instance anew? NotMovable where they share memory. */
int shared_check_image(const struct instance *instance, struct failure *failure);

/*
 * shared_find_untold() - a process that may share memory with those of @instance, and has not told this
 * manager yet whether it does; NULL: all have.
 */
const struct guest *shared_find_untold(const struct instance *instance);

/*
 * shared_find_unheard() - likewise, of those in @instance, whose move is to wait for it; who is stopped and is not known to
 * share memory is left behind or holds up the move later.
 */
const struct guest *shared_find_unheard(const struct instance *instance);

/* shared_refuse_untold() - @guest has not come back, or not told, in time. Returns -ETIMEDOUT. */
int shared_refuse_untold(const struct guest *guest, struct failure *failure);

/*
 * shared_ask() - as a step: the same once more, with all gates closed, and whether all memory of others
 * could come back. Waits for the gates that a new manager has not heard yet.
 */
void shared_ask(struct operation *operation);

#endif
