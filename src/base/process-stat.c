/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process-stat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

int process_stat_read(struct process_stat *ret_stat, pid_t id)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[32], text[1024];
        const char *after;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)id);
        fd = id > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return -ESRCH;
        text[n] = '\0';
        after = strrchr(text, ')'); /* the name before it may hold anything */
        return after && sscanf(after,
                               ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                               " %*s %*s %*s %" SCNu64,
                               &ret_stat->state, &ret_stat->start) == 2
                       ? 0
                       : -ESRCH;
}
