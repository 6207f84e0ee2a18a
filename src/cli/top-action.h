/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_ACTION_H
#define CLI_TOP_ACTION_H

/*
 * Actions of vgpu top. An action runs another vgpu, so that the screen is updated while that waits,
 * and shows the first line of its output.
 */

#include <sys/types.h>

#define TOP_SAID_MAX 256

struct top_action {
        pid_t pid;  /* 0: none runs */
        int output; /* of the command */
        size_t n;
        char said[TOP_SAID_MAX];
};

/* top_action_start() - @words end with NULL. Errors: -EBUSY, the one before still runs. */
int top_action_start(struct top_action *action, const char *const *words);

/*
 * top_action_read() - there is something to read. 1: it has ended, and @ret_said, borrowed until
 * the next start, is what it said.
 */
int top_action_read(struct top_action *action, const char **ret_said);

/* top_action_leave() - stop watching; the command goes on. */
void top_action_leave(struct top_action *action);

#endif
