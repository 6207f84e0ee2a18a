/* SPDX-License-Identifier: Apache-2.0 */
/* What a descriptor of somebody else is, and that nobody waits for its end. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "base/test.h"
#include "daemon/foreign.h"

enum { USER = 1000, OTHER_USER };

static void assert_no_memory(int fd)
{
        assert_true(fd >= 0);
        assert_false(foreign_is_memory(fd));
        fd_close(fd);
}

static void test_only_memory_is_memory(void **state)
{
        CLEANUP(fd_closep) int memory = memfd_create("test", MFD_CLOEXEC);
        char path[32];
        int pipe[2];
        (void)state;

        assert_true(foreign_is_memory(memory));
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
        assert_no_memory(open(path, O_PATH | O_CLOEXEC));
        assert_no_memory(open("/dev/null", O_RDWR | O_CLOEXEC));
        assert_no_memory(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
        assert_no_memory(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
        assert_no_memory(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        assert_no_memory(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
        assert_no_memory(pipe[0]);
        assert_no_memory(pipe[1]);
        assert_false(foreign_is_memory(-1));
}

/* A connection of which the other end does not read, with data under way. */
static int new_lingerer(int *ret_peer)
{
        const struct linger hour = { 1, 3600 };
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        CLEANUP(fd_closep) int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        static const char bytes[65536];

        assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
        *ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        assert_true(*ret_peer >= 0);
        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
        return fd;
}

static void test_a_socket_that_lingers_keeps_nobody(void **state)
{
        CLEANUP(fd_closep) int peer = -1;
        int fds[3], pipe[2];
        struct pollfd end;
        (void)state;

        assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
        fds[0] = pipe[1];
        fds[1] = -1;
        fds[2] = new_lingerer(&peer);
        foreign_close(fds, 3, USER);
        for (int i = 0; i < 3; i++)
                assert_int_equal(fds[i], -1);
        end = (struct pollfd){ .fd = pipe[0] };
        assert_int_equal(poll(&end, 1, -1), 1); /* POLLHUP: the other one is closed, too */
        fd_close(pipe[0]);
}

/* Of which the end shows. */
static void assert_closed(int fd, uid_t user, int peer)
{
        struct pollfd end = { .fd = peer };

        foreign_close(&fd, 1, user);
        assert_int_equal(poll(&end, 1, -1), 1); /* POLLHUP */
        fd_close(peer);
}

/* A local socket, in which a socket that lingers was sent. */
static int new_wrapped_lingerer(int *ret_peer)
{
        int ends[2], lingerer = new_lingerer(ret_peer);

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(packet_send(ends[1], "x", 1, &lingerer, 1), 0);
        fd_close(lingerer);
        fd_close(ends[1]);
        return ends[0];
}

static void test_who_sends_what_lingers_waits_for_himself_alone(void **state)
{
        enum { N = 40 };
        int fds[N], peers[N], ends[2];
        (void)state;

        for (int i = 0; i < N; i++)
                fds[i] = new_wrapped_lingerer(&peers[i]);
        foreign_close(fds, N, USER);
        for (int i = 0; i < 200; i++) {
                assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
                assert_closed(ends[1], OTHER_USER, ends[0]);
        }
        for (int i = 0; i < N; i++)
                fd_close(peers[i]);
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_closed(ends[1], USER, ends[0]);
}

static void test_who_has_much_that_lingers_is_behind(void **state)
{
        enum { N = 600, N_STUCK = 8 };
        int fds[N], peers[N_STUCK];
        (void)state;

        for (int i = 0; i < N; i++) { /* the last come first */
                fds[i] = i < N - N_STUCK ? open("/dev/null", O_RDONLY | O_CLOEXEC)
                                         : new_wrapped_lingerer(&peers[i - (N - N_STUCK)]);
                assert_true(fds[i] >= 0);
        }
        assert_false(foreign_is_behind(USER, true));
        foreign_close(fds, N, USER);
        assert_true(foreign_is_behind(USER, true));
        assert_false(foreign_is_behind(OTHER_USER, true));
        for (int i = 0; i < N_STUCK; i++)
                fd_close(peers[i]);
        while (foreign_is_behind(USER, true))
                (void)poll(NULL, 0, 1);
}

static size_t n_told;

static void on_count(uid_t user, size_t n, void *userdata)
{
        (void)userdata;
        assert_int_equal(user, USER);
        n_told = n;
}

static void test_how_many_wait_to_be_closed_is_told(void **state)
{
        enum { N = 70 };
        int fds[N], peers[N];
        sd_event *event;
        (void)state;

        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(foreign_begin(event, on_count, NULL), 0);
        for (int i = 0; i < N; i++)
                fds[i] = new_wrapped_lingerer(&peers[i]);
        foreign_close(fds, N, USER);
        assert_int_equal(n_told, N);
        assert_true(foreign_is_behind(USER, false));
        assert_false(foreign_is_behind(USER, true));
        for (int i = 0; i < N; i++)
                fd_close(peers[i]);
        while (n_told > 0)
                assert_true(sd_event_run(event, UINT64_MAX) >= 0);

        fds[0] = new_wrapped_lingerer(&peers[0]);
        foreign_close(fds, 1, USER);
        assert_int_equal(n_told, 1);
        foreign_end();
        assert_int_equal(n_told, 0);
        fd_close(peers[0]);
        sd_event_unref(event);
}

static void test_a_hang_up_is_noticed_and_waits_for_nothing_that_was_sent(void **state)
{
        CLEANUP(fd_closep) int peer = -1;
        int ends[2], lingerer = new_lingerer(&peer);
        struct pollfd end;
        (void)state;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(packet_send(ends[1], "x", 1, &lingerer, 1), 0);
        fd_close(lingerer);
        assert_int_equal(foreign_hang_up(ends[0], USER), -1);
        end = (struct pollfd){ .fd = ends[1], .events = POLLRDHUP };
        assert_int_equal(poll(&end, 1, -1), 1);
        fd_close(ends[1]);
        assert_int_equal(foreign_hang_up(-1, USER), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_memory_is_memory),
                cmocka_unit_test(test_a_socket_that_lingers_keeps_nobody),
                cmocka_unit_test(test_who_sends_what_lingers_waits_for_himself_alone),
                cmocka_unit_test(test_who_has_much_that_lingers_is_behind),
                cmocka_unit_test(test_how_many_wait_to_be_closed_is_told),
                cmocka_unit_test(test_a_hang_up_is_noticed_and_waits_for_nothing_that_was_sent),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
