/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/run-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "base/paths.h"

#define LOCK_FILE "vgpud.pid"

static int refuse(int fd, const char *directory, struct failure *failure)
{
        char pid[32] = "?";
        ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);

        if (n > 0)
                pid[n] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        return failure_set(failure, -EBUSY, "Busy",
                           "use that one, end it, or choose another --run-dir",
                           "vgpud is running already in %.160s: process %s", directory, pid);
}

int run_lock_take(const char *directory, int *ret_lock, struct failure *failure)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[PATHS_MAX], pid[32];
        int n;

        if (paths_join(path, directory, LOCK_FILE) < 0)
                return -ENAMETOOLONG;
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return failure_set(failure, -errno, "Failed",
                                   "make it writable for the user of vgpud, or choose another "
                                   "--run-dir",
                                   "%.200s: %s", path, strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? refuse(fd, directory, failure) : -errno;

        n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
        if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
                return -errno;
        *ret_lock = TAKE_FD(fd);
        return 0;
}
