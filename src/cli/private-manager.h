/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PRIVATE_MANAGER_H
#define CLI_PRIVATE_MANAGER_H

/*
 * A vgpud of our own, in a directory of its own, for as long as this process lives.
 *
 * A process in between, the supervisor, starts this vgpud. When we close our end of a pipe, or die,
 * the supervisor ends vgpud and removes the directory. The supervisor has a session of its own, so
 * signals of the terminal do not reach it. If the supervisor itself is killed, vgpud ends as well,
 * and private_manager_free() removes the directory.
 */

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/paths.h"

#define PRIVATE_MANAGER_PROBLEM_MAX 1200

struct private_manager {
        char directory[PATHS_MAX];     /* ours alone */
        char run_directory[PATHS_MAX]; /* the manager's, in it */
        char log_path[PATHS_MAX];
        pid_t supervisor;
        int lifeline; /* while it is open, the manager runs */
};

/*
 * private_manager_new() - start it, and wait until it serves
 * @scenario:  path of the file that it plays
 * @problem:   of PRIVATE_MANAGER_PROBLEM_MAX bytes: what vgpud said, when it did not start
 *
 * Errors: -EINVAL, vgpud has refused or failed, see @problem; others: the making of it.
 */
int private_manager_new(struct private_manager **ret_manager, const char *scenario, char *problem);

/* private_manager_free() - end it, and remove all of it; returns when that is done. Returns NULL. */
struct private_manager *private_manager_free(struct private_manager *manager);
DEFINE_CLEANUP(struct private_manager *, private_manager_free);

#endif
