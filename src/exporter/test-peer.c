/* SPDX-License-Identifier: Apache-2.0 */
/* Who a connection is: on this machine a user, whatever the address. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "exporter/peer.h"

#define NOBODY 65534

static struct sockaddr_in6 address;
static socklen_t address_size;

static int listen_on(const void *at, socklen_t size)
{
        int fd = socket(((const struct sockaddr *)at)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, at, size) < 0)
                skip(); /* this machine has no IPv6 */
        address_size = sizeof(address);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &address_size), 0);
        assert_int_equal(listen(fd, 8), 0);
        return fd;
}

static void connect_from(const struct sockaddr_in *from, int fd)
{
        if (from && bind(fd, (const struct sockaddr *)from, sizeof(*from)) < 0)
                _exit(1);
        if (connect(fd, (const struct sockaddr *)&address, address_size) < 0)
                _exit(1);
}

/* In a process of its own, which stays until the connection is known: then who that is. */
static uint64_t get_peer_of(int listener, uid_t user, const struct sockaddr_in *from)
{
        int go_on[2], fd;
        uint64_t peer;
        pid_t pid;

        assert_int_equal(pipe2(go_on, 0), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                char byte;

                close(go_on[1]);
                if (user && setuid(user) < 0)
                        _exit(1);
                fd = socket(address.sin6_family, SOCK_STREAM, 0);
                connect_from(from, fd);
                _exit(read(go_on[0], &byte, 1) == 0 ? 0 : 1);
        }
        fd = accept(listener, NULL, NULL);
        assert_true(fd >= 0);
        peer = peer_get(fd);
        close(go_on[0]);
        close(go_on[1]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(fd);
        return peer;
}

static void check_users(int listener)
{
        uint64_t ours = get_peer_of(listener, 0, NULL);

        assert_true(ours != 0);
        assert_true(get_peer_of(listener, 0, NULL) == ours);
        if (geteuid() == 0)
                assert_true(get_peer_of(listener, NOBODY, NULL) == ours + NOBODY);
        close(listener);
}

static void test_users_of_the_loopback(void **state)
{
        const struct sockaddr_in here = { .sin_family = AF_INET,
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_in other = here;
        int listener = listen_on(&here, sizeof(here));
        uint64_t ours = get_peer_of(listener, 0, NULL);
        (void)state;

        other.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 7);
        assert_true(get_peer_of(listener, 0, &other) == ours);
        check_users(listener);
}

static void test_users_of_the_loopback_of_ipv6(void **state)
{
        const struct sockaddr_in6 here = { .sin6_family = AF_INET6,
                                           .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        (void)state;

        check_users(listen_on(&here, sizeof(here)));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_users_of_the_loopback),
                cmocka_unit_test(test_users_of_the_loopback_of_ipv6),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
