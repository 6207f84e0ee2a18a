/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-keeper: holds the descriptors that must survive the manager (wire/keeper.h).
 *
 * It starts with its listening socket as descriptor 3, so that the manager can connect
 * at once and nobody waits for a file to appear.
 *
 * It has one poll loop, and nothing waits for the client. While the client has not read
 * an answer, the keeper reads no further request from it. One answer is therefore all
 * the memory that a client can make the keeper use, besides what it puts. The keeper
 * disconnects a client that breaks the protocol, and keeps what it holds.
 */

#include "wire/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd-table.h"
#include "base/packet.h"
#include "base/privilege.h"
#include "keeper/orphans.h"

#define LISTEN_FD 3

/* Whoever started us connects at once, or never. */
#define FIRST_CLIENT_MS 10000

/* Descriptors never given to labels: to accept a connection and to receive one whole message. */
#define FDS_SPARE (PACKET_FDS_MAX + 16)

_Static_assert(FD_TABLE_LABEL_MAX == KEEPER_LABEL_MAX, "a label of the wire is one of the table");

struct keeper {
        struct fd_table table, orphans;
        size_t capacity; /* of descriptors, from RLIMIT_NOFILE */
        int client;      /* or -1 */
        bool is_answering;
        int error; /* the answer, when is_answering */
        bool is_listing;
        size_t n_listed;
};

/* Whom the manager held off its device goes on: nobody else would let it. */
static void hang_up(struct keeper *keeper)
{
        if (keeper->client >= 0) {
                orphans_take(&keeper->orphans, &keeper->table);
                orphans_let_on(&keeper->orphans);
        }
        keeper->client = fd_close(keeper->client);
        keeper->is_answering = false;
        keeper->is_listing = false;
}

static void answer(struct keeper *keeper, int error)
{
        keeper->error = error;
        keeper->is_answering = true;
}

static bool is_valid(const struct keeper_packet *request, size_t size, size_t n_fds)
{
        return keeper_packet_is_whole(request, size) &&
               (request->count > 0) == (request->message != KEEPER_LIST) &&
               n_fds == (request->message == KEEPER_PUT ? request->count : 0);
}

/* Those that do not take the place of another. */
static size_t count_new(const struct keeper *keeper, const struct keeper_packet *request)
{
        size_t n = 0;

        for (uint32_t i = 0; i < request->count; i++)
                n += fd_table_find(&keeper->table, request->label[i]) < 0;
        return n;
}

/* All or none: what may fail comes first. */
static int put(struct keeper *keeper, const struct keeper_packet *request, int *fds)
{
        int r;

        if (keeper->table.n + keeper->orphans.n + count_new(keeper, request) > keeper->capacity)
                return -EMFILE;

        r = fd_table_reserve(&keeper->table, request->count);
        for (uint32_t i = 0; r == 0 && i < request->count; i++) {
                r = fd_table_put(&keeper->table, request->label[i], fds[i]);
                if (r == 0) {
                        fds[i] = -1; /* the table's now */
                        (void)fd_table_drop(&keeper->orphans, request->label[i]);
                }
        }
        return r;
}

static int drop(struct keeper *keeper, const struct keeper_packet *request)
{
        int error = 0;

        for (uint32_t i = 0; i < request->count; i++) {
                int r = fd_table_drop(&keeper->table, request->label[i]);

                if (r < 0)
                        error = r;
        }
        return error;
}

/* False: not something that a client of ours says. */
static bool serve(struct keeper *keeper, const struct keeper_packet *request, int *fds)
{
        switch (request->message) {
        case KEEPER_PUT:
                answer(keeper, put(keeper, request, fds));
                return true;
        case KEEPER_DROP:
                answer(keeper, drop(keeper, request));
                return true;
        case KEEPER_LIST:
                keeper->is_listing = true;
                keeper->n_listed = 0;
                return true;
        default:
                return false;
        }
}

static void receive(struct keeper *keeper)
{
        union {
                struct keeper_packet request;
                char space[PACKET_SIZE_MAX];
        } buffer;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;
        int r;

        r = packet_receive(keeper->client, &buffer, &size, fds, &n_fds);
        if (r == -EAGAIN)
                return;
        if (r < 0) {
                hang_up(keeper);
                return;
        }
        if (!is_valid(&buffer.request, size, n_fds) || !serve(keeper, &buffer.request, fds))
                hang_up(keeper);
        packet_close_fds(fds, n_fds);
}

static int send_items(struct keeper *keeper)
{
        const struct fd_table *table = &keeper->table;
        struct keeper_packet items;
        int fds[KEEPER_BATCH_MAX], r;

        keeper_packet_begin(&items, KEEPER_ITEMS, 0);
        for (size_t i = keeper->n_listed; i < table->n && items.count < KEEPER_BATCH_MAX; i++) {
                memcpy(items.label[items.count], table->entries[i].label, KEEPER_LABEL_MAX);
                fds[items.count++] = table->entries[i].fd;
        }
        r = packet_send(keeper->client, &items, keeper_packet_size(items.count), fds, items.count);
        if (r == 0)
                keeper->n_listed += items.count;
        return r;
}

/* Sends the next packet of what we owe the client: an item, or the answer. */
static int send_next(struct keeper *keeper)
{
        struct keeper_packet done;
        int r;

        if (keeper->is_listing && keeper->n_listed < keeper->table.n)
                return send_items(keeper);
        if (keeper->is_listing) {
                keeper->is_listing = false;
                answer(keeper, 0);
        }

        keeper_packet_begin(&done, KEEPER_DONE, keeper->error);
        r = packet_send(keeper->client, &done, keeper_packet_size(0), NULL, 0);
        if (r == 0)
                keeper->is_answering = false;
        return r;
}

static void send_owed(struct keeper *keeper)
{
        int r = 0;

        while (r == 0 && (keeper->is_listing || keeper->is_answering))
                r = send_next(keeper);
        if (r < 0 && r != -EAGAIN)
                hang_up(keeper);
}

static bool is_ours(int client)
{
        struct ucred peer;
        socklen_t size = sizeof(peer);

        return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
               peer.uid == geteuid();
}

/* A manager that connects is the manager: its predecessor is dead or about to be. */
static void accept_client(struct keeper *keeper)
{
        CLEANUP(fd_closep)
        int client = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (client < 0 || !is_ours(client))
                return;

        hang_up(keeper);
        keeper->client = TAKE_FD(client);
}

static int run_keeper(struct keeper *keeper)
{
        int timeout_ms = FIRST_CLIENT_MS;

        for (;;) {
                bool owes = keeper->is_listing || keeper->is_answering;
                bool has_orphans = keeper->orphans.n > 0;
                struct pollfd fds[] = { { .fd = LISTEN_FD, .events = POLLIN },
                                        { .fd = keeper->client,
                                          .events = owes ? POLLOUT : POLLIN } };
                int n = poll(fds, 2, has_orphans ? ORPHANS_RETRY_MS : timeout_ms);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0 && !has_orphans)
                        return 0; /* nobody came, and we hold nothing */
                if (n < 0)
                        continue;
                if (has_orphans)
                        orphans_let_on(&keeper->orphans);

                if (fds[1].revents && !owes)
                        receive(keeper);
                if (keeper->client >= 0)
                        send_owed(keeper);
                if (fds[0].revents)
                        accept_client(keeper);
                if (keeper->client >= 0)
                        timeout_ms = -1;
                else if (timeout_ms == -1 && keeper->table.n == 0 && keeper->orphans.n == 0)
                        return 0;
        }
}

/* As many descriptors as we may have; the default of 1024 is for programs that use select(). */
static size_t raise_fd_limit(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 0;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
        return limit.rlim_cur > FDS_SPARE ? limit.rlim_cur - FDS_SPARE : 0;
}

/*
 * Gone before the listening socket closes: who connects in between is hung up on, and starts
 * another keeper. Nothing is lost, for we hold nothing.
 */
static void unlink_socket(void)
{
        struct sockaddr_un address = { 0 };
        socklen_t size = sizeof(address);

        if (getsockname(LISTEN_FD, (struct sockaddr *)&address, &size) == 0)
                unlink(address.sun_path);
}

int main(void)
{
        struct keeper keeper = { .client = -1, .capacity = raise_fd_limit() };
        int is_listening = 0;
        socklen_t size = sizeof(is_listening);
        int r;

        (void)privilege_keep(PRIVILEGE_KEEPER);
        if (getsockopt(LISTEN_FD, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) < 0 ||
            !is_listening) {
                fprintf(stderr, "vgpu-keeper: descriptor 3 is not a listening socket: "
                                "vgpud starts this program, you do not need to\n");
                return 2;
        }
        fcntl(LISTEN_FD, F_SETFD, FD_CLOEXEC);
        fcntl(LISTEN_FD, F_SETFL, O_NONBLOCK);

        r = run_keeper(&keeper);
        unlink_socket();
        fd_table_deinit(&keeper.table);
        fd_table_deinit(&keeper.orphans);
        return r < 0 ? 1 : 0;
}
