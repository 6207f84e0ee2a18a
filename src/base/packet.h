/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PACKET_H
#define BASE_PACKET_H

/*
 * One message and its file descriptors over a SOCK_SEQPACKET socket.
 *
 * Libc only, no allocation, safe in a guest process. Received descriptors are
 * close-on-exec. SIGPIPE is never raised.
 */

#include <stdbool.h>
#include <stddef.h>

/* Of our own messages; the kernel lets a message carry PACKET_FDS_ANY (SCM_MAX_FD in net/scm.h). */
#define PACKET_FDS_MAX 64
#define PACKET_FDS_ANY 253

/* Greatest message of all our protocols: fits the kernel's default socket buffer many times. */
#define PACKET_SIZE_MAX 8192

/*
 * packet_send() - send @size bytes and @n_fds descriptors (which stay the caller's).
 * Waits while the socket's buffer is full, unless the socket is non-blocking.
 * Errors: -EAGAIN (non-blocking and full), -EPIPE or -ECONNRESET (the peer is gone).
 */
int packet_send(int socket, const void *message, size_t size, const int *fds, size_t n_fds);

/*
 * packet_receive() - receive one message.
 * @buffer:     at least PACKET_SIZE_MAX bytes
 * @ret_size:   bytes of the message
 * @ret_fds:    room for PACKET_FDS_MAX; the caller owns what arrives
 * Errors: -ENODATA (the peer closed), -EAGAIN (non-blocking and empty), -EMSGSIZE (message or
 * descriptors did not fit: nothing is handed out), -ECONNRESET.
 */
int packet_receive(int socket, void *buffer, size_t *ret_size, int *ret_fds, size_t *ret_n_fds);

/*
 * packet_receive_any() - what a stranger sends, on a socket of any type: all descriptors that come are
 * handed out, also when it fails, so that the caller decides who closes them
 * @room:      of @buffer
 * @ret_size:  0: the peer closed, or the message is empty
 * @ret_fds:   room for PACKET_FDS_ANY
 * Errors: -EAGAIN, -ECONNRESET; -EMSGSIZE, what came did not fit.
 */
int packet_receive_any(int socket, void *buffer, size_t room, size_t *ret_size, int *ret_fds,
                       size_t *ret_n_fds);

/* packet_close_fds() - close @n descriptors and set each to -1. */
void packet_close_fds(int *fds, size_t n);

#endif
