/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTAINER_SPACE_H
#define CONTAINER_SPACE_H

/*
 * The process namespace of a container: that of its outermost one, below ours, in which a process is. A program in
 * the container cannot leave it, and what namespaces it makes for itself are in that one.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of the kernel; another namespace can have it once this one's last process has ended. All 0: none. */
struct container_space {
        uint64_t device, inode;
};

static inline bool container_space_is_equal(const struct container_space *one,
                                            const struct container_space *other)
{
        return one->device == other->device && one->inode == other->inode;
}

/*
 * container_space_find() - that of @pid
 * @ret_first:  the process with which the namespace ends. Before Linux 6.11, for a process that was started
 *              from outside (podman exec): the first of its parents in there.
 *
 * Errors: -ENOENT, @pid is in our own namespace, or in one that is not below it; -ESRCH, it has ended; -EACCES.
 */
int container_space_find(struct container_space *ret_space, pid_t *ret_first, pid_t pid);

/* container_find_first() - the same by parents alone. Errors: -ESRCH. */
int container_find_first(pid_t *ret_first, pid_t pid);

#endif
