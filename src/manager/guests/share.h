/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SHARE_H
#define MANAGER_SHARE_H

/*
 * Memory that processes share: a gate sends a ticket, and gets what it stands for from the gate of the
 * process that made the memory (wire/gate.h).
 *
 * A ticket is worth something only to processes of vGPUs of the same owner, and in a container only to
 * processes of the same vGPU. Each gate has at most one question under way, and one piece of news of
 * whose memory it has. Both wait for their turn among the users, as a request on the control socket does.
 */

#include <stdbool.h>
#include <stddef.h>

struct gate_join;
struct gate_process;
struct guest;
struct manager;

/* All three: -EPROTO, cut it off. Of the descriptors those that are taken are -1. */
int share_receive_import(struct guest *user, const void *message, size_t size, size_t n_fds);
int share_receive_offered(struct guest *maker, const void *message, size_t size, int *fds,
                          size_t n_fds);
int share_receive_uses(struct guest *user, const void *message, size_t size, size_t n_fds);

/* share_attach() - its gate has connected, and has said @join: at most GATE_IMPORTS_MAX pieces. */
void share_attach(struct guest *guest, const struct gate_join *join);

/* share_detach() - its gate is gone: what it was asked is asked of nobody, and what it has asked is forgotten. */
void share_detach(struct guest *guest);

/* share_flush() - its socket has room again: the answer that it had no room for. */
void share_flush(struct guest *guest);

/* share_subscribe() - the ends of guests. */
void share_subscribe(struct manager *manager);

#endif
