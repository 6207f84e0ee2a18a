/* SPDX-License-Identifier: Apache-2.0 */
#include "container/container.h"

#include <stdio.h>

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
        *container = (struct container){ 0 };
        if (!container_id_find(container->id, pid))
                return false;
        container->is_known = find_name(container, pid);
        if (container->is_known)
                return true;
        if (!container_id_is_roots(container->id, pid)) {
                *container = (struct container){ 0 };
                return false;
        }
        snprintf(container->name, sizeof(container->name), "%.*s", CONTAINER_ID_SHORT,
                 container->id);
        return true;
}
