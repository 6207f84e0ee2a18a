/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GATE_H
#define MANAGER_GATE_H

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

struct gate;
struct manager;
struct ucred;

int gate_new(struct gate **ret_gate, struct manager *manager);
void gate_start(struct gate *gate);
struct gate *gate_free(struct gate *gate);

/*
 * gate_accept() - somebody has connected: where any vGPU of his own can be joined (@uuid is NULL), or where that
 * of @uuid can, by whomever. @payer is charged for what it costs. Takes @fd, also when it fails.
 */
int gate_accept(struct gate *gate, int fd, const struct ucred *peer, uid_t payer, const char *uuid);

#endif
