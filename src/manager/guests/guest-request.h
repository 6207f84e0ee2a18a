/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GUEST_REQUEST_H
#define MANAGER_GUEST_REQUEST_H

/*
 * What a guest's gate is asked, and what it answers.
 *
 * Requests to its gate complete by callback, exactly once, never before
 * guest_request() has returned. One is under way at a time. Without a connection a
 * request waits for one. How it may end besides the gate's own answer:
 *
 *     -ESRCH       the process died
 *     -ECONNRESET  the gate connected anew in the middle; guest->state says how far it was
 *     -ENOTCONN    it did not connect in time
 *     -ETIMEDOUT   no answer in time
 *     -EPROTO      nonsense; it was cut off
 */

#include <stddef.h>
#include <stdint.h>

#include "manager/model/guest.h"
#include "wire/gate.h"

struct gate_link;

/* guest_attach() - its gate is connected, and has said @join; it is welcomed if it was before. */
void guest_attach(struct guest *guest, struct gate_link *gate, const struct gate_join *join);

/* guest_detach() - its gate is gone because of @error: -ENOTCONN (hung up) or -EPROTO. */
void guest_detach(struct guest *guest, int error);

/* guest_welcome() - tell its gate its slot and device. */
int guest_welcome(struct guest *guest);

/*
 * guest_request() - @message is one of the manager's to the gate; 0 only waits for a connection
 * @timeout_ms: for the answer; CLOSE: what the gate is told, the answer gets some more
 *
 * One that is stopped gets the operation's own time only; or next to none, if the operation gives those up.
 */
void guest_request(struct guest *guest, enum gate_message message, uint32_t timeout_ms,
                   guest_done_fn done, void *userdata);

/* guest_request_range() - the same for RELEASE and CREATE of a part of its memory. */
void guest_request_range(struct guest *guest, enum gate_message message, struct gate_range range,
                         uint32_t timeout_ms, guest_done_fn done, void *userdata);

/* guest_request_step() - STEP; @timeout_ms as for CLOSE. */
void guest_request_step(struct guest *guest, uint32_t n_launches, uint32_t window_ms,
                        uint32_t timeout_ms, guest_done_fn done, void *userdata);

/* guest_request_gifts() - MAP of what it was given and is filled, as much as fits into one message. */
void guest_request_gifts(struct guest *guest, uint32_t timeout_ms, guest_done_fn done,
                         void *userdata);

/* guest_request_take() - TAKE, or only the question whether that is possible. */
void guest_request_take(struct guest *guest, bool is_question, uint32_t timeout_ms,
                        guest_done_fn done, void *userdata);

/* guest_end_request() - whoever waits for an answer has @error instead. */
void guest_end_request(struct guest *guest, int error);

/* guest_receive() - a message from its gate; those of @fds that it takes are -1. -EPROTO: cut it off. */
int guest_receive(struct guest *guest, const void *message, size_t size, int *fds, size_t n_fds);

/* guest_flush() - the connection can take more. */
void guest_flush(struct guest *guest);

#endif
