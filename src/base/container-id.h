/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CONTAINER_ID_H
#define BASE_CONTAINER_ID_H

/* In which container a process is: engines put the id of a container into the name of its control group. */

#include <stdbool.h>
#include <sys/types.h>

#define CONTAINER_ID_MAX 65

/* Engines show so many letters of an id. */
#define CONTAINER_ID_SHORT 12

/* container_id_find() - false and "" for a process in none, or gone. */
bool container_id_find(char id[CONTAINER_ID_MAX], pid_t pid);

/* container_id_find_in() - the id in @text, the content of /proc/PID/cgroup. */
bool container_id_find_in(char id[CONTAINER_ID_MAX], const char *text);

/*
 * container_id_is_roots() - did root make the control group of @pid that is called like that, and all above it?
 * A user can make groups of any name in a group that was delegated to that user.
 */
bool container_id_is_roots(const char *id, pid_t pid);

/* container_id_is_roots_in() - the same in @text, with control groups mounted in @mounts, as in /sys/fs/cgroup */
bool container_id_is_roots_in(const char *id, const char *text, const char *mounts);

#endif
