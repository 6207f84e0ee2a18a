/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CONTAINER_H
#define CLI_CONTAINER_H

/* In which container a process is: engines put the id of a container into the name of its control group. */

#include <stdbool.h>
#include <sys/types.h>

/* As engines show it. */
#define CONTAINER_ID_MAX 13

/* container_find() - the first letters of its id in @id; false and "" for a process in none, or gone. */
bool container_find(char id[CONTAINER_ID_MAX], pid_t pid);

/* container_find_in() - the same in @text, the content of /proc/PID/cgroup. */
bool container_find_in(char id[CONTAINER_ID_MAX], const char *text);

#endif
