/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "base/paths.h"
#include "base/trust.h"

/* A manager that is there answers at once. */
#define ANSWER_MS 20000

int door_connect(char *ret_text)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(fd_closep) int socket_fd = -1;
        char run[PATHS_MAX], path[PATHS_MAX];
        int r;

        r = paths_run(run);
        if (r == 0)
                r = paths_join(path, run, PATHS_GATE_SOCKET);
        if (r == 0 && strlen(path) >= sizeof(address.sun_path))
                r = -ENAMETOOLONG;
        if (r < 0) {
                snprintf(ret_text, GATE_TEXT_MAX, "the run directory's name is too long");
                return r;
        }
        memcpy(address.sun_path, path, strlen(path) + 1);

        socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (socket_fd < 0 || connect(socket_fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
                r = -errno;
                snprintf(ret_text, GATE_TEXT_MAX, "no manager answers at %.160s (%s); start vgpud",
                         path, strerrordesc_np(-r));
                return r;
        }
        if (!trust_peer(socket_fd)) {
                snprintf(
                        ret_text, GATE_TEXT_MAX,
                        "the process that answers at %.160s belongs neither to root nor to you; 'vgpu run' says where to look",
                        path);
                return -EPERM;
        }
        if (fcntl(socket_fd, F_SETFL, 0) < 0)
                return -errno;
        return TAKE_FD(socket_fd);
}

/* What does not fit is no size: the manager says so of what does. */
static void copy(char *to, size_t room, const char *variable)
{
        const char *value = getenv(variable);

        snprintf(to, room, "%s", value ? value : "");
}

static int understand(const void *message, size_t size, char ret_vgpu[GATE_VGPU_NAME_MAX],
                      char *ret_text)
{
        const union {
                struct gate_header header;
                struct gate_made made;
                struct gate_refused refused;
        } *answer = message;

        snprintf(ret_text, GATE_TEXT_MAX, "the manager is of another version (%s here)",
                 OPENVGPU_VERSION);
        if (size < sizeof(answer->header) || answer->header.magic != GATE_WIRE_MAGIC)
                return -EPROTO;
        if (answer->header.message == GATE_REFUSED && size == sizeof(answer->refused)) {
                snprintf(ret_text, GATE_TEXT_MAX, "%.*s", GATE_TEXT_MAX - 1, answer->refused.text);
                return -EACCES;
        }
        if (answer->header.message != GATE_MADE || size != sizeof(answer->made) ||
            !memchr(answer->made.vgpu, '\0', sizeof(answer->made.vgpu)))
                return -EPROTO;
        memcpy(ret_vgpu, answer->made.vgpu, GATE_VGPU_NAME_MAX);
        return 0;
}

static int wait_without_end(int socket, int timeout_ms)
{
        struct pollfd poll_fd = { .fd = socket, .events = POLLIN };

        return poll(&poll_fd, 1, timeout_ms) == 0 ? -ETIMEDOUT : 0;
}

int door_order(door_wait wait, char ret_vgpu[GATE_VGPU_NAME_MAX], char *ret_text)
{
        struct gate_order order = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_ORDER } };
        CLEANUP(fd_closep) int socket = door_connect(ret_text);
        _Alignas(8) char message[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX], r;
        size_t size, n_fds;

        if (socket < 0)
                return socket;
        copy(order.frame_buffer, sizeof(order.frame_buffer), "OPENVGPU_FB");
        copy(order.share, sizeof(order.share), "OPENVGPU_SHARE");
        r = packet_send(socket, &order, sizeof(order), NULL, 0);
        if (r == 0)
                r = (wait ? wait : wait_without_end)(socket, ANSWER_MS);
        if (r == 0)
                r = packet_receive(socket, message, &size, fds, &n_fds);
        if (r < 0) {
                snprintf(ret_text, GATE_TEXT_MAX,
                         "the manager hung up (%s); the log of vgpud says why",
                         strerrordesc_np(-r));
                return r;
        }
        packet_close_fds(fds, n_fds);
        return understand(message, size, ret_vgpu, ret_text);
}
