/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GUEST_SOCKET_H
#define MANAGER_GUEST_SOCKET_H

/*
 * The gate socket: connections of guest processes, up to the JOIN that says which
 * guest it is, and their messages after it.
 *
 * Nothing is believed: who it is comes from the kernel (SO_PEERCRED), a message
 * that is not as wire/gate.h says or comes out of turn ends the connection, and
 * since every message of a gate answers one of ours, a flood ends with its first
 * message too many.
 */

#include <sys/types.h>

struct guest_socket;
struct manager;
struct ucred;

int guest_socket_new(struct guest_socket **ret_socket, struct manager *manager);
void guest_socket_start(struct guest_socket *socket);
struct guest_socket *guest_socket_free(struct guest_socket *socket);

/*
 * guest_socket_accept() - somebody has connected: where any vGPU of his own can be joined (@uuid is NULL), or where that
 * of @uuid can, by whomever, or (GATE_VGPU_NEW) that of the peer's container, which is made when it asks. @payer is charged for what it costs. Takes @fd, also when it fails.
 */
int guest_socket_accept(struct guest_socket *socket, int fd, const struct ucred *peer, uid_t payer,
                        const char *uuid);

#endif
