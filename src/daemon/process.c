/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

static int read_file(pid_t pid, const char *file, char *text, size_t size)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -ESRCH;
        n = read(fd, text, size - 1);
        if (n <= 0)
                return -ESRCH;
        text[n] = '\0';
        return 0;
}

static bool has_same(pid_t pid, pid_t other, const char *file)
{
        struct stat one, two;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        if (stat(path, &one) < 0)
                return false;
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)other, file);
        return stat(path, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

bool process_is_beside(pid_t pid, pid_t other)
{
        return has_same(pid, other, "ns/user") && has_same(pid, other, "ns/pid");
}

bool process_is_stopped(pid_t pid)
{
        char text[1024];
        const char *after;

        if (pid <= 0 || read_file(pid, "stat", text, sizeof(text)) < 0)
                return false;
        after = strrchr(text, ')');
        return after && after[1] == ' ' && (after[2] == 'T' || after[2] == 't');
}

int process_get_start_time(pid_t pid, uint64_t *ret_start_time)
{
        char text[1024], state;
        const char *after;

        if (pid <= 0 || read_file(pid, "stat", text, sizeof(text)) < 0)
                return -ESRCH;
        after = strrchr(text, ')'); /* the name before it may hold anything */
        if (!after || sscanf(after,
                             ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                             " %*s %*s %*s %" SCNu64,
                             &state, ret_start_time) != 2)
                return -ESRCH;
        return state == 'Z' || state == 'X' ? -ESRCH : 0;
}

int process_get_user(pid_t pid, uid_t *ret_user)
{
        char text[4096];
        const char *line;

        if (pid <= 0 || read_file(pid, "status", text, sizeof(text)) < 0)
                return -ESRCH;
        line = strstr(text, "\nUid:");
        return line && sscanf(line, "\nUid: %*u %u", ret_user) == 1 ? 0 : -ESRCH;
}

void process_get_name(pid_t pid, char name[PROCESS_NAME_MAX])
{
        char text[PATH_MAX];
        const char *base;

        if (read_file(pid, "cmdline", text, sizeof(text)) < 0 &&
            read_file(pid, "comm", text, sizeof(text)) < 0) {
                strcpy(name, "?");
                return;
        }
        text[strcspn(text, "\n")] = '\0';
        base = strrchr(text, '/');
        snprintf(name, PROCESS_NAME_MAX, "%.*s", PROCESS_NAME_MAX - 1, base ? base + 1 : text);
        for (char *c = name; *c; c++)
                if (*c < ' ' || *c > '~')
                        *c = '?';
}

int process_open(pid_t pid, uint64_t start_time, int *ret_pidfd)
{
        CLEANUP(fd_closep) int pidfd = -1;
        uint64_t now;
        int r;

        if (pid <= 0)
                return -ESRCH;
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0)
                return -errno;
        r = process_get_start_time(pid, &now); /* of the one that the pidfd holds */
        if (r < 0 || now != start_time)
                return -ESRCH;
        *ret_pidfd = TAKE_FD(pidfd);
        return 0;
}
