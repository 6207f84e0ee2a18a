/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/connection.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define READ_SIZE ((size_t)64 << 10)

static int64_t now_ms(void)
{
        return (int64_t)(clock_now(CLOCK_MONOTONIC) / 1000000);
}

int64_t connection_deadline(unsigned int timeout_ms)
{
        return now_ms() + timeout_ms;
}

/* Milliseconds that are left, in poll()'s terms. */
static int time_left(int64_t deadline)
{
        int64_t left;

        if (deadline == CONNECTION_FOREVER)
                return -1;
        left = deadline - now_ms();
        return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static int wait_for(int fd, short events, int64_t deadline)
{
        struct pollfd poller = { .fd = fd, .events = events };
        int n;

        do
                n = poll(&poller, 1, time_left(deadline));
        while (n < 0 && errno == EINTR);

        return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

/* A connect() that waits for a full backlog is bounded by the time-out for sending. */
static int set_connect_timeout(int fd, int64_t deadline)
{
        int left = time_left(deadline);
        struct timeval timeout = { .tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 };

        if (left <= 0)
                return -ETIMEDOUT;
        return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ? -errno : 0;
}

int connection_open(struct connection *connection, const char *path, int64_t deadline)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(fd_closep) int fd = -1;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path) + 1);

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;

        do {
                r = set_connect_timeout(fd, deadline);
                if (r < 0)
                        return r;
                r = connect(fd, (const struct sockaddr *)&address, sizeof(address));
        } while (r < 0 && errno == EINTR);
        if (r < 0)
                return errno == EAGAIN ? -ETIMEDOUT : -errno;

        connection_close(connection);
        connection->fd = TAKE_FD(fd);
        return 0;
}

static void close_fds(struct connection *connection)
{
        for (size_t i = 0; i < connection->n_fds; i++)
                fd_close(connection->fds[i]);
        connection->n_fds = 0;
}

void connection_close(struct connection *connection)
{
        close_fds(connection);
        free(connection->bytes);
        fd_close(connection->fd);
        *connection = CONNECTION_CLOSED;
}

bool connection_is_quiet(const struct connection *connection)
{
        char byte;

        return connection->fd >= 0 && connection->size == connection->taken &&
               recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
               (errno == EAGAIN || errno == EWOULDBLOCK);
}

static int as_lost(int error)
{
        return error == EPIPE || error == ECONNRESET ? -ECONNRESET : -error;
}

int connection_send(struct connection *connection, const char *text, int64_t deadline)
{
        size_t size = strlen(text) + 1;

        if (size > CONNECTION_MESSAGE_MAX)
                return -EMSGSIZE;

        while (size > 0) {
                ssize_t n = send(connection->fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno == EAGAIN) {
                        int r = wait_for(connection->fd, POLLOUT, deadline);

                        if (r < 0)
                                return r;
                } else if (n < 0 && errno != EINTR) {
                        return as_lost(errno);
                } else if (n > 0) {
                        text += n;
                        size -= (size_t)n;
                }
        }
        return 0;
}

static void forget_taken(struct connection *connection)
{
        if (connection->taken == 0)
                return;
        connection->size -= connection->taken;
        memmove(connection->bytes, connection->bytes + connection->taken, connection->size);
        connection->taken = 0;
}

static int make_room(struct connection *connection)
{
        size_t room = connection->room ? 2 * connection->room : READ_SIZE;
        char *bytes;

        if (connection->size < connection->room)
                return 0;

        bytes = realloc(connection->bytes, room);
        if (!bytes)
                return -ENOMEM;
        connection->bytes = bytes;
        connection->room = room;
        return 0;
}

/* Descriptors that nobody has taken belonged to an answer that is over. */
static void keep_fds(struct connection *connection, struct msghdr *message)
{
        for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
             header = CMSG_NXTHDR(message, header)) {
                size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
                    n > CONNECTION_FDS_MAX)
                        continue;
                close_fds(connection);
                memcpy(connection->fds, CMSG_DATA(header), n * sizeof(int));
                connection->n_fds = n;
        }
}

static ssize_t receive_bytes(struct connection *connection, void *bytes, size_t size)
{
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(CONNECTION_FDS_MAX * sizeof(int))];
        } control;
        struct iovec iov = { bytes, size };
        struct msghdr message = { .msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(connection->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (n > 0)
                keep_fds(connection, &message);
        return n;
}

size_t connection_take_fds(struct connection *connection, int *ret_fds)
{
        size_t n = connection->n_fds;

        memcpy(ret_fds, connection->fds, n * sizeof(int));
        connection->n_fds = 0;
        return n;
}

/* Reads once, at the end of what is there. */
static int read_more(struct connection *connection, int64_t deadline)
{
        ssize_t n;
        int r;

        r = make_room(connection);
        if (r < 0)
                return r;
        r = wait_for(connection->fd, POLLIN, deadline);
        if (r < 0)
                return r;

        n = receive_bytes(connection, connection->bytes + connection->size,
                          connection->room - connection->size);
        if (n == 0)
                return -ECONNRESET;
        if (n < 0)
                return errno == EINTR || errno == EAGAIN ? 0 : as_lost(errno);
        connection->size += (size_t)n;
        return 0;
}

int connection_receive(struct connection *connection, const char **ret_text, size_t *ret_size,
                       int64_t deadline)
{
        size_t searched = 0;

        forget_taken(connection);
        for (;;) {
                size_t fresh = connection->size - searched;
                const char *end = fresh ? memchr(connection->bytes + searched, '\0', fresh) : NULL;
                int r;

                searched = end ? (size_t)(end - connection->bytes) : connection->size;
                if (searched >= CONNECTION_MESSAGE_MAX)
                        return -EMSGSIZE;
                if (end)
                        break;

                r = read_more(connection, deadline);
                if (r < 0)
                        return r;
        }
        connection->taken = searched + 1;
        *ret_text = connection->bytes;
        *ret_size = searched;
        return 0;
}
