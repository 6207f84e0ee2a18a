/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager names processes by their ids, and the kernel reuses ids. So a pidfd of each process
 * is opened first, and then the manager is asked once more: a process that it still names has had
 * its id all the time, and the pidfd belongs to it.
 */
#include "cli/end-programs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/instance.h"
#include "cli/say.h"

/*
 * A program writes its files at SIGTERM; in a suspended vGPU it cannot, when it waits in a GPU
 * call. One that is killed goes at once, if the kernel lets it.
 */
#define TERM_MS     10000
#define TERM_OFF_MS 1000
#define KILL_MS     10000

struct programs {
        struct pollfd *ends; /* a pidfd each; -1: it has ended */
        int32_t *pids;
        size_t n;
};

static void programs_deinit(struct programs *programs)
{
        for (size_t i = 0; i < programs->n; i++)
                fd_close(programs->ends[i].fd);
        free(programs->ends);
        free(programs->pids);
}

static int programs_open(struct programs *programs, const struct vgpu_instance *instance)
{
        programs->ends = calloc(instance->n_processes + 1, sizeof(*programs->ends));
        programs->pids = calloc(instance->n_processes + 1, sizeof(*programs->pids));
        if (!programs->ends || !programs->pids)
                return -ENOMEM;
        for (size_t i = 0; i < instance->n_processes; i++) {
                int fd = pidfd_open(instance->processes[i]->pid, 0);

                if (fd < 0 && errno != ESRCH)
                        return -errno;
                programs->ends[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
                programs->pids[i] = instance->processes[i]->pid;
                programs->n++;
        }
        return 0;
}

/* Lets go of those that @instance, which was asked for later, has no more. */
static void programs_verify(struct programs *programs, const struct vgpu_instance *instance)
{
        for (size_t i = 0; i < programs->n; i++) {
                bool is_there = false;

                for (size_t j = 0; j < instance->n_processes; j++)
                        is_there |= instance->processes[j]->pid == programs->pids[i];
                if (!is_there)
                        programs->ends[i].fd = fd_close(programs->ends[i].fd);
        }
}

/* Waits for their ends. Returns how many are left after @timeout_ms. */
static size_t programs_wait(struct programs *programs, int timeout_ms)
{
        uint64_t end = clock_now(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
        size_t n_left;

        for (;;) {
                uint64_t now = clock_now(CLOCK_MONOTONIC);

                n_left = 0;
                for (size_t i = 0; i < programs->n; i++) {
                        if (programs->ends[i].fd >= 0 && programs->ends[i].revents)
                                programs->ends[i].fd = fd_close(programs->ends[i].fd);
                        n_left += programs->ends[i].fd >= 0;
                }
                if (n_left == 0 || now >= end)
                        return n_left;
                if (poll(programs->ends, (nfds_t)programs->n, (int)((end - now) / 1000000) + 1) < 0)
                        for (size_t i = 0; i < programs->n; i++)
                                programs->ends[i].revents = 0;
        }
}

static int programs_signal(const struct programs *programs, int number, int32_t *ret_pid)
{
        for (size_t i = 0; i < programs->n; i++) {
                if (programs->ends[i].fd < 0 ||
                    pidfd_send_signal(programs->ends[i].fd, number, NULL, 0) == 0 || errno == ESRCH)
                        continue;
                *ret_pid = programs->pids[i];
                return -errno;
        }
        return 0;
}

static int programs_end(struct programs *programs, const struct arguments *arguments, bool are_off)
{
        const struct {
                int number, patience_ms;
        } blows[] = { { SIGTERM, are_off ? TERM_OFF_MS : TERM_MS }, { SIGKILL, KILL_MS } };
        int32_t pid = 0;

        for (size_t i = 0; i < sizeof(blows) / sizeof(blows[0]); i++) {
                int r = programs_signal(programs, blows[i].number, &pid);

                if (r < 0)
                        return say_failure(arguments, EXIT_CODE_PERMISSION, "PermissionDenied",
                                           "its user or root can", "process %d cannot be ended: %s",
                                           pid, strerrordesc_np(-r));
                if (programs_wait(programs, blows[i].patience_ms) == 0)
                        return 0;
        }
        return say_failure(arguments, EXIT_CODE_TIMED_OUT, "TimedOut",
                           "try again; the log of the kernel may say what it waits for",
                           "a killed program does not end");
}

/* One that was made for its program goes with it. */
static int say_unless_gone(const struct arguments *arguments, struct vgpu_client *client)
{
        return vgpu_client_get_error(client)->kind == VGPU_ERROR_NO_SUCH_VGPU
                       ? 0
                       : say_error(arguments, client);
}

int end_programs(const struct arguments *arguments, struct vgpu_client *client, const char *name,
                 size_t *ret_n)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *before = NULL, *after = NULL;
        CLEANUP(programs_deinit) struct programs programs = { 0 };
        int r;

        if (vgpu_instance_lookup(client, name, &before) < 0)
                return say_unless_gone(arguments, client);
        r = programs_open(&programs, before);
        if (r < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "Failed", "",
                                   "the programs of %s cannot be watched: %s", name,
                                   strerrordesc_np(-r));
        if (vgpu_instance_lookup(client, name, &after) < 0)
                return say_unless_gone(arguments, client);
        programs_verify(&programs, after);
        *ret_n = before->n_processes;
        return programs_end(&programs, arguments,
                            after->state == VGPU_INSTANCE_SUSPENDED ||
                                    after->state == VGPU_INSTANCE_EVICTED);
}

/* "vGPU train has 2 programs: python3 (4711), worker (4712)" */
static void print_programs(const struct vgpu_instance *instance)
{
        fprintf(stderr, "vGPU %s has %zu program%s: ", instance->name, instance->n_processes,
                instance->n_processes == 1 ? "" : "s");
        for (size_t i = 0; i < instance->n_processes; i++) {
                char clean[64];

                fprintf(stderr, "%s%s (%d)", i == 0 ? "" : ", ",
                        text_clean(clean, sizeof(clean), instance->processes[i]->name),
                        instance->processes[i]->pid);
        }
        fputc('\n', stderr);
}

int end_programs_confirm(const struct arguments *arguments, const struct vgpu_instance *instance)
{
        char answer[16] = "";

        if (arguments_get(arguments, "yes") || instance->n_processes == 0)
                return 0;
        if (!isatty(STDIN_FILENO))
                return say_usage(arguments, "add --yes to end them",
                                 "vGPU %s has %zu program%s, and there is no terminal to ask on",
                                 instance->name, instance->n_processes,
                                 instance->n_processes == 1 ? "" : "s");
        print_programs(instance);
        fprintf(stderr, "End %s, and remove %s? [y/N] ", instance->n_processes == 1 ? "it" : "them",
                instance->name);
        if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
                return 0;
        return say_failure(arguments, EXIT_CODE_FAILED, "Failed", "", "vGPU %s stays, as you say",
                           instance->name);
}
