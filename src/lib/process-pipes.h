/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_PROCESS_PIPES_H
#define LIB_PROCESS_PIPES_H

/*
 * Pipes out of a tree of processes. CRIU silently dumps a pipe whose reader is elsewhere, and makes
 * the pipe again without a reader: a process that writes to it then gets SIGPIPE.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "lib/process-tree.h"

struct process_pipe {
        pid_t writer; /* in the tree */
        int fd;       /* of the writer */
        pid_t reader; /* not in the tree */
};

/* process_pipes_find_cut() - find a pipe into which the tree writes, and which only processes outside read */
bool process_pipes_find_cut(const struct process_tree *tree, struct process_pipe *ret_pipe);

#endif
