/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/toolkit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "cdi/nvidia.h"
#include "manager/model/manager.h"

/* It says a line of each library that it has not found. */
#define COMMAND "exec \"$0\" cdi generate --format=json 2>/dev/null"

int toolkit_ask(struct child **ret_child, struct manager *manager, child_ended_fn ended,
                void *userdata)
{
        char path[PATHS_MAX], program[PATHS_MAX];
        const char *arguments[] = { "/bin/sh", "-c", COMMAND, program, NULL };
        CLEANUP(fd_closep) int fd = -1;
        pid_t pid;
        int r = paths_join(path, manager->options->run_directory, CDI_NVIDIA_FILE);

        if (r < 0)
                return r;
        (void)unlink(path); /* of another driver, perhaps */
        if (manager->simulation[0] || paths_search(program, "nvidia-ctk") < 0)
                return -ENOENT;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        r = child_spawn(&pid, arguments, NULL, fd, STDOUT_FILENO);
        return r < 0 ? r : child_watch(ret_child, manager->event, pid, ended, userdata);
}
