/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_DOOR_H
#define WIRE_DOOR_H

/* The gate socket as a guest process finds it. Libc only. */

#include "wire/gate.h"

/*
 * door_connect() - to the gate socket of the run directory; @ret_text, of GATE_TEXT_MAX bytes, says why not
 *
 * Returns a socket. Errors: -EPERM, whoever answers is not to be believed; those of connect(), which does not wait: -EAGAIN,
 * others are before us.
 */
int door_connect(char *ret_text);

/*
 * door_order() - have a vGPU made for our container, as its environment says, or learn which it has
 * @wait: until the socket is readable, or for so long: 0 or an errno; NULL: with nothing that could interrupt it
 *
 * Errors: -EACCES, it was refused; -EPROTO; -ETIMEDOUT; no manager there, or it hung up. @ret_text says why.
 */
typedef int (*door_wait)(int socket, int timeout_ms);
int door_order(door_wait wait, char ret_vgpu[GATE_VGPU_NAME_MAX], char *ret_text);

#endif
