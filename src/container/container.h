/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTAINER_CONTAINER_H
#define CONTAINER_CONTAINER_H

/* In which container a process is, and what its engine calls it. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/container-id.h"
#include "container/name.h"

struct container {
        char id[CONTAINER_ID_MAX];
        /* Safe to print; the first letters of the id if it is not known. */
        char name[CONTAINER_NAME_MAX];
        bool is_known; /* an engine says that it has this process */
};

/*
 * container_find() - false and "" for a process in none, or gone
 * An id is the name of a control group, and users can make those: it counts if an engine says that it has this process, or
 * if root made the group.
 */
bool container_find(struct container *container, pid_t pid);

#endif
