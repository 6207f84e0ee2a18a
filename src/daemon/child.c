/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define DRIVER_VARIABLE  "OPENVGPU_DRIVER="
#define VISIBLE_VARIABLE "CUDA_VISIBLE_DEVICES="

static bool is_variable(const char *assignment, const char *name)
{
        return strncmp(assignment, name, strlen(name)) == 0;
}

/*
 * Our environment with one variable replaced, and without one that would hide devices from a mover:
 * an array of borrowed strings.
 */
static char **environment_new(char *driver_variable)
{
        size_t n = 0, n_kept = 0;
        char **environment;

        while (environ[n])
                n++;
        environment = calloc(n + 2, sizeof(*environment));
        if (!environment)
                return NULL;

        for (size_t i = 0; i < n; i++)
                if ((!driver_variable || !is_variable(environ[i], DRIVER_VARIABLE)) &&
                    !is_variable(environ[i], VISIBLE_VARIABLE))
                        environment[n_kept++] = environ[i];
        environment[n_kept] = driver_variable;
        return environment;
}

/* The child begins with no signal blocked and none ignored, whatever the manager has set up. */
static int attributes_set(posix_spawnattr_t *attributes)
{
        sigset_t none, all;
        int r;

        sigemptyset(&none);
        sigfillset(&all);
        r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                         POSIX_SPAWN_SETSIGDEF);
        if (r == 0)
                r = posix_spawnattr_setsigmask(attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(attributes, &all);
        return r;
}

static int spawn_with(pid_t *ret_pid, const char *const *arguments, char **environment, int fd,
                      int child_fd)
{
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r;

        r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r == 0) {
                r = attributes_set(&attributes);
                if (r == 0)
                        r = posix_spawn_file_actions_adddup2(&actions, fd, child_fd);
                if (r == 0)
                        r = posix_spawn(ret_pid, arguments[0], &actions, &attributes,
                                        (char *const *)(uintptr_t)arguments, environment);
                posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

int child_spawn(pid_t *ret_pid, const char *const *arguments, const char *driver_path, int fd,
                int child_fd)
{
        CLEANUP(freep) char *variable = NULL;
        CLEANUP(freep) char **environment = NULL;

        if (driver_path && asprintf(&variable, DRIVER_VARIABLE "%s", driver_path) < 0) {
                variable = NULL;
                return -ENOMEM;
        }
        environment = environment_new(variable);
        if (!environment)
                return -ENOMEM;
        return spawn_with(ret_pid, arguments, environment, fd, child_fd);
}

struct child {
        int pidfd;
        child_ended_fn ended; /* NULL: forgotten */
        void *userdata;
};

static void child_free(void *userdata)
{
        struct child *child = userdata;

        fd_close(child->pidfd);
        free(child);
}

static int on_ended(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct child *child = userdata;
        siginfo_t info;

        (void)events;
        waitid(P_PIDFD, (id_t)fd, &info, WEXITED);
        if (child->ended)
                child->ended(child->userdata);
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
        sd_event_source_set_floating(source, false); /* this frees the child */
        return 0;
}

int child_watch(struct child **ret_child, sd_event *event, pid_t pid, child_ended_fn ended,
                void *userdata)
{
        CLEANUP(freep) struct child *child = calloc(1, sizeof(*child));
        sd_event_source *source;
        int r;

        if (!child)
                return -ENOMEM;

        *child = (struct child){ .ended = ended, .userdata = userdata };
        child->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
        if (child->pidfd < 0)
                return -errno;

        r = sd_event_add_io(event, &source, child->pidfd, EPOLLIN, on_ended, child);
        if (r < 0) {
                fd_close(child->pidfd);
                return r;
        }
        sd_event_source_set_destroy_callback(source, child_free);
        sd_event_source_set_floating(source, true); /* of the loop: it ends with one of the two */
        sd_event_source_unref(source);
        *ret_child = TAKE(child);
        return 0;
}

void child_forget(struct child *child)
{
        if (child)
                child->ended = NULL;
}
