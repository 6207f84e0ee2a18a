/* SPDX-License-Identifier: Apache-2.0 */
#include "base/container-id.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* podman: libpod-ID, docker: docker-ID.scope or docker/ID, containerd: cri-containerd-ID.scope. */
#define ID_LENGTH (CONTAINER_ID_MAX - 1)

#define DIGITS "0123456789abcdef"

#define TEXT_MAX 8192

bool container_id_find_in(char id[CONTAINER_ID_MAX], const char *text)
{
        id[0] = '\0';
        for (const char *at = text; *at; at += strcspn(at, DIGITS)) {
                size_t length = strspn(at, DIGITS);

                if (length == ID_LENGTH) /* the last one: containers can be in containers */
                        snprintf(id, CONTAINER_ID_MAX, "%.*s", ID_LENGTH, at);
                at += length;
        }
        return id[0] != '\0';
}

static bool read_groups(char *text, size_t room, pid_t pid)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[32];
        size_t size = 0;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        while (size < room - 1 && (n = read(fd, text + size, room - 1 - size)) > 0)
                size += (size_t)n;
        text[size] = '\0';
        return true;
}

bool container_id_find(char id[CONTAINER_ID_MAX], pid_t pid)
{
        char text[TEXT_MAX];

        id[0] = '\0';
        return read_groups(text, sizeof(text), pid) && container_id_find_in(id, text);
}

static bool is_roots(const char *folder)
{
        struct stat status;

        return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == 0 &&
               (status.st_mode & 022) == 0;
}

/* From the first folder below @mount on; @path is changed and changed back. */
static bool are_all_roots(char *path, size_t mount)
{
        for (char *slash = path + mount; slash; slash = strchr(slash + 1, '/')) {
                bool is;

                *slash = '\0';
                is = is_roots(path);
                *slash = '/';
                if (!is)
                        return false;
        }
        return is_roots(path);
}

/* Where the hierarchy is mounted that a line of /proc/PID/cgroup is about: "4:name=systemd:/...", "0::/...". */
static bool find_mount(char *path, size_t size, const char *mounts, const char *line)
{
        const char *names = strchr(line, ':'), *end = names ? strchr(names + 1, ':') : NULL;
        struct stat status;
        int n;

        if (!end || end[1] != '/')
                return false;
        names += strncmp(names, ":name=", 6) == 0 ? 6 : 1;
        if (names < end) {
                n = snprintf(path, size, "%s/%.*s", mounts, (int)(end - names), names);
                return n > 0 && (size_t)n < size;
        }
        n = snprintf(path, size, "%s/unified", mounts);
        if (n > 0 && (size_t)n < size && lstat(path, &status) == 0)
                return true;
        n = snprintf(path, size, "%s", mounts);
        return n > 0 && (size_t)n < size;
}

/* The last line that has the id, as where it was found. */
bool container_id_is_roots_in(const char *id, const char *text, const char *mounts)
{
        const char *at = NULL, *line, *group, *end;
        char path[2 * TEXT_MAX];
        size_t mount;
        int n;

        for (const char *next = strstr(text, id); id[0] && next; next = strstr(next + 1, id))
                at = next;
        if (!at)
                return false;
        for (line = at; line > text && line[-1] != '\n'; line--)
                ;
        if (!find_mount(path, sizeof(path), mounts, line))
                return false;
        mount = strlen(path);
        group = strchr(strchr(line, ':') + 1, ':') + 1;
        end = at + strcspn(at, "/\n");
        n = snprintf(path + mount, sizeof(path) - mount, "%.*s", (int)(end - group), group);
        return n > 0 && (size_t)n < sizeof(path) - mount && !strstr(path, "/..") &&
               are_all_roots(path, mount);
}

bool container_id_is_roots(const char *id, pid_t pid)
{
        char text[TEXT_MAX];

        return read_groups(text, sizeof(text), pid) &&
               container_id_is_roots_in(id, text, "/sys/fs/cgroup");
}
