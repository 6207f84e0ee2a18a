/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/run-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/manager-pid.h"
#include "base/paths.h"
#include "daemon/process.h"

/* A child of a manager that was killed holds the lock, too, until it has become another program. */
#define TRIES           200
#define TRY_INTERVAL_NS 10000000

static void read_holder(int fd, char *pid, size_t size)
{
        ssize_t n = pread(fd, pid, size - 1, 0);

        pid[n > 0 ? n : 0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
}

static bool is_holder_dead(int fd)
{
        char pid[32];
        uint64_t start_time;

        read_holder(fd, pid, sizeof(pid));
        return pid[0] && process_get_start_time(atoi(pid), &start_time) == -ESRCH;
}

static int take(int fd)
{
        const struct timespec interval = { .tv_nsec = TRY_INTERVAL_NS };

        for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
                if (errno != EWOULDBLOCK)
                        return -errno;
                if (i == TRIES || !is_holder_dead(fd))
                        return -EWOULDBLOCK;
                nanosleep(&interval, NULL);
        }
        return 0;
}

static int refuse(int fd, const char *directory, struct failure *failure)
{
        char pid[32];

        read_holder(fd, pid, sizeof(pid));
        return failure_set(
                failure, -EBUSY, "Busy", "use that one, end it, or choose another --run-dir",
                "vgpud is running already in %.160s: process %s", directory, pid[0] ? pid : "?");
}

int run_lock_take(const char *directory, int *ret_lock, struct failure *failure)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[PATHS_MAX], pid[32];
        int n, r;

        if (paths_join(path, directory, MANAGER_PID_FILE) < 0)
                return -ENAMETOOLONG;
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return failure_set(failure, -errno, "Failed",
                                   "make it writable for the user of vgpud, or choose another "
                                   "--run-dir",
                                   "%.200s: %s", path, strerror(errno));
        r = take(fd);
        if (r < 0)
                return r == -EWOULDBLOCK ? refuse(fd, directory, failure) : r;

        n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
        if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
                return -errno;
        *ret_lock = TAKE_FD(fd);
        return 0;
}
