/* SPDX-License-Identifier: Apache-2.0 */
/* What strangers send harms nobody else, and nobody stays for longer than his time. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "exporter/host-name.h"
#include "exporter/listen.h"
#include "exporter/live.h"
#include "exporter/scrape.h"
#include "exporter/server.h"
#include "exporter/visits.h"

#define PATIENCE_MS 30000

static char folder[] = "/tmp/openvgpu-test-XXXXXX";
static char where[64];
static struct scrape *scrape;
static struct server *server;

/* How far the clock of our own code has been set forward, in the thread of the test alone. */
static __thread time_t ahead;

/* Sanitizers' runtimes ask for it too. */
#pragma GCC visibility push(default)
int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
#pragma GCC visibility pop

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
        int r = __real_clock_gettime(id, now);

        now->tv_sec += ahead;
        return r;
}

uint64_t __wrap_peer_get(int fd);
uint64_t __wrap_peer_get(int fd)
{
        struct sockaddr_storage room = { 0 };
        socklen_t size = sizeof(room);

        if (getpeername(fd, (struct sockaddr *)&room, &size) < 0 || room.ss_family != AF_INET)
                return 0;
        return ((struct sockaddr_in *)&room)->sin_addr.s_addr;
}

static void start(const struct host_names *names)
{
        const struct server_options options = { .scrape = scrape, .names = names, .rate = 4 };
        char why[160];
        int fd = listen_open(where, why, sizeof(why));

        assert_true(fd >= 0);
        assert_int_equal(server_new(&server, fd, &options), 0);
}

static int set_up(void **state)
{
        static const struct metrics_options options;
        (void)state;

        assert_non_null(mkdtemp(folder));
        setenv("OPENVGPU_RUN", folder, 1); /* nobody is there */
        snprintf(where, sizeof(where), "unix:%s/s", folder);
        assert_int_equal(scrape_new(&scrape, &options), 0);
        start(NULL);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        server = server_free(server);
        scrape = scrape_free(scrape);
        unlink(where + 5);
        return rmdir(folder);
}

static int visit(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        strcpy(address.sun_path, where + 5);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

/* Until the other end has closed it. */
static size_t read_all(int fd, char *to, size_t room)
{
        struct pollfd pollfd = { .fd = fd, .events = POLLIN };
        size_t size = 0;
        ssize_t n;

        do {
                assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
                n = recv(fd, to + size, room - 1 - size, 0);
                size += n > 0 ? (size_t)n : 0;
        } while (n > 0);
        to[size] = '\0';
        return size;
}

static void ask(const char *request, size_t size, char *to, size_t room)
{
        CLEANUP(fd_closep) int fd = visit();

        (void)send(fd, request, size, MSG_NOSIGNAL); /* it may hang up before it has all */
        (void)read_all(fd, to, room);
}

static void expect(const char *request, const char *begin, const char *has)
{
        static char answer[65536];

        ask(request, strlen(request), answer, sizeof(answer));
        if (strncmp(answer, begin, strlen(begin)) != 0 || !strstr(answer, has))
                fail_msg("%s is answered with: %s", request, answer);
}

#define TAIL " HTTP/1.1\r\nHost: x\r\n\r\n"

static void test_requests(void **state)
{
        (void)state;
        expect("GET /metrics" TAIL, "HTTP/1.1 200 ", "\nopenvgpu_up 0\n");
        expect("GET /metrics?x=1&y" TAIL, "HTTP/1.1 200 ", "\nopenvgpu_up 0\n");
        expect("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/html, application/openmetrics-text"
               "\r\n\r\n",
               "HTTP/1.1 200 ", "\n# EOF\n");
        expect("HEAD /metrics" TAIL, "HTTP/1.1 200 ", "Content-Length: ");
        expect("GET /" TAIL, "HTTP/1.1 200 ", "Content-Security-Policy: default-src 'none'");
        expect("GET /../etc/passwd" TAIL, "HTTP/1.1 404 ", "not found");
        expect("GET /metrics/" TAIL, "HTTP/1.1 404 ", "not found");
        expect("GET /%2e%2e/metrics" TAIL, "HTTP/1.1 404 ", "not found");
        expect("GET //metrics" TAIL, "HTTP/1.1 404 ", "not found");
        expect("GET /metrics%00x" TAIL, "HTTP/1.1 404 ", "not found");
        expect("GET /%6detrics" TAIL, "HTTP/1.1 404 ", "not found");
        expect("GET /metrics HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "HTTP/1.1 400 ", "one Host");
        expect("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", "HTTP/1.1 405 ",
               "Allow: GET, HEAD");
        expect("GET /actions" TAIL, "HTTP/1.1 404 ", "not found");
        expect("DELETE /metrics" TAIL, "HTTP/1.1 405 ", "Allow: GET, HEAD");
}

/* The server ends while half of a body has come. */
static void test_it_ends_in_the_middle(void **state)
{
        static const char half[] =
                "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{";
        CLEANUP(fd_closep) int one = visit();
        (void)state;

        assert_int_equal(send(one, half, sizeof(half) - 1, MSG_NOSIGNAL), sizeof(half) - 1);
        server = server_free(server);
        start(NULL);
        expect("GET /metrics" TAIL, "HTTP/1.1 200 ", "\nopenvgpu_up 0\n");
}

/* What is no request is answered by libmicrohttpd, which must not be stopped meanwhile. */
static void test_it_ends_while_nonsense_arrives(void **state)
{
        enum { ROUNDS = 300, VISITORS = 8 };
        int fds[VISITORS];
        (void)state;

        for (size_t round = 0; round < ROUNDS; round++) {
                for (size_t i = 0; i < VISITORS; i++) {
                        fds[i] = visit();
                        (void)send(fds[i], "GET /\r\n\r\n", 9, MSG_NOSIGNAL);
                }
                server = server_free(server);
                for (size_t i = 0; i < VISITORS; i++)
                        fd_close(fds[i]);
                start(NULL);
        }
}

/* A browser that was sent here by a name of somebody else's says so. */
static void test_other_names_are_turned_away(void **state)
{
        static const struct host_names names = { .names = { "gpu01" }, .n = 1 };
        (void)state;

        server = server_free(server);
        start(&names);
        expect("GET /metrics" TAIL, "HTTP/1.1 421 ", "--host NAME");
        expect("GET /" TAIL, "HTTP/1.1 421 ", "--host NAME");
        expect("GET /events" TAIL, "HTTP/1.1 421 ", "--host NAME");
        expect("GET /metrics HTTP/1.1\r\nHost: gpu01:9477\r\n\r\n", "HTTP/1.1 200 ",
               "\nopenvgpu_up 0\n");
        expect("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9477\r\n\r\n", "HTTP/1.1 200 ",
               "\nopenvgpu_up 0\n");
        expect("GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.", "\nopenvgpu_up 0\n");
        server = server_free(server);
        start(NULL);
}

static void test_what_is_no_request_harms_nobody(void **state)
{
        static const char *const junk[] = {
                "GET",
                "GET /metrics HTTP/9.9\r\n\r\n",
                "GET /metrics HTTP/1.1\r\n\r\n", /* no Host */
                "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                "\x16\x03\x01\x02\x01", /* TLS */
                "GET /metrics HTTP/1.1\r\nHost x\r\n\r\n",
        };
        static char answer[65536], request[4 * SERVER_HEADER_MAX];
        (void)state;

        for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
                CLEANUP(fd_closep) int fd = visit();

                (void)send(fd, junk[i], strlen(junk[i]), MSG_NOSIGNAL);
                (void)shutdown(fd, SHUT_WR);
                (void)read_all(fd, answer, sizeof(answer));
                assert_null(strstr(answer, "openvgpu_up 1"));
        }
        memset(request, 'x', sizeof(request));
        memcpy(request, "GET /", 5);
        ask(request, sizeof(request), answer, sizeof(answer));
        assert_null(strstr(answer, "200 OK"));
        expect("GET /metrics" TAIL, "HTTP/1.1 200 ", "\nopenvgpu_up 0\n");
}

/* All places are taken by those who say nothing; their time ends, and others are served. */
static void test_those_who_say_nothing_are_sent_away(void **state)
{
        int fds[VISITS_MAX];
        struct pollfd wake = { .fd = server_get_wake(server), .events = POLLIN };
        struct timespec pause = { .tv_nsec = 1000000 };
        char answer[64];
        (void)state;

        for (size_t i = 0; i < VISITS_MAX; i++) {
                fds[i] = visit();
                assert_int_equal(send(fds[i], "GET /m", 6, MSG_NOSIGNAL), 6);
        }
        assert_int_equal(poll(&wake, 1, PATIENCE_MS), 1);
        while (server_sweep(server) < VISITS_MAX)
                nanosleep(&pause, NULL);
        ahead = VISITS_HEADER_SECONDS_MAX + 1;
        assert_int_equal(server_sweep(server), VISITS_MAX);
        for (size_t i = 0; i < VISITS_MAX; i++) {
                (void)read_all(fds[i], answer, sizeof(answer));
                fd_close(fds[i]);
        }
        while (server_sweep(server) > 0)
                nanosleep(&pause, NULL);
        expect("GET /metrics" TAIL, "HTTP/1.1 200 ", "\nopenvgpu_up 0\n");
}

/* The first event of a stream, up to its empty line. */
static void read_event(int fd, char *to, size_t room)
{
        struct pollfd pollfd = { .fd = fd, .events = POLLIN };
        size_t size = 0;

        to[0] = '\0';
        while (!strstr(to, "\n\n")) {
                ssize_t n;

                assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
                n = recv(fd, to + size, room - 1 - size, 0);
                assert_true(n > 0);
                size += (size_t)n;
                to[size] = '\0';
        }
}

#define CROWD 200

/* Hundreds who say half of a request, or read nothing of their answer, harm neither who asks nor who looks. */
static void test_a_crowd_keeps_nobody_out(void **state)
{
        static const char *const said[] = {
                "GET /m", ("GET /page.js" TAIL), "",
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{"
        };
        static int fds[CROWD];
        char event[4096];
        int stream = visit();
        (void)state;

        assert_true(send(stream, "GET /events" TAIL, sizeof("GET /events" TAIL) - 1, 0) > 0);
        read_event(stream, event, sizeof(event));
        for (size_t i = 0; i < CROWD; i++) {
                fds[i] = visit();
                (void)send(fds[i], said[i % 4], strlen(said[i % 4]), MSG_NOSIGNAL);
                if (i % 20 == 0)
                        expect("GET /metrics" TAIL, "HTTP/1.1 200 ", "\nopenvgpu_up 0\n");
        }
        assert_true(recv(stream, event, sizeof(event) - 1, 0) > 0);
        read_event(stream, event, sizeof(event));
        fd_close(stream);
        for (size_t i = 0; i < CROWD; i++)
                fd_close(fds[i]);
        server = server_free(server); /* all places are free again */
        start(NULL);
}

/* A page that is gone is noticed when it is written to. */
static void wait_for_room(void)
{
        struct timespec pause = { .tv_nsec = 10000000 };
        char answer[4096];
        int fd;

        for (int i = 0; i < PATIENCE_MS / 10; i++) {
                fd = visit();
                assert_true(send(fd, "GET /events" TAIL, sizeof("GET /events" TAIL) - 1, 0) > 0);
                assert_true(recv(fd, answer, sizeof(answer), 0) > 12);
                fd_close(fd);
                if (strncmp(answer, "HTTP/1.1 200", 12) == 0)
                        return;
                nanosleep(&pause, NULL);
        }
        fail_msg("streams that are gone still take room");
}

/* Places are taken by those who never read; they lose them, and who reads keeps his. */
static void test_streams_that_nobody_reads_end(void **state)
{
        int fds[LIVE_STREAMS_MAX];
        struct pollfd pollfd = { .events = POLLIN };
        char event[4096];
        (void)state;

        for (size_t i = 0; i < LIVE_STREAMS_MAX; i++) {
                pollfd.fd = fds[i] = visit();
                assert_true(send(fds[i], "GET /events" TAIL, sizeof("GET /events" TAIL) - 1, 0) >
                            0);
                assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
        }
        expect("GET /events" TAIL, "HTTP/1.1 503 ", "too many");
        assert_true(server_sweep(server) >= LIVE_STREAMS_MAX);
        ahead += LIVE_SECONDS_MAX + 1;
        read_event(fds[0], event, sizeof(event));
        while (recv(fds[0], event, sizeof(event), MSG_DONTWAIT) > 0)
                ;
        assert_true(server_sweep(server) >= LIVE_STREAMS_MAX);
        for (size_t i = 1; i < LIVE_STREAMS_MAX; i++) {
                pollfd = (struct pollfd){ .fd = fds[i], .events = POLLRDHUP };
                assert_int_equal(poll(&pollfd, 1, 0), 1);
        }
        wait_for_room();
        read_event(fds[0], event, sizeof(event));
        for (size_t i = 0; i < LIVE_STREAMS_MAX; i++)
                fd_close(fds[i]);
        server = server_free(server); /* all places are free again */
        start(NULL);
}

static void test_streams_go_on_and_are_bounded(void **state)
{
        int fds[LIVE_STREAMS_MAX];
        char event[4096];
        (void)state;

        for (size_t i = 0; i < LIVE_STREAMS_MAX; i++) {
                fds[i] = visit();
                assert_true(send(fds[i], "GET /events" TAIL, sizeof("GET /events" TAIL) - 1, 0) >
                            0);
        }
        for (size_t i = 0; i < LIVE_STREAMS_MAX; i++) {
                read_event(fds[i], event, sizeof(event));
                if (!strstr(event, "\n\n"))
                        fail_msg("no event: %s", event);
                assert_non_null(strstr(event, "text/event-stream"));
        }
        expect("GET /events" TAIL, "HTTP/1.1 503 ", "too many");
        expect("HEAD /events" TAIL, "HTTP/1.1 404 ", "");
        expect("GET /metrics" TAIL, "HTTP/1.1 200 ", "\nopenvgpu_up 0\n");

        /* Their time does not end, and there is always something new. */
        ahead = 2 * VISITS_SECONDS_MAX;
        (void)server_sweep(server);
        for (int round = 0; round < 2; round++) {
                assert_true(recv(fds[0], event, sizeof(event) - 1, 0) > 0);
                read_event(fds[0], event, sizeof(event));
        }
        for (size_t i = 1; i < LIVE_STREAMS_MAX; i++)
                fd_close(fds[i]);
        wait_for_room();
        /* fds[0] stays open: the server ends with it. */
}

/* From 127.0.0.@last, to @port. The first bytes of the answer are in @ret_answer. */
static int look_from(unsigned int last, in_port_t port, char ret_answer[16])
{
        struct sockaddr_in from = { .sin_family = AF_INET }, to = from;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct pollfd pollfd = { .fd = fd, .events = POLLIN };

        from.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | last);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = port;
        assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
        assert_true(send(fd, "GET /events" TAIL, sizeof("GET /events" TAIL) - 1, 0) > 0);
        assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
        memset(ret_answer, 0, 16);
        assert_true(recv(fd, ret_answer, 12, 0) == 12);
        return fd;
}

static bool has_hung_up(int fd, int patience_ms)
{
        struct pollfd pollfd = { .fd = fd, .events = POLLRDHUP };

        return poll(&pollfd, 1, patience_ms) == 1;
}

/* One address has all places of the page, and reads nothing: others come all the same, up to as many. */
static void test_places_of_the_page_are_shared_out(void **state)
{
        const struct server_options options = { .scrape = scrape, .rate = 4 };
        int first[LIVE_STREAMS_MAX], others[LIVE_STREAMS_MAX / 2 + 1];
        struct server *on_network = NULL;
        struct sockaddr_in address;
        socklen_t size = sizeof(address);
        char answer[16], why[160];
        int fd = listen_open("127.0.0.1:0", why, sizeof(why));
        (void)state;

        assert_true(fd >= 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
        assert_int_equal(server_new(&on_network, fd, &options), 0);
        for (size_t i = 0; i < LIVE_STREAMS_MAX; i++) {
                first[i] = look_from(2, address.sin_port, answer);
                assert_string_equal(answer, "HTTP/1.1 200");
        }
        for (size_t i = 0; i < LIVE_STREAMS_MAX / 2; i++) {
                others[i] = look_from(3, address.sin_port, answer);
                assert_string_equal(answer, "HTTP/1.1 200");
                assert_true(has_hung_up(first[i], PATIENCE_MS)); /* the oldest one */
                assert_false(has_hung_up(first[i + 1], 0));
        }
        others[LIVE_STREAMS_MAX / 2] = look_from(3, address.sin_port, answer);
        assert_string_equal(answer, "HTTP/1.1 503");
        for (size_t i = LIVE_STREAMS_MAX / 2; i < LIVE_STREAMS_MAX; i++)
                assert_false(has_hung_up(first[i], 0));
        for (size_t i = 0; i <= LIVE_STREAMS_MAX / 2; i++)
                fd_close(others[i]);
        for (size_t i = 0; i < LIVE_STREAMS_MAX; i++)
                fd_close(first[i]);
        (void)server_free(on_network);
}

static void test_the_page_names_nobody_else(void **state)
{
        (void)state;
        expect("GET /" TAIL, "HTTP/1.1 200 ", "script-src 'self'");
        expect("GET /page.js" TAIL, "HTTP/1.1 200 ", "new EventSource(\"events\")");
        expect("GET /draw.js" TAIL, "HTTP/1.1 200 ", "new IntersectionObserver(");
        expect("GET /page.css" TAIL, "HTTP/1.1 200 ", "prefers-color-scheme: dark");
        expect("POST /" TAIL, "HTTP/1.1 405 ", "Allow: GET, HEAD");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_requests),
                cmocka_unit_test(test_it_ends_in_the_middle),
                cmocka_unit_test(test_it_ends_while_nonsense_arrives),
                cmocka_unit_test(test_other_names_are_turned_away),
                cmocka_unit_test(test_what_is_no_request_harms_nobody),
                cmocka_unit_test(test_those_who_say_nothing_are_sent_away),
                cmocka_unit_test(test_a_crowd_keeps_nobody_out),
                cmocka_unit_test(test_places_of_the_page_are_shared_out),
                cmocka_unit_test(test_the_page_names_nobody_else),
                cmocka_unit_test(test_streams_that_nobody_reads_end),
                cmocka_unit_test(test_streams_go_on_and_are_bounded),
        };

        return cmocka_run_group_tests_name("exporter-server", tests, set_up, tear_down);
}
