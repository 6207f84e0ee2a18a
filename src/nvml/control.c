/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/control.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/trust.h"
#include "nvml/control-answer.h"

/* As long as a manager may be busy with a vGPU before it turns to us. */
#define TIMEOUT_MS 5000

#define CALL_MAX   1024
#define ANSWER_MAX ((size_t)1 << 20) /* of the protocol */
#define READ_SIZE  ((size_t)4096)

static int64_t now_ms(void)
{
        return (int64_t)(clock_now(CLOCK_MONOTONIC) / 1000000);
}

/* A connect() that waits for a full backlog, and a send(), are bounded by this. */
static bool set_timeout(int fd)
{
        struct timeval timeout = { .tv_sec = TIMEOUT_MS / 1000 };

        return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0;
}

static int open_connection(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(fd_closep) int fd = -1;
        char run[PATHS_MAX], path[PATHS_MAX];
        int r;

        if (paths_run_client(run) < 0 || paths_join(path, run, PATHS_CONTROL_SOCKET) < 0 ||
            strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path) + 1);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || !set_timeout(fd))
                return -errno;
        do
                r = connect(fd, (const struct sockaddr *)&address, sizeof(address));
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return -errno;
        return trust_peer(fd) ? TAKE_FD(fd) : -EACCES;
}

static bool send_all(int fd, const char *bytes, size_t n)
{
        while (n > 0) {
                ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

                if (sent < 0 && errno == EINTR)
                        continue;
                if (sent < 0)
                        return false;
                bytes += sent;
                n -= (size_t)sent;
        }
        return true;
}

static bool wait_readable(int fd, int64_t deadline)
{
        struct pollfd poller = { .fd = fd, .events = POLLIN };
        int64_t left;
        int n;

        do {
                left = deadline - now_ms();
                n = poll(&poller, 1, left < 0 ? 0 : (int)left);
        } while (n < 0 && errno == EINTR);
        return n > 0;
}

/* A message ends with NUL, so what is returned is a text; NULL: none came. */
static char *receive(int fd, int64_t deadline)
{
        CLEANUP(freep) char *text = NULL;
        size_t size = 0;

        while (size < ANSWER_MAX) {
                char *more = realloc(text, size + READ_SIZE);
                ssize_t n;

                if (!more)
                        return NULL;
                text = more;
                if (!wait_readable(fd, deadline))
                        return NULL;
                n = recv(fd, text + size, READ_SIZE, 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return NULL;
                if (memchr(text + size, '\0', (size_t)n))
                        return TAKE(text);
                size += (size_t)n;
        }
        return NULL;
}

__attribute__((format(printf, 3, 0))) static bool
format_call(char *text, const char *method, const char *parameters, va_list arguments)
{
        int n = snprintf(text, CALL_MAX, "{\"method\":\"org.openvgpu.%s\",\"parameters\":{",
                         method);
        int m = vsnprintf(text + n, (size_t)(CALL_MAX - n), parameters, arguments);

        if (n + m + (int)sizeof("}}") > CALL_MAX)
                return false;
        strcpy(text + n + m, "}}");
        return true;
}

/* @ret_id: NULL, or for the number of what was made, which the answer has to tell then. */
static nvmlReturn_t exchange(const char *call, unsigned int *ret_id)
{
        nvmlReturn_t r;
        CLEANUP(fd_closep) int fd = open_connection();
        CLEANUP(freep) char *answer = NULL;

        if (fd == -EACCES)
                return NVML_ERROR_NO_PERMISSION;
        if (fd < 0 || !send_all(fd, call, strlen(call) + 1))
                return NVML_ERROR_UNKNOWN;
        answer = receive(fd, now_ms() + TIMEOUT_MS);
        r = answer ? control_answer_get_code(answer) : NVML_ERROR_UNKNOWN;
        if (r == NVML_SUCCESS && ret_id && !control_answer_get_id(answer, ret_id))
                return NVML_ERROR_UNKNOWN;
        return r;
}

__attribute__((format(printf, 3, 0))) static nvmlReturn_t
call_with(const char *method, unsigned int *ret_id, const char *parameters, va_list arguments)
{
        int saved_errno = errno;
        char call[CALL_MAX];
        nvmlReturn_t r = format_call(call, method, parameters, arguments) ? exchange(call, ret_id)
                                                                          : NVML_ERROR_UNKNOWN;

        errno = saved_errno;
        return r;
}

nvmlReturn_t control_call(const char *method, const char *parameters, ...)
{
        va_list arguments;
        nvmlReturn_t r;

        va_start(arguments, parameters);
        r = call_with(method, NULL, parameters, arguments);
        va_end(arguments);
        return r;
}

nvmlReturn_t control_call_for(const char *method, unsigned int *ret_id, const char *parameters, ...)
{
        va_list arguments;
        nvmlReturn_t r;

        va_start(arguments, parameters);
        r = call_with(method, ret_id, parameters, arguments);
        va_end(arguments);
        return r;
}
