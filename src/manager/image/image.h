/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_IMAGE_H
#define MANAGER_IMAGE_H

/*
 * Images: a client reads the memory of a suspended vGPU out of the pool, or puts other contents
 * there, with descriptors of the slabs. The client, not the manager, writes and reads the files: so
 * the files are those of the user who asks, and the manager waits for no disk.
 *
 * A client that had a slab may keep it mapped for ever. So a slab that was given away is never given
 * to another vGPU: it is let go when its memory is released (pool_share()). To read, a client gets
 * descriptors that cannot write.
 *
 * Who loads an image gets new room in the pool; what the guests have is exchanged for it in one
 * step at the end, or not at all. A session belongs to the connection that began it and ends with
 * it. While there is one, the vGPU is not resumed, and a gate that was sent away stays away: CRIU
 * cannot dump a process in the middle of a connection.
 */

#include "daemon/failure.h"

struct control_client;
struct control_pending;
struct instance;
struct manager;

/* The methods. 0: it was or will be answered. */
int image_open(struct control_pending *pending, struct instance *instance, struct failure *failure);
int image_replace(struct control_pending *pending, struct instance *instance,
                  struct failure *failure);
int image_get_slabs(struct control_pending *pending, struct instance *instance,
                    struct failure *failure);
int image_commit(struct control_pending *pending, struct instance *instance,
                 struct failure *failure);
int image_close(struct control_pending *pending, struct instance *instance,
                struct failure *failure);

/* image_client_gone() - end what @client has begun. */
void image_client_gone(struct manager *manager, const struct control_client *client);

/* image_subscribe() - once: a session ends with its vGPU. */
void image_subscribe(struct manager *manager);

#endif
