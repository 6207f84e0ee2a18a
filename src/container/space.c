/* SPDX-License-Identifier: Apache-2.0 */
#include "container/space.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "container/name.h"

/* Linux 6.11 */
#ifndef NS_GET_TGID_FROM_PIDNS
#define NS_GET_TGID_FROM_PIDNS _IOR(NSIO, 0x7, int)
#endif

/* The kernel nests them no deeper. */
#define NAMESPACES_MAX 32

/* How far up the first process is looked for. */
#define PARENTS_MAX 4096

static bool is_same(const struct stat *one, const struct stat *other)
{
        return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static int open_namespace(const char *whose)
{
        char path[48];
        int fd;

        snprintf(path, sizeof(path), "/proc/%s/ns/pid", whose);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? (errno == ENOENT ? -ESRCH : -errno) : fd;
}

/* The one of @fd that is right below ours. Takes @fd. */
static int open_outermost(int fd, struct stat *ret_status)
{
        CLEANUP(fd_closep) int own = open_namespace("self"), at = fd;
        struct stat ours, above;

        if (own < 0)
                return own;
        if (fstat(own, &ours) < 0 || fstat(at, ret_status) < 0)
                return -errno;
        if (is_same(ret_status, &ours))
                return -ENOENT;
        for (int i = 0; i < NAMESPACES_MAX; i++) {
                int parent = ioctl(at, NS_GET_PARENT);

                if (parent < 0)
                        return errno == EPERM ? -ENOENT : -errno;
                if (fstat(parent, &above) < 0 || is_same(&above, &ours)) {
                        fd_close(parent);
                        return TAKE_FD(at);
                }
                fd_close(at);
                at = parent;
                *ret_status = above;
        }
        return -ENOENT;
}

/* What /proc/PID/status says: its parent, and its number one namespace further in; 0: it is in ours. */
static int read_numbers(pid_t pid, pid_t *ret_parent, pid_t *ret_number)
{
        char path[32], text[4096], *line;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        if (container_read(text, sizeof(text), path) < 0)
                return -ESRCH;
        line = strstr(text, "\nPPid:");
        *ret_parent = line ? (pid_t)strtol(line + 6, NULL, 10) : 0;
        line = strstr(text, "\nNSpid:");
        *ret_number = 0;
        if (line)
                (void)sscanf(line, "\nNSpid: %*d%*[\t]%d", ret_number);
        return 0;
}

int container_find_first(pid_t *ret_first, pid_t pid)
{
        pid_t parent, number;

        for (int i = 0; i < PARENTS_MAX; i++) {
                int r = read_numbers(pid, &parent, &number);

                if (r < 0)
                        return r;
                if (number == 0 && i == 0)
                        return -ESRCH;
                if (number == 0)
                        return 0;
                *ret_first = pid;
                if (number == 1 || parent == 0)
                        return 0;
                pid = parent;
        }
        return -ESRCH;
}

int container_space_find(struct container_space *ret_space, pid_t *ret_first, pid_t pid)
{
        CLEANUP(fd_closep) int fd = -1;
        struct stat status;
        char text[16];
        int first;

        snprintf(text, sizeof(text), "%d", (int)pid);
        fd = open_namespace(text);
        if (fd < 0)
                return fd;
        fd = open_outermost(TAKE_FD(fd), &status);
        if (fd < 0)
                return fd;
        *ret_space = (struct container_space){ status.st_dev, status.st_ino };
        first = ioctl(fd, NS_GET_TGID_FROM_PIDNS, 1);
        if (first > 0) {
                *ret_first = first;
                return 0;
        }
        return container_find_first(ret_first, pid);
}
