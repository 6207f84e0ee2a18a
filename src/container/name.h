/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTAINER_NAME_H
#define CONTAINER_NAME_H

/*
 * What engines call the container with an id, by what each of them shows to others. A name is one line without
 * control characters, whoever chose it. All of these return false and "" if they do not know.
 *
 * The id is in the name of a control group, and a user can have control groups of any name. So a name counts
 * only for a process of which the engine says so: podman's by being below a conmon of root or of whoever asks,
 * the others' by being with the first process of the container, whose number their state has.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CONTAINER_NAME_MAX 128

/* container_name_of_podman() - from the arguments of conmon, which watches it from outside; also for CRI-O */
bool container_name_of_podman(char name[CONTAINER_NAME_MAX], const char *id, pid_t pid);

/* container_name_in() - the same in @text, @size bytes: the content of /proc/PID/cmdline of conmon */
bool container_name_in(char name[CONTAINER_NAME_MAX], const char *id, const char *text,
                       size_t size);

/*
 * container_name_of_docker() - from its state below @root, "" for "/", which root can read
 * @ret_first:  the container's first process, as this engine says
 */
bool container_name_of_docker(char name[CONTAINER_NAME_MAX], const char *root, const char *id,
                              pid_t *ret_first);

/* container_name_of_containerd() - the same; POD/CONTAINER in Kubernetes */
bool container_name_of_containerd(char name[CONTAINER_NAME_MAX], const char *root, const char *id,
                                  pid_t *ret_first);

/* container_is_with() - is @pid @first, below it, or in the same process namespace, which is not ours? */
bool container_is_with(pid_t pid, pid_t first);

/* container_read() - what a file of /proc has, as text; the bytes, or a negative errno */
ssize_t container_read(char *text, size_t room, const char *path);

#endif
