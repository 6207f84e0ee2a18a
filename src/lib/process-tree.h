/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_PROCESS_TREE_H
#define LIB_PROCESS_TREE_H

/* CRIU dumps a process together with all processes below it. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PROCESS_TREE_MAX 4096

struct process_tree {
        pid_t pids[PROCESS_TREE_MAX];
        size_t n;
};

/* process_tree_read() - list the tree as it is now. Errors: -ESRCH, -E2BIG. */
int process_tree_read(struct process_tree *ret_tree, pid_t root);

bool process_tree_has(const struct process_tree *tree, pid_t pid);

/* process_tree_find_tracer() - find the tracer of any of their threads; 0: there is none. */
pid_t process_tree_find_tracer(const struct process_tree *tree, pid_t *ret_pid);

/* process_tree_signal() - send @number to all, from the last to the first. */
void process_tree_signal(const struct process_tree *tree, int number);

/* process_tree_kill() - end all, and wait until they have ended. Their parents may learn of it later. */
void process_tree_kill(const struct process_tree *tree);

#endif
