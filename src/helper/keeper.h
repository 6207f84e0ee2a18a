/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELPER_KEEPER_H
#define HELPER_KEEPER_H

/*
 * The manager's side of the keeper (wire/keeper.h): descriptors under labels
 * that survive this process.
 *
 * This object has its own duplicate of every descriptor that it has put, or that the
 * keeper held at connection. A look-up therefore asks nobody, and when the keeper
 * dies, a new keeper gets the whole table.
 *
 * A call that changes something waits for the keeper's answer, at most
 * KEEPER_TIMEOUT_MS: only then may the caller rely on it.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"

#define KEEPER_TIMEOUT_MS 2000

struct keeper;

/*
 * Called from the event loop when the keeper went away. What it held is still in our table: call
 * keeper_restore(), now or later (each put or drop tries it as well).
 */
typedef void (*keeper_lost_fn)(struct keeper *keeper, void *userdata);

/*
 * keeper_new() - connect to the keeper at @socket_path, or start one there, and learn what it holds
 * @event:        a reference is taken; NULL: nobody is told of a loss
 * @socket_path:  absolute; PATHS_KEEPER_SOCKET in the run directory, which exists
 * @program:      PATHS_KEEPER in the private directory; started detached, it outlives us
 *
 * Errors: -ENAMETOOLONG, -EINVAL (relative path); -ENOENT or -EACCES (@program cannot be started);
 * -ETIMEDOUT (a keeper is there and does not answer); -EPROTO (what is there is no keeper).
 */
int keeper_new(struct keeper **ret_keeper, sd_event *event, const char *socket_path,
               const char *program, keeper_lost_fn lost, void *userdata);

/* keeper_free() - hang up; the keeper stays, with all that it holds. Returns NULL. */
struct keeper *keeper_free(struct keeper *keeper);
DEFINE_CLEANUP(struct keeper *, keeper_free);

/*
 * keeper_put() - keep a duplicate of @fd as @label; a label in use is replaced
 *
 * @fd stays the caller's. When the keeper is gone a new one is started and given everything. On
 * failure the label is as it was before.
 * Errors: -ENAMETOOLONG (KEEPER_LABEL_MAX), -EBADF; -ETIMEDOUT and others: the keeper.
 */
int keeper_put(struct keeper *keeper, const char *label, int fd);

/* keeper_drop() - forget @label. Errors: -ENOENT. */
int keeper_drop(struct keeper *keeper, const char *label);

/*
 * keeper_put_batch(), keeper_drop_batch() - the same for up to KEEPER_BATCH_MAX at once, with one
 * answer
 *
 * They are put all or none. Labels that are not there are not dropped, and that is no error; nor
 * are the descriptors of @items looked at then. Errors: -E2BIG.
 */
struct keeper_item {
        const char *label;
        int fd;
};

int keeper_put_batch(struct keeper *keeper, const struct keeper_item *items, size_t n);
int keeper_drop_batch(struct keeper *keeper, const struct keeper_item *items, size_t n);

/* keeper_find() - the descriptor of @label, borrowed until the label is dropped; -1 for none. */
int keeper_find(const struct keeper *keeper, const char *label);

/* keeper_get_pid() - for messages; 0 when it is gone. */
pid_t keeper_get_pid(const struct keeper *keeper);

size_t keeper_count(const struct keeper *keeper);

/*
 * keeper_list() - show every label that begins with @prefix ("" for all) to @each
 *
 * @fd is borrowed. @each may put and drop labels; one that it puts may or may not be shown. A
 * negative return ends the listing and is returned.
 */
typedef int (*keeper_each_fn)(const char *label, int fd, void *userdata);
int keeper_list(struct keeper *keeper, const char *prefix, keeper_each_fn each, void *userdata);

/* keeper_restore() - connect anew, starting a keeper where needed, and put the whole table again. */
int keeper_restore(struct keeper *keeper);

#endif
