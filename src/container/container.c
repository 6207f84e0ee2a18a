/* SPDX-License-Identifier: Apache-2.0 */
#include "container/container.h"

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

static bool find_name(struct container *container, pid_t pid)
{
        pid_t first;

        if (container_name_of_podman(container->name, container->id, pid))
                return true;
        if (!container_name_of_docker(container->name, "", container->id, &first) &&
            !container_name_of_containerd(container->name, "", container->id, &first))
                return false;
        return container_is_with(pid, first);
}

bool container_find(struct container *container, pid_t pid)
{
        char path[32], text[8192];

        *container = (struct container){ 0 };
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        if (container_read(text, sizeof(text), path) < 0 || !container_find_in(container->id, text))
                return false;
        container->is_known = find_name(container, pid);
        if (!container->is_known)
                snprintf(container->name, sizeof(container->name), "%.12s", container->id);
        return true;
}
