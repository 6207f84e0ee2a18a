/* SPDX-License-Identifier: Apache-2.0 */
#include "base/container-id.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* podman: libpod-ID, docker: docker-ID.scope or docker/ID, containerd: cri-containerd-ID.scope. */
#define ID_LENGTH (CONTAINER_ID_MAX - 1)

#define DIGITS "0123456789abcdef"

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

bool container_id_find(char id[CONTAINER_ID_MAX], pid_t pid)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[32], text[8192];
        size_t size = 0;
        ssize_t n;

        id[0] = '\0';
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        while (size < sizeof(text) - 1 && (n = read(fd, text + size, sizeof(text) - 1 - size)) > 0)
                size += (size_t)n;
        text[size] = '\0';
        return container_id_find_in(id, text);
}
