/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What strangers send to vgpu-exporter, byte for byte, over sockets to a server in this process, through
 * libmicrohttpd. Of the input, four bytes are no bytes of a request but what the stranger does:
 *
 *     1C  he says that he sends no more
 *     1D  he goes on with another connection, up to VISITORS_MAX
 *     1E  what was before is sent by itself
 *     1B  the server ends, while all are there
 *
 * Each gets one answer, which is one of ours or of libmicrohttpd's, with our headers only; afterwards the server
 * answers others, and all places are free.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "exporter/host-name.h"
#include "exporter/scrape.h"
#include "exporter/server.h"
#include "fuzz/target.h"

#define VISITORS_MAX 6
#define ANSWER_MAX   (1u << 18)
#define PATIENCE_MS  60000
#define MOMENT_MS    2
#define METRICS      "GET /metrics HTTP/1.1\r\nHost: gpu01\r\n\r\n"

static struct scrape *scrape;
static struct server *server;
static struct sockaddr_un address;
static socklen_t address_size;

static void start(void)
{
        static const struct host_names names = { .names = { "gpu01" }, .n = 1 };
        const struct server_options options = { .scrape = scrape, .names = &names, .rate = 10 };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        address_size = sizeof(address);
        assert(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) ==
               0); /* the kernel names it */
        assert(getsockname(fd, (struct sockaddr *)&address, &address_size) == 0);
        assert(listen(fd, VISITORS_MAX) == 0);
        assert(server_new(&server, fd, &options) == 0);
}

static int visit(void)
{
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert(connect(fd, (struct sockaddr *)&address, address_size) == 0);
        return fd;
}

/* What is said to who does not listen any more is lost. */
static void say(int fd, const uint8_t *data, size_t size)
{
        if (size > 0)
                (void)send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool is_stream(const char *answer)
{
        return strstr(answer, "Content-Type: text/event-stream\r\n");
}

/* A fuzzer has signals. */
static bool is_readable(int fd, int within_ms)
{
        struct pollfd pollfd = { .fd = fd, .events = POLLIN };
        int n;

        do
                n = poll(&pollfd, 1, within_ms);
        while (n < 0 && errno == EINTR);
        return n == 1;
}

/*
 * Until the other end has closed it; of a stream, up to its first event. Who has heard nothing for a moment says that he
 * sends no more: not at once, because libmicrohttpd may then leave out what he has asked before.
 */
static size_t read_answer(int fd, char *answer)
{
        size_t size = 0;
        ssize_t n;

        answer[0] = '\0';
        do {
                if (!is_readable(fd, MOMENT_MS))
                        (void)shutdown(fd, SHUT_WR);
                if (!is_readable(fd, PATIENCE_MS)) {
                        fprintf(stderr, "no answer, or no end of it: %s\n", answer);
                        abort();
                }
                n = recv(fd, answer + size, ANSWER_MAX - 1 - size, 0);
                size += n > 0 ? (size_t)n : 0;
                answer[size] = '\0';
        } while (n > 0 && !(is_stream(answer) && strstr(answer, "\n\n")));
        return size;
}

static bool is_known(const char *const *known, size_t n, const char *text)
{
        for (size_t i = 0; i < n; i++)
                if (strncmp(text, known[i], strlen(known[i])) == 0)
                        return true;
        return false;
}

#define IS_KNOWN(table, text) is_known(table, sizeof(table) / sizeof((table)[0]), text)

/* Nothing of a request gets into the header of its answer. */
static void check_header(const char *line, const char *end)
{
        static const char *const known[] = {
                "Date: ",
                "Connection: ",
                "Content-Length: ",
                "Content-Type: ",
                "Cache-Control: ",
                "X-Content-Type-Options: ",
                "Referrer-Policy: ",
                "Allow: ",
                "Content-Security-Policy: ",
                "Transfer-Encoding: ",
        };

        for (line = strstr(line, "\r\n") + 2; line < end; line = strstr(line, "\r\n") + 2)
                if (!IS_KNOWN(known, line)) {
                        fprintf(stderr, "a header that is not ours: %s\n", line);
                        abort();
                }
}

/* @answer ends with a zero. */
static void check_answer(const char *answer, size_t size)
{
        static const char *const known[] = {
                "200", "400", "403", "404", "405", "411", "413", "414",
                "415", "421", "429", "431", "500", "501", "503", "505"
        };
        const char *end = strstr(answer, "\r\n\r\n");

        if (size == 0)
                return;
        while (end && strncmp(answer, "HTTP/1.1 100 ", 13) == 0) {
                answer = end + 4;
                end = strstr(answer, "\r\n\r\n");
        }
        if (*answer == '\0')
                return;
        if (strncmp(answer, "HTTP/1.", 7) != 0 || !end || !IS_KNOWN(known, answer + 9)) {
                fprintf(stderr, "what is no answer: %s\n", answer);
                abort();
        }
        check_header(answer, end + 2);
        assert(strncmp(answer + 9, "200", 3) != 0 ||
               strstr(answer, "X-Content-Type-Options: nosniff\r\n"));
}

/* Returns whether it was a stream. */
static bool leave(int fd, bool is_serving)
{
        static char answer[ANSWER_MAX];
        size_t size = read_answer(fd, answer);

        if (is_serving)
                check_answer(answer, size);
        fd_close(fd);
        return is_stream(answer);
}

static void ask_for_metrics(void)
{
        static char answer[ANSWER_MAX];
        int fd = visit();

        say(fd, (const uint8_t *)METRICS, strlen(METRICS));
        (void)read_answer(fd, answer);
        fd_close(fd);
        assert(strncmp(answer, "HTTP/1.1 200 ", 13) == 0 && strstr(answer, "\nopenvgpu_up 0\n"));
}

/* The first scrape starts a thread that stays. */
static void prepare(void)
{
        static const struct metrics_options options = { .has_processes = true };

        (void)setenv("OPENVGPU_RUN", "/nowhere", 1);
        assert(scrape_new(&scrape, &options) == 0);
        start();
        ask_for_metrics();
        server = server_free(server);
}

/* A page that is gone is noticed when it is written to, so a stream may be there still. */
static void check_that_all_have_left(void)
{
        for (int i = 0; server_sweep(server) > 0; i++) {
                assert(i < PATIENCE_MS);
                (void)usleep(i < 100 ? 10 : 1000);
        }
}

/* Returns false if the server is to end. */
static bool play(int *visitors, size_t *n, const uint8_t *data, size_t size)
{
        size_t begin = 0;

        for (size_t i = 0; i < size; i++) {
                int visitor = visitors[*n - 1];

                if (data[i] < 0x1b || data[i] > 0x1e)
                        continue;
                say(visitor, data + begin, i - begin);
                begin = i + 1;
                if (data[i] == 0x1b)
                        return false;
                if (data[i] == 0x1c)
                        (void)shutdown(visitor, SHUT_WR);
                if (data[i] == 0x1d && *n < VISITORS_MAX)
                        visitors[(*n)++] = visit();
        }
        say(visitors[*n - 1], data + begin, size - begin);
        return true;
}

static unsigned int count_threads(void)
{
        DIR *folder = opendir("/proc/self/task");
        unsigned int n = 0;

        assert(folder);
        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

/* What was asked for may take longer than the server lives: it must not be taken for the next one's. */
static void wait_for_threads(unsigned int n)
{
        for (int i = 0; count_threads() > n; i++) {
                assert(i < PATIENCE_MS);
                (void)usleep(i < 100 ? 10 : 1000);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int visitors[VISITORS_MAX];
        bool is_serving, has_stream = false;
        unsigned int n_threads;
        size_t n = 0;

        if (!scrape)
                prepare();
        n_threads = count_threads();
        start();
        visitors[n++] = visit();
        is_serving = play(visitors, &n, data, size);
        if (is_serving)
                ask_for_metrics();
        else
                server = server_free(server);
        for (size_t i = 0; i < n; i++)
                has_stream |= leave(visitors[i], is_serving);
        if (is_serving && !has_stream)
                check_that_all_have_left();
        server = server_free(server);
        wait_for_threads(n_threads);
        return 0;
}
