/* SPDX-License-Identifier: Apache-2.0 */
/* mover_probe(): runs `vgpu-mover --probe` and reads what it prints. Blocks: for start-up only. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/child.h"
#include "helper/mover.h"

#define OUTPUT_MAX 16384 /* of some hundred devices */

static int64_t now_ms(void)
{
        return (int64_t)(clock_now(CLOCK_MONOTONIC) / 1000000);
}

/* All that comes until the other end closes, as text. */
static int read_all(int fd, char *text, size_t size, int64_t deadline_ms)
{
        size_t n = 0;

        for (;;) {
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
                int64_t left = deadline_ms - now_ms();
                ssize_t got;

                if (left <= 0)
                        return -ETIMEDOUT;
                if (poll(&poll_fd, 1, (int)left) <= 0)
                        continue;
                got = read(fd, text + n, size - 1 - n);
                if (got < 0 && errno != EINTR)
                        return -errno;
                if (got == 0)
                        break;
                if (got > 0)
                        n += (size_t)got;
                if (n == size - 1)
                        return -EPROTO;
        }
        text[n] = '\0';
        return 0;
}

/* The text before the next tab, into @field of @size bytes. */
static int parse_text(char *field, size_t size, char **line)
{
        const char *text = strsep(line, "\t");

        if (!text || !*text || strlen(text) >= size)
                return -EPROTO;
        memcpy(field, text, strlen(text) + 1);
        return 0;
}

static int parse_number(uint64_t *ret_number, char **line)
{
        const char *text = strsep(line, "\t");
        char *end;

        if (!text || *text < '0' || *text > '9')
                return -EPROTO;
        errno = 0;
        *ret_number = strtoull(text, &end, 10);
        return errno != 0 || *end ? -EPROTO : 0;
}

static int parse_line(struct mover_device *device, char *line)
{
        uint64_t version = 0;
        int r;

        r = parse_text(device->uuid, sizeof(device->uuid), &line);
        if (r == 0)
                r = parse_text(device->pci_bus_id, sizeof(device->pci_bus_id), &line);
        if (r == 0)
                r = parse_number(&device->memory_total, &line);
        if (r == 0)
                r = parse_number(&version, &line);
        if (r == 0)
                r = parse_text(device->name, sizeof(device->name), &line);
        if (r == 0 && line)
                r = parse_number(&device->peers, &line);
        device->driver_version = (uint32_t)version;
        return r;
}

static int parse(struct mover_device **ret_devices, size_t *ret_n, char *text)
{
        CLEANUP(freep) struct mover_device *devices = NULL;
        size_t n = 0, n_lines = 1;
        char *rest = text;

        for (const char *c = text; *c; c++)
                n_lines += *c == '\n';
        devices = calloc(n_lines, sizeof(*devices));
        if (!devices)
                return -ENOMEM;

        for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n")) {
                int r = parse_line(&devices[n++], line);

                if (r < 0)
                        return r;
        }
        *ret_devices = TAKE(devices);
        *ret_n = n;
        return 0;
}

/* A driver that hangs is killed; it may need a moment to die. */
static int reap(pid_t pid, bool must_kill)
{
        int status;

        if (must_kill)
                kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENODEV;
}

int mover_probe(struct mover_device **ret_devices, size_t *ret_n, const char *program,
                const char *driver_path)
{
        const char *const arguments[] = { program, "--probe", NULL };
        int64_t deadline_ms = now_ms() + MOVER_PROBE_TIMEOUT_MS;
        char text[OUTPUT_MAX];
        int ends[2], r, ended;
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;

        CLEANUP(fd_closep) int output = ends[0];
        CLEANUP(fd_closep) int input = ends[1];

        r = child_spawn(&pid, arguments, driver_path, input, STDOUT_FILENO);
        if (r < 0)
                return r;
        fd_close(TAKE_FD(input));

        r = read_all(output, text, sizeof(text), deadline_ms);
        ended = reap(pid, r < 0);
        if (r == 0)
                r = ended;
        return r < 0 ? r : parse(ret_devices, ret_n, text);
}
