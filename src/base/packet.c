/* SPDX-License-Identifier: Apache-2.0 */
#include "base/packet.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/cleanup.h"

union control {
        struct cmsghdr align;
        char space[CMSG_SPACE(PACKET_FDS_ANY * sizeof(int))];
};

int packet_send(int socket, const void *message, size_t size, const int *fds, size_t n_fds)
{
        struct iovec iov = { .iov_base = (void *)(uintptr_t)message, .iov_len = size };
        struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
        union control control;
        ssize_t n;

        if (size > PACKET_SIZE_MAX || n_fds > PACKET_FDS_MAX)
                return -EMSGSIZE;

        if (n_fds > 0) {
                struct cmsghdr *cmsg;

                memset(&control, 0, sizeof(control));
                header.msg_control = control.space;
                header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                cmsg = CMSG_FIRSTHDR(&header);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
        }

        do
                n = sendmsg(socket, &header, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);

        return n < 0 ? -errno : 0;
}

static size_t take_fds(struct msghdr *header, int *fds)
{
        size_t n_fds = 0;

        for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(header); cmsg; cmsg = CMSG_NXTHDR(header, cmsg)) {
                if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
                        continue;

                size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds + n_fds, CMSG_DATA(cmsg), n * sizeof(int));
                n_fds += n;
        }
        return n_fds;
}

int packet_receive_any(int socket, void *buffer, size_t room, size_t *ret_size, int *ret_fds,
                       size_t *ret_n_fds)
{
        union control control;
        struct iovec iov = { .iov_base = buffer, .iov_len = room };
        struct msghdr header = { .msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control.space,
                                 .msg_controllen = sizeof(control.space) };
        ssize_t n;

        *ret_n_fds = 0;
        do
                n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);

        if (n < 0)
                return -errno;

        *ret_n_fds = take_fds(&header, ret_fds);
        *ret_size = (size_t)n;
        return header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EMSGSIZE : 0;
}

int packet_receive(int socket, void *buffer, size_t *ret_size, int *ret_fds, size_t *ret_n_fds)
{
        int fds[PACKET_FDS_ANY];
        size_t n_fds;
        int r = packet_receive_any(socket, buffer, PACKET_SIZE_MAX, ret_size, fds, &n_fds);

        if (r == 0 && n_fds > PACKET_FDS_MAX)
                r = -EMSGSIZE;
        if (r == 0 && *ret_size == 0)
                r = -ENODATA;
        if (r < 0) {
                packet_close_fds(fds, n_fds);
                return r;
        }
        memcpy(ret_fds, fds, n_fds * sizeof(int));
        *ret_n_fds = n_fds;
        return 0;
}

void packet_close_fds(int *fds, size_t n)
{
        for (size_t i = 0; i < n; i++)
                fds[i] = fd_close(fds[i]);
}
