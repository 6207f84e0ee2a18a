/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_HELD_H
#define MANAGER_HELD_H

/*
 * Slabs that were given to clients and have left the pool since: as long as a client has one open or mapped,
 * its memory is not free, and the pool counts it. When the last one lets go, the kernel deletes the file,
 * which has no name, and tells so (inotify).
 *
 * The next manager knows nothing of these any more.
 */

#include <stdint.h>
#include <sys/types.h>

struct held;
struct manager;

int held_new(struct held **ret_held, struct manager *manager);
struct held *held_free(struct held *held);

/* held_watch() - a slab of the pool of @manager leaves it; pool_gone() follows. See pool_watch_fn. */
int held_watch(int fd, uint64_t size, uid_t user, void *manager);

/* held_count() - bytes that the programs of @user have kept. */
uint64_t held_count(const struct held *held, uid_t user);

#endif
