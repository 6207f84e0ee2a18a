/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sets a limit: the simulated host at once, NVIDIA's library in a process of its own (wire/limiter.h),
 * one after the other.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/paths.h"
#include "daemon/child.h"
#include "daemon/log.h"
#include "manager/fence/fence-internal.h"
#include "manager/model/device.h"
#include "manager/model/manager.h"
#include "sim/limit.h"
#include "wire/limiter.h"

/* A driver that is only slow, as one that is being loaded, has answered by then. */
#define PATIENCE_SECONDS 60

static void refused(const struct fence_group *group, const char *why)
{
        log_event(LOG_LEVEL_WARNING, "the driver has not set a memory limit",
                  "group=%s error=\"%s\"", group->path, why);
}

static void set_off(struct fence *fence, const char *why)
{
        struct manager *manager = fence->manager;

        if (fence_is_off(fence))
                return;
        (void)snprintf(manager->kernel_limits, sizeof(manager->kernel_limits), "off: %s", why);
        log_event(LOG_LEVEL_WARNING, "the kernel limits no memory of vGPUs", "reason=\"%s\"", why);
}

static void simulate(struct fence *fence, struct fence_group *group)
{
        int r = sim_limit_set(fence->manager->simulation, group->path, group->wanted);

        group->asked = group->wanted;
        if (r == 0)
                group->set = group->wanted;
        else
                refused(group, strerror(-r));
}

static int on_answer(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct fence *fence = userdata;
        struct fence_group *group = fence->under_way;
        int32_t result = LIMITER_FAILED;
        char text[64];

        (void)source, (void)events;
        if (recv(fd, &result, sizeof(result), MSG_DONTWAIT) != (ssize_t)sizeof(result))
                result = LIMITER_FAILED;
        fence_driver_end(fence);
        if (group && result == 0) {
                group->set = group->asked;
                strcpy(fence->manager->kernel_limits, "in force");
        } else if (result == LIMITER_UNKNOWN) {
                set_off(fence, "this driver has no memory limits (R615 and newer do)");
        } else if (group) {
                (void)snprintf(text, sizeof(text), "NVML's code %d", (int)result);
                refused(group, text);
        }
        fence_note(fence);
        fence_apply(fence);
        return 0;
}

/* Who asked again would wait again, and maybe leave a process behind each time that nothing can end. */
static int on_silence(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct fence *fence = userdata;
        char why[96];

        (void)source, (void)usec;
        if (fence->child)
                (void)kill(fence->pid, SIGKILL);
        fence_driver_end(fence);
        (void)snprintf(why, sizeof(why),
                       "the driver did not answer within %d s; a restart of vgpud tries again",
                       PATIENCE_SECONDS);
        set_off(fence, why);
        fence_note(fence);
        return 0;
}

static void on_ended(void *userdata)
{
        struct fence *fence = userdata;

        fence->child = NULL; /* its socket says so too */
}

static int watch(struct fence *fence, int socket)
{
        uint64_t patience = fault_point("fence.silence") ? 0 : PATIENCE_SECONDS * 1000000ull;
        int r = sd_event_add_io(fence->manager->event, &fence->answer, socket, EPOLLIN, on_answer,
                                fence);

        if (r < 0)
                return r;
        return sd_event_add_time_relative(fence->manager->event, &fence->patience, CLOCK_MONOTONIC,
                                          patience, 0, on_silence, fence);
}

static int spawn(struct fence *fence, const struct fence_group *group, int fd)
{
        const struct manager *manager = fence->manager;
        const char *arguments[STATE_DEVICES_MAX + 6];
        char program[PATHS_MAX], bytes[24];
        size_t n = 0;
        int r = paths_join(program, manager->options->private_directory, PATHS_SAMPLER);

        if (r < 0)
                return r;
        (void)snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)group->wanted);
        arguments[n++] = program;
        arguments[n++] = LIMITER_OPTION;
        arguments[n++] = manager->real_nvml;
        arguments[n++] = group->path;
        arguments[n++] = bytes;
        for (size_t i = 0; i < manager->n_devices; i++)
                arguments[n++] = manager->device[i].uuid;
        arguments[n] = NULL;
        r = child_spawn(&fence->pid, arguments, NULL, fd, LIMITER_FD);
        return r < 0 ? r : child_watch(&fence->child, manager->event, fence->pid, on_ended, fence);
}

static int ask(struct fence *fence, struct fence_group *group)
{
        CLEANUP(fd_closep) int ours = -1;
        CLEANUP(fd_closep) int its = -1;
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        its = pair[1];
        r = spawn(fence, group, its);
        if (r < 0)
                return r;
        r = watch(fence, ours);
        if (r < 0) {
                fence_driver_end(fence);
                return r;
        }
        (void)sd_event_source_set_io_fd_own(fence->answer, true);
        (void)TAKE_FD(ours);
        fence->under_way = group;
        return 0;
}

static bool is_done(const struct fence_group *group)
{
        return group->asked == group->wanted;
}

void fence_apply(struct fence *fence)
{
        struct fence_group *group, *after;
        int r;

        list_for_each_safe(group, after, &fence->groups, link) {
                if (fence_is_off(fence) || fence->answer)
                        return;
                if (!is_done(group) && fence->manager->simulation[0])
                        simulate(fence, group);
                if (!is_done(group)) {
                        group->asked = group->wanted;
                        r = ask(fence, group);
                        if (r < 0)
                                refused(group, strerror(-r));
                } else if (list_is_empty(&group->members)) {
                        fence_forget(fence, group);
                }
        }
        fence_note(fence);
}

void fence_driver_end(struct fence *fence)
{
        fence->answer = sd_event_source_disable_unref(fence->answer); /* closes the socket */
        fence->patience = sd_event_source_disable_unref(fence->patience);
        child_forget(fence->child);
        fence->child = NULL;
        fence->under_way = NULL;
}
