/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CONNECTION_H
#define LIB_CONNECTION_H

/*
 * A stream connection to the manager that carries messages: texts that each end
 * with a NUL. Knows nothing of what they say.
 *
 * Every wait has a deadline, a time of CLOCK_MONOTONIC in milliseconds. Signals
 * end no wait.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* docs/control-protocol.md: a message is at most this long. */
#define CONNECTION_MESSAGE_MAX ((size_t)1 << 20)

#define CONNECTION_FOREVER INT64_MAX

/* The manager sends at most so many descriptors with a message. */
#define CONNECTION_FDS_MAX 64

struct connection {
        int fd; /* -1: closed */
        char *bytes;
        size_t size, room;
        size_t taken; /* of @bytes: the message that was handed out, with its NUL */
        int fds[CONNECTION_FDS_MAX];
        size_t n_fds; /* that came with it */
};

#define CONNECTION_CLOSED ((struct connection){ .fd = -1 })

/* connection_deadline() - the time in @timeout_ms milliseconds. */
int64_t connection_deadline(unsigned int timeout_ms);

/*
 * connection_open() - connect to the socket at @path. Errors: -ENAMETOOLONG, -ETIMEDOUT (nobody
 * accepts), those of connect(2).
 */
int connection_open(struct connection *connection, const char *path, int64_t deadline);

/* connection_close() - may be called twice. */
void connection_close(struct connection *connection);

/*
 * connection_is_quiet() - is it open, with nothing unread? Between two calls anything else means
 * that the peer has gone or is out of step.
 */
bool connection_is_quiet(const struct connection *connection);

/* connection_send() - send @text and a NUL. Errors: -EMSGSIZE, -ETIMEDOUT, -ECONNRESET. */
int connection_send(struct connection *connection, const char *text, int64_t deadline);

/*
 * connection_receive() - receive one message
 * @ret_text:  borrowed until the next receive; ends with NUL
 *
 * Errors: -ETIMEDOUT, -ECONNRESET (the peer closed), -EMSGSIZE (longer than the limit), -ENOMEM.
 */
int connection_receive(struct connection *connection, const char **ret_text, size_t *ret_size,
                       int64_t deadline);

/*
 * connection_take_fds() - the descriptors that came with the last message are the caller's
 * @ret_fds:  room for CONNECTION_FDS_MAX. Returns how many.
 */
size_t connection_take_fds(struct connection *connection, int *ret_fds);

#endif
