/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PROGRAM_CONTAINER_H
#define CLI_PROGRAM_CONTAINER_H

#include "container/container.h"

/*
 * program_container_find() - the container that a program is in: its name as @told by vgpud, which read it when the
 * program joined, else what can be read here. NULL: in none. The result may be in @container.
 */
const char *program_container_find(struct container *container, pid_t pid, const char *told);

#endif
