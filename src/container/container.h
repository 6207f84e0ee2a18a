/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTAINER_CONTAINER_H
#define CONTAINER_CONTAINER_H

/* In which container a process is: engines put the id of a container into the name of its control group. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "container/name.h"

#define CONTAINER_ID_MAX 65

struct container {
        char id[CONTAINER_ID_MAX];
        /* Safe to print; the first letters of the id if it is not known. */
        char name[CONTAINER_NAME_MAX];
        bool is_known; /* an engine says that it has this process: anybody can make up an id */
};

/* container_find() - false and "" for a process in none, or gone. */
bool container_find(struct container *container, pid_t pid);

/* container_find_in() - the id in @text, the content of /proc/PID/cgroup. */
bool container_find_in(char id[CONTAINER_ID_MAX], const char *text);

#endif
