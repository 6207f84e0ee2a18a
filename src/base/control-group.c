/* SPDX-License-Identifier: Apache-2.0 */
#include "base/control-group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BESIDE "/sys/fs/cgroup/unified"
#define ALONE  "/sys/fs/cgroup"

const char *control_group_mount(void)
{
        int saved_errno = errno;
        struct stat status;
        bool is_beside = stat(BESIDE, &status) == 0 && S_ISDIR(status.st_mode);

        errno = saved_errno;
        return is_beside ? BESIDE : ALONE;
}

static bool read_text(char *text, size_t size, const char *path)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

        if (n < 0)
                return false;
        text[n] = '\0';
        return true;
}

/* "0::/user.slice/..." is the line of the second version. */
static bool find(char path[CONTROL_GROUP_MAX], pid_t pid)
{
        char name[32], text[4096], *line, *end;

        (void)snprintf(name, sizeof(name), pid ? "/proc/%d/cgroup" : "/proc/self/cgroup", (int)pid);
        if (!read_text(text, sizeof(text), name))
                return false;
        for (line = text; strncmp(line, "0::", 3) != 0; line++) {
                line = strchr(line, '\n');
                if (!line)
                        return false;
        }
        end = strchr(line, '\n');
        if (end)
                *end = '\0';
        return snprintf(path, CONTROL_GROUP_MAX, "%s%s", control_group_mount(),
                        strcmp(line + 3, "/") == 0 ? "" : line + 3) < CONTROL_GROUP_MAX;
}

bool control_group_find(char path[CONTROL_GROUP_MAX], pid_t pid)
{
        int saved_errno = errno;
        bool r = find(path, pid);

        errno = saved_errno;
        return r;
}

bool control_group_is_within(const char *path, const char *group)
{
        size_t n = strlen(group);

        return strncmp(path, group, n) == 0 &&
               (path[n] == '\0' || path[n] == '/' || group[n - 1] == '/');
}

/* A folder that stands for a control group has a list of its processes, too (tests). */
static bool is_listed(const char *group, pid_t pid)
{
        char path[CONTROL_GROUP_MAX + 16], line[32];
        bool is_there = false;
        FILE *file;

        (void)snprintf(path, sizeof(path), "%s/cgroup.procs", group);
        file = fopen(path, "re");
        while (file && !is_there && fgets(line, sizeof(line), file))
                is_there = strtol(line, NULL, 10) == pid;
        if (file)
                fclose(file);
        return is_there;
}

bool control_group_has(const char *group, pid_t pid)
{
        char path[CONTROL_GROUP_MAX];
        int saved_errno = errno;
        bool r = (control_group_find(path, pid) && control_group_is_within(path, group)) ||
                 is_listed(group, pid ? pid : getpid());

        errno = saved_errno;
        return r;
}

int control_group_move(const char *group, pid_t pid)
{
        char path[CONTROL_GROUP_MAX + 16], text[16];
        int n = snprintf(text, sizeof(text), "%d\n", (int)pid);
        CLEANUP(fd_closep) int fd = -1;

        (void)snprintf(path, sizeof(path), "%s/cgroup.procs", group);
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        return write(fd, text, (size_t)n) < 0 ? -errno : 0;
}
