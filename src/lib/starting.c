/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/starting.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/manager-pid.h"
#include "base/paths.h"

/* The first line of a small file; "" for none. */
static void read_line(const char *path, char *line, size_t room)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        ssize_t n = fd < 0 ? -1 : read(fd, line, room - 1);

        line[n > 0 ? n : 0] = '\0';
        line[strcspn(line, "\n")] = '\0';
}

bool starting_is_under_way(const char *run_directory)
{
        char path[PATHS_MAX], pid[32], name[32];

        if (paths_join(path, run_directory, MANAGER_PID_FILE) < 0)
                return false;
        read_line(path, pid, sizeof(pid));
        if (atoi(pid) <= 0)
                return false;
        /* The number may be another process's by now. */
        (void)snprintf(path, sizeof(path), "/proc/%d/comm", atoi(pid));
        read_line(path, name, sizeof(name));
        return strcmp(name, "vgpud") == 0;
}
