/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_BACKLOG_H
#define MANAGER_BACKLOG_H

/*
 * What could not be done for want of room, and is tried again.
 *
 * First, what the store should have been told and did not accept, e.g. because the disk is full.
 *
 * Whatever the store still lists is kept: slabs stay with their owner, descriptors in the keeper. So
 * the next manager finds what it reads about. The backlog tries again, by a timer and before the next
 * operation, and only then lets go.
 *
 * Second, undoing that failed because neither the device nor the pool had room for what a process had
 * there. It is tried again when we see that somebody made room, and by a timer for what we do not see.
 */

#include <sys/types.h>

struct backlog;
struct guest;
struct instance;
struct manager;

int backlog_new(struct backlog **ret_backlog, struct manager *manager);
struct backlog *backlog_free(struct backlog *backlog);

/* backlog_add_instance() - what the store says of @instance is not what is, or kept it from recovering. */
void backlog_add_instance(struct instance *instance);

/* backlog_add_lack() - there was no room to undo what is left of @instance. */
void backlog_add_lack(struct instance *instance);

/* backlog_end_lack() - there was, or nothing is left. */
void backlog_end_lack(struct instance *instance);

/* backlog_retry() - there is room now for @instance: begin at once. */
void backlog_retry(struct instance *instance);

/* backlog_room_came() - perhaps: who lacks some tries again as soon as others had their turn. */
void backlog_room_came(struct backlog *backlog);

/*
 * backlog_add_process() - the store still lists @guest, which is about to be freed: its reservation
 * becomes the backlog's.
 */
void backlog_add_process(struct guest *guest);

/*
 * backlog_forget_process() - the store is about to list a new process of that number: the former one goes
 * first, for later it would take the new one's place with it. Errors: the store's.
 */
int backlog_forget_process(const struct instance *instance, pid_t pid);

/*
 * backlog_settle() - bring the store up to date now, and give back what others may need: an operation
 * begins for @instance. Errors: the store's, if it is not up to date with that.
 */
int backlog_settle(struct instance *instance);

#endif
