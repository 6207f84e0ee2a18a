/* SPDX-License-Identifier: Apache-2.0 */
#include "helper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/fd-table.h"
#include "base/packet.h"
#include "helper/keeper-start.h"
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

static int add_label(struct keeper_packet *request, const char *label)
{
        char *to = request->label[request->count];
        size_t length = strlen(label);

        if (length >= KEEPER_LABEL_MAX)
                return -ENAMETOOLONG;

        memset(to, 0, KEEPER_LABEL_MAX); /* it is sent as a whole */
        memcpy(to, label, length);
        request->count++;
        return 0;
}

static bool is_valid(const struct keeper_packet *answer, size_t size, size_t n_fds)
{
        return keeper_packet_is_whole(answer, size) && n_fds == answer->count &&
               answer->message == (n_fds > 0 ? KEEPER_ITEMS : KEEPER_DONE);
}

union answer {
        struct keeper_packet packet;
        char space[PACKET_SIZE_MAX];
};

/* One packet from the keeper; @ret_fds has room for PACKET_FDS_MAX. */
static int receive(struct keeper *keeper, union answer *ret_answer, int *ret_fds)
{
        size_t size, n_fds;
        int r;

        r = packet_receive(keeper->socket, ret_answer, &size, ret_fds, &n_fds);
        if (r < 0)
                return r == -EAGAIN ? -ETIMEDOUT : r;
        if (!is_valid(&ret_answer->packet, size, n_fds)) {
                packet_close_fds(ret_fds, n_fds);
                return -EPROTO;
        }
        return 0;
}

static int send_request(struct keeper *keeper, const struct keeper_packet *request, const int *fds)
{
        int r = keeper->socket < 0
                        ? -ENOTCONN
                        : packet_send(keeper->socket, request, keeper_packet_size(request->count),
                                      fds, fds ? request->count : 0);

        return r == -EAGAIN ? -ETIMEDOUT : r;
}

static int await_done(struct keeper *keeper, int *ret_error)
{
        int fds[PACKET_FDS_MAX];
        union answer answer;
        int r;

        r = receive(keeper, &answer, fds);
        if (r < 0)
                return r;
        if (answer.packet.message != KEEPER_DONE || answer.packet.error > 0) {
                packet_close_fds(fds, answer.packet.count);
                return -EPROTO;
        }
        *ret_error = answer.packet.error;
        return 0;
}

/* Request and answer. After a failure we are not connected: a late answer would be the next one's. */
static int exchange(struct keeper *keeper, const struct keeper_packet *request, const int *fds,
                    int *ret_error)
{
        int r = send_request(keeper, request, fds);

        if (r == 0)
                r = await_done(keeper, ret_error);
        if (r < 0)
                hang_up(keeper);
        return r;
}

/* Takes those that fit; those that are taken are -1. */
static int learn_items(struct keeper *keeper, const struct keeper_packet *items, int *fds)
{
        int r = fd_table_reserve(&keeper->table, items->count);

        for (uint32_t i = 0; r == 0 && i < items->count; i++) {
                r = fd_table_put(&keeper->table, items->label[i], fds[i]);
                if (r == 0)
                        fds[i] = -1;
        }
        return r;
}

static int learn_next(struct keeper *keeper, bool *ret_done)
{
        int fds[PACKET_FDS_MAX];
        union answer answer;
        int r;

        r = receive(keeper, &answer, fds);
        if (r < 0)
                return r;
        if (answer.packet.message == KEEPER_DONE) {
                *ret_done = true;
                return answer.packet.error;
        }
        r = learn_items(keeper, &answer.packet, fds);
        packet_close_fds(fds, answer.packet.count);
        return r;
}

static int learn(struct keeper *keeper)
{
        struct keeper_packet request;
        bool done = false;
        int r;

        keeper_packet_begin(&request, KEEPER_LIST, 0);
        r = send_request(keeper, &request, NULL);
        while (r == 0 && !done)
                r = learn_next(keeper, &done);
        return r;
}

/* As many of the table's entries from @first on as one packet has room for. */
static int put_some(struct keeper *keeper, size_t first, size_t *ret_n)
{
        struct keeper_packet request;
        int fds[KEEPER_BATCH_MAX];
        int error = 0, r = 0;

        keeper_packet_begin(&request, KEEPER_PUT, 0);
        for (size_t i = first; r == 0 && i < keeper->table.n && request.count < KEEPER_BATCH_MAX;
             i++) {
                fds[request.count] = keeper->table.entries[i].fd;
                r = add_label(&request, keeper->table.entries[i].label);
        }
        if (r == 0)
                r = exchange(keeper, &request, fds, &error);
        *ret_n = request.count;
        return r < 0 ? r : error;
}

static int put_all(struct keeper *keeper)
{
        int r = 0;

        for (size_t i = 0, n; r == 0 && i < keeper->table.n; i += n)
                r = put_some(keeper, i, &n);
        return r;
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
static int exchange_surely(struct keeper *keeper, const struct keeper_packet *request,
                           const int *fds)
{
        int error = 0, r;

        r = exchange(keeper, request, fds, &error);
        if (r < 0) {
                r = keeper_restore(keeper);
                if (r == 0)
                        r = exchange(keeper, request, fds, &error);
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

/* Duplicates of @items in @fds, which has a -1 for each that could not be made. */
static int duplicate(const struct keeper_item *items, size_t n, int *fds)
{
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                fds[i] = r < 0 ? -1 : fcntl(items[i].fd, F_DUPFD_CLOEXEC, 3);
                if (fds[i] < 0 && r == 0)
                        r = -errno;
        }
        return r;
}

/* The table has room for them, and their labels are no longer than it takes: this cannot fail. */
static void enter(struct keeper *keeper, const struct keeper_packet *request, int *fds)
{
        for (uint32_t i = 0; i < request->count; i++)
                if (fd_table_put(&keeper->table, request->label[i], fds[i]) == 0)
                        fds[i] = -1;
}

int keeper_put_batch(struct keeper *keeper, const struct keeper_item *items, size_t n)
{
        struct keeper_packet request;
        int fds[KEEPER_BATCH_MAX];
        int r = n <= KEEPER_BATCH_MAX ? 0 : -E2BIG;

        keeper_packet_begin(&request, KEEPER_PUT, 0);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = add_label(&request, items[i].label);
        if (r < 0 || n == 0)
                return r;

        r = duplicate(items, n, fds);
        if (r == 0)
                r = fd_table_reserve(&keeper->table, n);
        if (r == 0)
                r = exchange_surely(keeper, &request, fds);
        if (r == 0)
                enter(keeper, &request, fds);
        packet_close_fds(fds, n);
        return r;
}

int keeper_put(struct keeper *keeper, const char *label, int fd)
{
        return keeper_put_batch(keeper, &(struct keeper_item){ label, fd }, 1);
}

int keeper_drop_batch(struct keeper *keeper, const struct keeper_item *items, size_t n)
{
        struct keeper_packet request;
        int r = n <= KEEPER_BATCH_MAX ? 0 : -E2BIG;

        keeper_packet_begin(&request, KEEPER_DROP, 0);
        for (size_t i = 0; r == 0 && i < n; i++)
                if (fd_table_find(&keeper->table, items[i].label) >= 0)
                        r = add_label(&request, items[i].label);
        if (r < 0 || request.count == 0)
                return r;

        r = exchange_surely(keeper, &request, NULL);
        if (r < 0 && r != -ENOENT) /* -ENOENT: an answer was lost, and we asked again */
                return r;
        for (uint32_t i = 0; i < request.count; i++)
                (void)fd_table_drop(&keeper->table, request.label[i]);
        return 0;
}

int keeper_drop(struct keeper *keeper, const char *label)
{
        if (fd_table_find(&keeper->table, label) < 0)
                return -ENOENT;
        return keeper_drop_batch(keeper, &(struct keeper_item){ label, -1 }, 1);
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
