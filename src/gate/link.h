/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_LINK_H
#define GATE_LINK_H

/* Connects to the manager, and exchanges the first two messages: JOIN, and WELCOME or REFUSED. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

/* link_is_wanted() - does this process belong to a vGPU (OPENVGPU_VGPU)? */
bool link_is_wanted(void);

/* link_get_vgpu() - get the vGPU's UUID. False: there is none. link_get_start_time() - return the time in JOIN. */
bool link_get_vgpu(uint8_t ret_uuid[16]);
uint64_t link_get_start_time(void);

/* How far this process is, when it joins. */
struct link_report {
        enum gate_state state;
        void (*describe)(struct gate_join *join); /* adds what the process has of others */
};

/*
 * link_join() - connect, say how far we are (@report), and take the slot that we are given.
 * @ret_welcome:  set on success; devices that it does not name are ""
 * @ret_text:     GATE_TEXT_MAX bytes; on failure, why, for the user
 * Waits as long as the vGPU is suspended, over the end of a manager and the start of the next.
 * Returns a socket. Errors: -EACCES (refused), -ECANCELED (the process ends), -EPROTO (the answer makes no sense), others: no
 * manager there, or it hung up.
 */
int link_join(const struct link_report *report, struct gate_welcome *ret_welcome, char *ret_text);

/* link_send() - fill in the message's header and send it with descriptors, which stay the caller's. */
int link_send(int socket, enum gate_message type, void *message, uint32_t size, const int *fds,
              uint32_t n_fds);

#endif
