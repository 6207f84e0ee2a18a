/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/peer.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static uint64_t get_user(int fd)
{
        struct ucred user = { .uid = 0 };
        socklen_t size = sizeof(user);

        (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size);
        return user.uid;
}

uint64_t peer_get(int fd)
{
        union {
                struct sockaddr any;
                struct sockaddr_in ip4;
                struct sockaddr_in6 ip6;
                struct sockaddr_storage room;
        } peer = { .room = { 0 } };
        socklen_t size = sizeof(peer);
        uint64_t prefix;

        if (getpeername(fd, &peer.any, &size) < 0)
                return 0;
        if (peer.any.sa_family == AF_UNIX)
                return get_user(fd);
        if (peer.any.sa_family == AF_INET)
                return peer.ip4.sin_addr.s_addr;
        if (IN6_IS_ADDR_V4MAPPED(&peer.ip6.sin6_addr))
                return peer.ip6.sin6_addr.s6_addr32[3];
        memcpy(&prefix, &peer.ip6.sin6_addr, sizeof(prefix));
        return prefix;
}
