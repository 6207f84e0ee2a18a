/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-action.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define OURSELVES "/proc/self/exe"

static int spawn(pid_t *ret_pid, const char *const *words, int output)
{
        posix_spawn_file_actions_t actions;
        int r = posix_spawn_file_actions_init(&actions);

        if (r != 0)
                return -r;
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
        if (r == 0)
                r = posix_spawn(ret_pid, OURSELVES, &actions, NULL, (char *const *)(uintptr_t)words,
                                environ);
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

int top_action_start(struct top_action *action, const char *const *words)
{
        int pipes[2], r;

        if (action->pid)
                return -EBUSY;
        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        r = spawn(&action->pid, words, pipes[1]);
        fd_close(pipes[1]);
        if (r < 0) {
                fd_close(pipes[0]);
                action->pid = 0;
                return r;
        }
        action->output = pipes[0];
        action->n = 0;
        return 0;
}

/* What it says first matters: the line after it is a hint. */
static void keep_first_line(struct top_action *action)
{
        action->said[action->n] = '\0';
        action->said[strcspn(action->said, "\n")] = '\0';
}

int top_action_read(struct top_action *action, const char **ret_said)
{
        char rest[256];
        size_t room = sizeof(action->said) - 1 - action->n;
        ssize_t got = read(action->output, room ? action->said + action->n : rest,
                           room ? room : sizeof(rest));

        if (got < 0 && errno == EINTR)
                return 0;
        if (got > 0) {
                action->n += room ? (size_t)got : 0;
                return 0;
        }
        keep_first_line(action);
        *ret_said = action->said;
        (void)waitpid(action->pid, NULL, 0);
        action->output = fd_close(action->output);
        action->pid = 0;
        return 1;
}

void top_action_leave(struct top_action *action)
{
        if (action->pid)
                action->output = fd_close(action->output);
        action->pid = 0;
}
