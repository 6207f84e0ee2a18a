/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/fd-table.h"
#include "base/packet.h"
#include "manager/keeper-start.h"
#include "wire/keeper.h"

/* A keeper that ends just as we connect hangs up on us; the next one is ours. */
#define CONNECT_TRIES 3

struct keeper {
        struct sockaddr_un address;
        char *program;
        struct fd_table table;
        int socket; /* or -1: lost */
        sd_event *event;
        sd_event_source *source;
        keeper_lost_fn lost;
        void *userdata;
};

static void hang_up(struct keeper *keeper)
{
        keeper->source = sd_event_source_disable_unref(keeper->source);
        keeper->socket = fd_close(keeper->socket);
}

/* Talking to it. */

static int connect_once(struct keeper *keeper)
{
        const struct timeval timeout = { .tv_sec = KEEPER_TIMEOUT_MS / 1000,
                                         .tv_usec = KEEPER_TIMEOUT_MS % 1000 * 1000L };
        CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *)&keeper->address, sizeof(keeper->address)) < 0)
                return errno == EAGAIN ? -ETIMEDOUT : -errno;

        keeper->socket = TAKE_FD(fd);
        return 0;
}

static int make_request(struct keeper_packet *ret_request, enum keeper_message message,
                        const char *label)
{
        size_t length = strlen(label);

        if (length >= sizeof(ret_request->label))
                return -ENAMETOOLONG;

        *ret_request = (struct keeper_packet){ .magic = KEEPER_WIRE_MAGIC,
                                               .version = KEEPER_WIRE_VERSION,
                                               .message = (uint16_t)message };
        memcpy(ret_request->label, label, length);
        return 0;
}

static bool is_valid(const struct keeper_packet *answer, size_t size, size_t n_fds)
{
        return size == sizeof(*answer) && answer->magic == KEEPER_WIRE_MAGIC &&
               answer->version == KEEPER_WIRE_VERSION &&
               memchr(answer->label, '\0', sizeof(answer->label)) &&
               (answer->message == KEEPER_ITEM ? n_fds == 1 : n_fds == 0) &&
               (answer->message == KEEPER_ITEM || answer->message == KEEPER_DONE);
}

/* One packet from the keeper; @ret_fd is -1 but for an item. */
static int receive(struct keeper *keeper, struct keeper_packet *ret_answer, int *ret_fd)
{
        union {
                struct keeper_packet answer;
                char space[PACKET_SIZE_MAX];
        } buffer;
        int fds[PACKET_FDS_MAX] = { -1 };
        size_t size, n_fds;
        int r;

        r = packet_receive(keeper->socket, &buffer, &size, fds, &n_fds);
        if (r < 0)
                return r == -EAGAIN ? -ETIMEDOUT : r;
        if (!is_valid(&buffer.answer, size, n_fds)) {
                packet_close_fds(fds, n_fds);
                return -EPROTO;
        }
        *ret_answer = buffer.answer;
        *ret_fd = fds[0];
        return 0;
}

static int send_request(struct keeper *keeper, const struct keeper_packet *request, int fd)
{
        int r = keeper->socket < 0
                        ? -ENOTCONN
                        : packet_send(keeper->socket, request, sizeof(*request), &fd, fd >= 0);

        return r == -EAGAIN ? -ETIMEDOUT : r;
}

static int await_done(struct keeper *keeper, int *ret_error)
{
        struct keeper_packet answer;
        CLEANUP(fd_closep) int fd = -1;
        int r;

        r = receive(keeper, &answer, &fd);
        if (r < 0)
                return r;
        if (answer.message != KEEPER_DONE || answer.error > 0)
                return -EPROTO;
        *ret_error = answer.error;
        return 0;
}

/* Request and answer. After a failure we are not connected: a late answer would be the next one's. */
static int exchange(struct keeper *keeper, const struct keeper_packet *request, int fd,
                    int *ret_error)
{
        int r = send_request(keeper, request, fd);

        if (r == 0)
                r = await_done(keeper, ret_error);
        if (r < 0)
                hang_up(keeper);
        return r;
}

static int learn_item(struct keeper *keeper, bool *ret_done)
{
        struct keeper_packet answer;
        CLEANUP(fd_closep) int fd = -1;
        int r;

        r = receive(keeper, &answer, &fd);
        if (r < 0)
                return r;
        if (answer.message == KEEPER_DONE) {
                *ret_done = true;
                return answer.error;
        }
        r = fd_table_put(&keeper->table, answer.label, fd);
        if (r == 0)
                TAKE_FD(fd);
        return r;
}

static int learn(struct keeper *keeper)
{
        struct keeper_packet request;
        bool done = false;
        int r;

        r = make_request(&request, KEEPER_LIST, "");
        if (r == 0)
                r = send_request(keeper, &request, -1);
        while (r == 0 && !done)
                r = learn_item(keeper, &done);
        return r;
}

static int put_all(struct keeper *keeper)
{
        struct keeper_packet request;
        int error = 0, r = 0;

        for (size_t i = 0; i < keeper->table.n && r == 0 && error == 0; i++) {
                const struct fd_table_entry *entry = &keeper->table.entries[i];

                r = make_request(&request, KEEPER_PUT, entry->label);
                if (r == 0)
                        r = exchange(keeper, &request, entry->fd, &error);
        }
        return r < 0 ? r : error;
}

/* The loop sees nothing of an exchange; what it sees is a hang-up, or a keeper gone mad. */
static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct keeper *keeper = userdata;

        (void)source, (void)fd, (void)events;
        hang_up(keeper);
        if (keeper->lost)
                keeper->lost(keeper, keeper->userdata);
        return 0;
}

static int watch(struct keeper *keeper)
{
        int r;

        if (!keeper->event)
                return 0;
        r = sd_event_add_io(keeper->event, &keeper->source, keeper->socket, EPOLLIN, on_readable,
                            keeper);
        return r < 0 ? r : 0;
}

static bool is_nobody_there(int error)
{
        return error == -ENOENT || error == -ECONNREFUSED;
}

static bool is_hang_up(int error)
{
        return error == -ENODATA || error == -ECONNRESET || error == -EPIPE;
}

/* Connects, and starts a keeper if there is none; then each side knows what the other has. */
static int attach(struct keeper *keeper)
{
        int r;

        hang_up(keeper);
        r = connect_once(keeper);
        if (is_nobody_there(r)) {
                r = keeper_start(keeper->program, &keeper->address);
                if (r == 0)
                        r = connect_once(keeper);
        }
        if (r == 0)
                r = keeper->table.n > 0 ? put_all(keeper) : learn(keeper);
        if (r == 0)
                r = watch(keeper);
        if (r < 0)
                hang_up(keeper);
        return r;
}

int keeper_restore(struct keeper *keeper)
{
        int r = -ECONNRESET;

        for (int i = 0; i < CONNECT_TRIES && (is_hang_up(r) || is_nobody_there(r)); i++)
                r = attach(keeper);
        return r;
}

/* An exchange that is tried once more with a new keeper when the old one is gone. */
static int exchange_surely(struct keeper *keeper, const struct keeper_packet *request, int fd)
{
        int error = 0, r;

        r = exchange(keeper, request, fd, &error);
        if (r < 0) {
                r = keeper_restore(keeper);
                if (r == 0)
                        r = exchange(keeper, request, fd, &error);
        }
        return r < 0 ? r : error;
}

/* The interface. */

int keeper_new(struct keeper **ret_keeper, sd_event *event, const char *socket_path,
               const char *program, keeper_lost_fn lost, void *userdata)
{
        CLEANUP(keeper_freep) struct keeper *keeper = NULL;
        int r;

        if (socket_path[0] != '/')
                return -EINVAL; /* the keeper removes it, from another directory */
        if (strlen(socket_path) >= sizeof(keeper->address.sun_path))
                return -ENAMETOOLONG;

        keeper = calloc(1, sizeof(*keeper));
        if (!keeper)
                return -ENOMEM;

        keeper->socket = -1;
        keeper->event = sd_event_ref(event);
        keeper->lost = lost;
        keeper->userdata = userdata;
        keeper->address.sun_family = AF_UNIX;
        memcpy(keeper->address.sun_path, socket_path, strlen(socket_path) + 1);
        keeper->program = strdup(program);
        if (!keeper->program)
                return -ENOMEM;

        r = keeper_restore(keeper);
        if (r < 0)
                return r;

        *ret_keeper = TAKE(keeper);
        return 0;
}

struct keeper *keeper_free(struct keeper *keeper)
{
        if (!keeper)
                return NULL;

        hang_up(keeper);
        fd_table_deinit(&keeper->table);
        sd_event_unref(keeper->event);
        free(keeper->program);
        free(keeper);
        return NULL;
}

int keeper_put(struct keeper *keeper, const char *label, int fd)
{
        CLEANUP(fd_closep) int copy = -1;
        struct keeper_packet request;
        int r;

        r = make_request(&request, KEEPER_PUT, label);
        if (r < 0)
                return r;

        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (copy < 0)
                return -errno;
        r = fd_table_reserve(&keeper->table);
        if (r == 0)
                r = exchange_surely(keeper, &request, copy);
        if (r == 0)
                r = fd_table_put(&keeper->table, label, copy);
        if (r == 0)
                TAKE_FD(copy);
        return r;
}

int keeper_drop(struct keeper *keeper, const char *label)
{
        struct keeper_packet request;
        int r;

        if (fd_table_find(&keeper->table, label) < 0)
                return -ENOENT;

        r = make_request(&request, KEEPER_DROP, label);
        if (r == 0)
                r = exchange_surely(keeper, &request, -1);
        if (r == 0 || r == -ENOENT) /* -ENOENT: an answer was lost, and we asked again */
                r = fd_table_drop(&keeper->table, label);
        return r;
}

int keeper_find(const struct keeper *keeper, const char *label)
{
        return fd_table_find(&keeper->table, label);
}

pid_t keeper_get_pid(const struct keeper *keeper)
{
        struct ucred peer = { 0 };
        socklen_t size = sizeof(peer);

        getsockopt(keeper->socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
        return peer.pid;
}

size_t keeper_count(const struct keeper *keeper)
{
        return keeper->table.n;
}

/* From the end: what takes the place of a dropped entry has been shown already. */
int keeper_list(struct keeper *keeper, const char *prefix, keeper_each_fn each, void *userdata)
{
        for (size_t i = keeper->table.n; i-- > 0;) {
                struct fd_table_entry entry;
                int r;

                if (i >= keeper->table.n)
                        continue;
                entry = keeper->table.entries[i]; /* @each may change the table */
                if (strncmp(entry.label, prefix, strlen(prefix)) != 0)
                        continue;
                r = each(entry.label, entry.fd, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}
