/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program-container.h"

const char *program_container_find(struct container *container, pid_t pid, const char *told)
{
        if (told && *told)
                return told;
        return container_find(container, pid) ? container->name : NULL;
}
