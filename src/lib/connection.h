/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CONNECTION_H
#define LIB_CONNECTION_H

/*
 * A stream connection to the manager carries messages: texts that each end with a
 * NUL. This file knows nothing of their contents.
 *
 * Every wait has a deadline, a time of CLOCK_MONOTONIC in milliseconds. Signals
 * end no wait.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message is at most this long (docs/control-protocol.md). */
#define CONNECTION_MESSAGE_MAX ((size_t)1 << 20)

#define CONNECTION_FOREVER INT64_MAX

/* The manager sends at most so many descriptors with a message. */
#define CONNECTION_FDS_MAX 64

struct connection {
        int fd; /* -1: closed */
        char *bytes;
        size_t size, room;
        size_t taken; /* bytes of the message that the caller has, with its NUL */
        int fds[CONNECTION_FDS_MAX];
        size_t n_fds; /* descriptors that came with it */
};

#define CONNECTION_CLOSED ((struct connection){ .fd = -1 })

/* connection_deadline() - return the time in @timeout_ms milliseconds from now. */
int64_t connection_deadline(unsigned int timeout_ms);

/*
 * connection_open() - connect to the socket at @path. Errors: -ENAMETOOLONG, -ETIMEDOUT (nobody
 * accepts), those of connect(2).
 */
int connection_open(struct connection *connection, const char *path, int64_t deadline);

/* connection_close() - close the connection, if it is open. */
void connection_close(struct connection *connection);

/*
 * connection_is_quiet() - is the connection open, with nothing to read? Otherwise, between two calls,
 * the peer has gone or is out of step.
 */
bool connection_is_quiet(const struct connection *connection);

/* connection_send() - send @text and a NUL. Errors: -EMSGSIZE, -ETIMEDOUT, -ECONNRESET. */
int connection_send(struct connection *connection, const char *text, int64_t deadline);

/*
 * connection_receive() - receive one message
 * @ret_text:  gets the text with its NUL, borrowed until the next receive
 *
 * Errors: -ETIMEDOUT, -ECONNRESET (the peer closed), -EMSGSIZE (longer than the limit), -ENOMEM.
 */
int connection_receive(struct connection *connection, const char **ret_text, size_t *ret_size,
                       int64_t deadline);

/*
 * connection_take_fds() - hand the descriptors that came with the last message to the caller
 * @ret_fds:  has room for CONNECTION_FDS_MAX. Returns how many there are.
 */
size_t connection_take_fds(struct connection *connection, int *ret_fds);

#endif
