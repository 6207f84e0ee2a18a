/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_INSTANCE_LIFE_H
#define MANAGER_INSTANCE_LIFE_H

/* How a vGPU comes to be, changes its state as its processes come and go, and ends. */

#include "daemon/failure.h"
#include "state/state-page.h"
#include "store/store.h"

struct guest;
struct instance;
struct manager;

/* What else belongs to a new one; it is not in the list yet. */
typedef int (*instance_add_fn)(struct instance *instance, const void *userdata,
                               struct failure *failure);

/* instance_add() - store and add it, and do @also: all of it, or nothing. */
int instance_add(struct manager *manager, struct store_instance *stored, instance_add_fn also,
                 const void *userdata, struct instance **ret_instance, struct failure *failure);

/* instance_restore() - one that the store has. Its page comes from the keeper or is made anew. */
int instance_restore(struct manager *manager, const struct store_instance *stored);

/* instance_remove() - forget it everywhere. Refused with Busy while it has processes. */
int instance_remove(struct instance *instance, struct failure *failure);

/* instance_free() - in memory only: the manager ends. Returns NULL. */
struct instance *instance_free(struct instance *instance);

/* instance_find_settled() - as instance_find(), without processes that have ended. It may end with the last of them. */
struct instance *instance_find_settled(struct manager *manager, const char *name,
                                       struct failure *failure);

/*
 * instance_settle() - after a process came or went, or an operation ended: IDLE or RUNNING, or the
 * end of a transient one. @instance may be gone afterwards.
 */
void instance_settle(struct instance *instance);

/* instance_set_state() - in the store as well, or later, when that accepts it. */
void instance_set_state(struct instance *instance, enum state_instance_state state);

/* instance_bury() - @guest's process has ended: an operation that looks at it frees it, or it is gone. For burial.h. */
void instance_bury(struct guest *guest);

/* instance_bury_at_last() - unless it lives, or what it is kept for is not over: the end of that calls this again. */
void instance_bury_at_last(struct guest *guest);

#endif
