/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* Users are no addresses. */
#define USER (UINT64_C(1) << 63)

union address {
        struct sockaddr any;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
        struct sockaddr_storage room;
};

static uint64_t get_user(int fd)
{
        struct ucred user = { .uid = 0 };
        socklen_t size = sizeof(user);

        (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size);
        return USER | user.uid;
}

/* Of IPv4, also where the socket takes both. */
static bool is_ip4(const union address *address, struct in_addr *ret_address)
{
        if (address->any.sa_family == AF_INET) {
                *ret_address = address->ip4.sin_addr;
                return true;
        }
        if (!IN6_IS_ADDR_V4MAPPED(&address->ip6.sin6_addr))
                return false;
        memcpy(ret_address, &address->ip6.sin6_addr.s6_addr32[3], sizeof(*ret_address));
        return true;
}

/* This machine talks to itself: both ends are sockets that the kernel knows. */

static void name_end(__be32 to[4], const union address *address)
{
        struct in_addr ip4;

        if (is_ip4(address, &ip4))
                to[0] = ip4.s_addr;
        else
                memcpy(to, &address->ip6.sin6_addr, sizeof(address->ip6.sin6_addr));
}

struct question {
        struct nlmsghdr header;
        struct inet_diag_req_v2 wanted;
};

/* The other end, whose own address is our peer's. The port is at the same place in both families. */
static struct question make_question(const union address *ours, const union address *peer)
{
        struct in_addr ip4;
        struct question question = {
                .header = { .nlmsg_len = sizeof(question),
                            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                            .nlmsg_flags = NLM_F_REQUEST },
                .wanted = { .sdiag_family = is_ip4(peer, &ip4) ? AF_INET : AF_INET6,
                            .sdiag_protocol = IPPROTO_TCP,
                            .idiag_states = UINT32_MAX,
                            .id = { .idiag_sport = peer->ip4.sin_port,
                                    .idiag_dport = ours->ip4.sin_port,
                                    .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
        };

        name_end(question.wanted.id.idiag_src, peer);
        name_end(question.wanted.id.idiag_dst, ours);
        return question;
}

static bool find_user(int fd, const union address *peer, uint64_t *ret_user)
{
        CLEANUP(fd_closep)
        int kernel = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
        union address ours = { .room = { 0 } };
        socklen_t size = sizeof(ours);
        struct question question;
        struct {
                struct nlmsghdr header;
                struct inet_diag_msg found;
                char more[1024];
        } answer;

        if (kernel < 0 || getsockname(fd, &ours.any, &size) < 0)
                return false;
        question = make_question(&ours, peer);
        if (send(kernel, &question, sizeof(question), 0) < 0 ||
            recv(kernel, &answer, sizeof(answer), MSG_DONTWAIT) <
                    (ssize_t)(sizeof(answer.header) + sizeof(answer.found)) ||
            answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
                return false;
        *ret_user = USER | answer.found.idiag_uid;
        return true;
}

static bool is_loopback(const union address *address)
{
        struct in_addr ip4;

        if (is_ip4(address, &ip4))
                return (ntohl(ip4.s_addr) >> IN_CLASSA_NSHIFT) == IN_LOOPBACKNET;
        return IN6_IS_ADDR_LOOPBACK(&address->ip6.sin6_addr);
}

uint64_t peer_get(int fd)
{
        union address peer = { .room = { 0 } };
        socklen_t size = sizeof(peer);
        struct in_addr ip4;
        uint64_t who;

        if (getpeername(fd, &peer.any, &size) < 0)
                return 0;
        if (peer.any.sa_family == AF_UNIX)
                return get_user(fd);
        if (is_loopback(&peer) && find_user(fd, &peer, &who))
                return who;
        if (is_ip4(&peer, &ip4))
                return ip4.s_addr;
        memcpy(&who, &peer.ip6.sin6_addr, sizeof(who));
        return who;
}
