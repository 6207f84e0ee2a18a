/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_FAIR_QUEUE_H
#define MANAGER_FAIR_QUEUE_H

/*
 * Fair queue: whose request the event loop serves next.
 *
 * A request that arrives is not served at once. Its connection waits in this queue, and the loop serves
 * one request at a time: the next one is of the user who has had the least of the loop's time, however
 * many connections or requests other users have. Among the requests of one user it is the oldest. So a
 * user waits for the request that is being served, and for one request of each other user at most.
 *
 * Time is virtual (start-time fair queueing): a request takes one unit, and one more for each millisecond
 * of real time. Virtual time is where the last request began. A user who was idle begins there and gains
 * nothing by having been idle. A user whose last request took long begins behind it, also with a new
 * connection. All short requests count alike, so their order does not depend on how busy the machine is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/list.h"

struct fair_queue;
struct fair_user;

/* May free the entry that it is called for. */
typedef void (*fair_fn)(void *userdata);

/* A member of what waits, e.g. of a connection. */
struct fair_entry {
        struct list link;
        struct fair_queue *queue; /* NULL: not initialized */
        struct fair_user *user;
        fair_fn function;
        void *userdata;
};

/* fair_queue_new() - @event: NULL, nobody is served but by fair_queue_run(). */
int fair_queue_new(struct fair_queue **ret_queue, sd_event *event);

/* fair_queue_free() - when no entry is left. Returns NULL. */
struct fair_queue *fair_queue_free(struct fair_queue *queue);

/* fair_init() - of @user; it does not wait. Errors: -ENOMEM. */
int fair_init(struct fair_entry *entry, struct fair_queue *queue, uid_t user, fair_fn function,
              void *userdata);

/* fair_deinit() - stop waiting; an entry that is all 0 is fine. */
void fair_deinit(struct fair_entry *entry);

/* fair_wait() - call the function when its turn comes; an entry that waits already keeps its place. */
void fair_wait(struct fair_entry *entry);

bool fair_is_waiting(const struct fair_entry *entry);

/* fair_queue_run() - serve the next entry. False: nobody waits. */
bool fair_queue_run(struct fair_queue *queue);

#endif
