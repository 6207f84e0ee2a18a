/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Those who come at once: the server takes them as quickly as it can send others away. */
#define BACKLOG     512
#define ADDRESS_MAX 64

/* For the owner and the group, who is who may scrape. */
#define SOCKET_MODE 0660

struct address {
        union {
                struct sockaddr any;
                struct sockaddr_in ip4;
                struct sockaddr_in6 ip6;
                struct sockaddr_un path;
                struct sockaddr_storage room;
        } is;
        socklen_t size;
};

static int parse_path(const char *path, struct address *address)
{
        address->is.path.sun_family = AF_UNIX;
        address->size = sizeof(address->is.path);
        if (*path != '/')
                return -EINVAL;
        if (strlen(path) >= sizeof(address->is.path.sun_path))
                return -ENAMETOOLONG;
        strcpy(address->is.path.sun_path, path);
        return 0;
}

/* glibc takes a port beyond the last for one that is less. */
static bool is_port(const char *text)
{
        return strspn(text, "0123456789") == strlen(text) && strlen(text) >= 1 &&
               strlen(text) <= 5 && atoi(text) <= UINT16_MAX;
}

/* Numbers only: nobody is asked what a name means. */
static int parse_port(const char *where, struct address *address)
{
        const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                        .ai_socktype = SOCK_STREAM };
        const char *colon = strrchr(where, ':'), *begin = where;
        size_t length = colon ? (size_t)(colon - where) : 0;
        struct addrinfo *found;
        char host[ADDRESS_MAX];

        if (length >= 2 && where[0] == '[' && where[length - 1] == ']') {
                begin++;
                length -= 2;
        }
        if (length == 0 || length >= sizeof(host) || !is_port(colon + 1))
                return -EINVAL;
        memcpy(host, begin, length);
        host[length] = '\0';
        if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
                return -EINVAL;
        memcpy(&address->is, found->ai_addr, found->ai_addrlen);
        address->size = found->ai_addrlen;
        freeaddrinfo(found);
        return 0;
}

/* Left behind: there is a socket, and nobody at its other end. */
static void remove_left(const struct address *address)
{
        CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct stat st;

        if (lstat(address->is.path.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
                return;
        if (connect(fd, &address->is.any, address->size) < 0 && errno == ECONNREFUSED)
                (void)unlink(address->is.path.sun_path);
}

static int open_at(const struct address *address)
{
        CLEANUP(fd_closep)
        int fd = socket(address->is.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int is_on = 1;

        if (fd < 0)
                return -errno;
        if (address->is.any.sa_family == AF_UNIX)
                remove_left(address);
        else
                (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof(is_on));
        if (bind(fd, &address->is.any, address->size) < 0)
                return -errno;
        if (address->is.any.sa_family == AF_UNIX &&
            chmod(address->is.path.sun_path, SOCKET_MODE) < 0)
                return -errno;
        if (listen(fd, BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* A file of another kind stays where it is, and so does a socket on which somebody listens. */
static const char *explain_path(const struct address *address, int error)
{
        struct stat st;

        switch (error) {
        case -EADDRINUSE:
                return lstat(address->is.path.sun_path, &st) == 0 && !S_ISSOCK(st.st_mode)
                               ? "there is a file of that name; choose another path"
                               : "another program listens there, maybe another vgpu-exporter; stop "
                                 "that, or choose another path";
        case -ENOENT:
                return "its folder is not there; make it, or choose another path";
        case -EACCES:
        case -EROFS:
                return "this user may not make files in its folder; choose another path";
        default:
                return strerrordesc_np(-error);
        }
}

static const char *explain_port(int error)
{
        switch (error) {
        case -EADDRINUSE:
                return "another program has this port, maybe another vgpu-exporter; stop that, or "
                       "choose another port with --listen ADDRESS:PORT";
        case -EADDRNOTAVAIL:
                return "this machine does not have that address; 'ip address' shows which it has";
        case -EACCES:
                return "ports below 1024 are for root; choose a higher one";
        default:
                return strerrordesc_np(-error);
        }
}

int listen_open(const char *where, char *why, size_t room)
{
        bool is_path = strncmp(where, "unix:", 5) == 0;
        struct address address = { .size = 0 };
        int r = is_path ? parse_path(where + 5, &address) : parse_port(where, &address);

        if (r < 0) {
                snprintf(why, room,
                         r == -ENAMETOOLONG ? "its path is too long for a socket"
                                            : "it is neither ADDRESS:PORT, with numbers, nor "
                                              "unix:/PATH");
                return r;
        }
        r = open_at(&address);
        if (r < 0)
                snprintf(why, room, "%s", is_path ? explain_path(&address, r) : explain_port(r));
        return r;
}

#define GIVEN_FIRST 3

static long get_number(const char *variable)
{
        const char *text = getenv(variable);

        return text ? strtol(text, NULL, 10) : 0;
}

static bool is_listening(int fd)
{
        int type = 0, is_listening = 0;
        socklen_t size = sizeof(type);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
               getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && is_listening;
}

int listen_take_given(char *why, size_t room)
{
        long n = get_number("LISTEN_PID") == getpid() ? get_number("LISTEN_FDS") : 0;

        if (n == 0)
                return -ENOENT;
        if (n != 1 || !is_listening(GIVEN_FIRST)) {
                snprintf(why, room,
                         "it takes one socket that listens; systemd gives ListenStream=");
                return -EINVAL;
        }
        if (fcntl(GIVEN_FIRST, F_SETFD, FD_CLOEXEC) < 0 ||
            fcntl(GIVEN_FIRST, F_SETFL, O_NONBLOCK) < 0) {
                snprintf(why, room, "%s", strerrordesc_np(errno));
                return -EINVAL;
        }
        return GIVEN_FIRST;
}

char *listen_name(int fd, const char *scheme, char *to, size_t room)
{
        struct address address = { .size = sizeof(address.is) };
        char host[INET6_ADDRSTRLEN] = "?";

        (void)getsockname(fd, &address.is.any, &address.size);
        if (address.is.any.sa_family == AF_UNIX)
                snprintf(to, room, "unix:%s", address.is.path.sun_path);
        else if (address.is.any.sa_family == AF_INET6)
                snprintf(to, room, "%s://[%s]:%u", scheme,
                         inet_ntop(AF_INET6, &address.is.ip6.sin6_addr, host, sizeof(host)),
                         ntohs(address.is.ip6.sin6_port));
        else
                snprintf(to, room, "%s://%s:%u", scheme,
                         inet_ntop(AF_INET, &address.is.ip4.sin_addr, host, sizeof(host)),
                         ntohs(address.is.ip4.sin_port));
        return to;
}

bool listen_is_local(int fd)
{
        struct address address = { .size = sizeof(address.is) };

        if (getsockname(fd, &address.is.any, &address.size) < 0)
                return false;
        if (address.is.any.sa_family == AF_INET)
                return ntohl(address.is.ip4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
        if (address.is.any.sa_family == AF_INET6)
                return IN6_IS_ADDR_LOOPBACK(&address.is.ip6.sin6_addr);
        return address.is.any.sa_family == AF_UNIX;
}
