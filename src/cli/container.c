/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/container.h"

#include <stdio.h>
#include <string.h>

/* podman: libpod-ID, docker: docker-ID.scope or docker/ID, containerd: cri-containerd-ID.scope. */
#define ID_LENGTH (CONTAINER_ID_MAX - 1)

#define DIGITS "0123456789abcdef"

bool container_find_in(char id[CONTAINER_ID_MAX], const char *text)
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

bool container_find(struct container *container, pid_t pid)
{
        char path[32], text[8192];

        *container = (struct container){ 0 };
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        if (container_read(text, sizeof(text), path) < 0 || !container_find_in(container->id, text))
                return false;
        if (!container_name_of_podman(container->name, container->id, pid) &&
            !container_name_of_docker(container->name, "", container->id) &&
            !container_name_of_containerd(container->name, "", container->id))
                snprintf(container->name, sizeof(container->name), "%.12s", container->id);
        return true;
}
