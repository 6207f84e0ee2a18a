/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_HISTORY_H
#define MANAGER_HISTORY_H

/*
 * History: notes what happens to vGPUs, for 'vgpu logs', in the store (store/store-event.h).
 *
 * What happens in one turn of the event loop is written at its end, at once, or before an answer goes out: what a
 * client was told of, the history knows, whatever becomes of vgpud. What cannot be written, for the disk is full,
 * waits for the next event or reader.
 */

#include "daemon/failure.h"
#include "store/store-event.h"

struct history;
struct manager;

int history_new(struct history **ret_history, struct manager *manager);

/* history_free() - writes what waits. Returns NULL. */
struct history *history_free(struct history *history);

/* history_write() - write what waits. */
void history_write(struct manager *manager);

/*
 * history_find() - which vGPU's events the user @owner (or STORE_ANY_OWNER) means by @name: those of the
 * vGPU that has the name or UUID now, or else had it last. Errors: NoSuchVgpu, PermissionDenied.
 */
int history_find(struct history *history, const char *name, int64_t owner,
                 char ret_uuid[STORE_UUID_MAX], struct failure *failure);

/* history_each() - store_each_event(), with all that has happened. */
int history_each(struct history *history, const struct store_event_query *query,
                 store_event_fn each, void *userdata);

#endif
