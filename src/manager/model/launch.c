/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "daemon/process.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

static const struct account_cost cost = { { [ACCOUNT_OBJECTS] = 1, [ACCOUNT_DESCRIPTORS] = 1 } };

static struct launch *launch_free(struct launch *launch)
{
        if (!launch)
                return NULL;
        list_remove(&launch->link);
        sd_event_source_disable_unref(launch->source);
        account_end(&launch->charge);
        free(launch);
        return NULL;
}
DEFINE_CLEANUP(struct launch *, launch_free);

static int on_end(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events;
        (void)launch_free(userdata);
        return 0;
}

static struct launch *find(struct instance *instance, pid_t pid)
{
        struct launch *launch;

        list_for_each(launch, &instance->launches, link)
                if (launch->pid == pid)
                        return launch;
        return NULL;
}

static int watch(struct launch *launch, sd_event *event)
{
        CLEANUP(fd_closep) int pidfd = -1;
        uint64_t start_time;
        int r = process_get_start_time(launch->pid, &start_time);

        if (r == 0)
                r = process_open(launch->pid, start_time, &pidfd);
        if (r == 0)
                r = sd_event_add_io(event, &launch->source, pidfd, EPOLLIN, on_end, launch);
        if (r < 0)
                return r;
        sd_event_source_set_io_fd_own(launch->source, true);
        pidfd = -1;
        return 0;
}

int launch_add(struct instance *instance, pid_t pid, uid_t uid, struct failure *failure)
{
        CLEANUP(launch_freep) struct launch *launch = NULL;
        struct manager *manager = instance->manager;
        int r;

        if (find(instance, pid) || guest_find(instance, pid))
                return 0;
        launch = calloc(1, sizeof(*launch));
        if (!launch)
                return -ENOMEM;
        list_init(&launch->link);
        launch->pid = pid;
        r = account_take(manager->accounts, &launch->charge, uid, &cost, failure);
        if (r == 0)
                r = watch(launch, manager->event);
        if (r == -ESRCH)
                return 0; /* it has ended already */
        if (r < 0)
                return r;
        list_append(&instance->launches, &launch->link);
        launch = NULL;
        observer_tell_instance(&manager->observers, instance, INSTANCE_LAUNCHES);
        return 0;
}

void launch_drop(struct instance *instance, pid_t pid)
{
        (void)launch_free(find(instance, pid));
}

void launch_drop_all(struct instance *instance)
{
        struct launch *launch, *after;

        list_for_each_safe(launch, after, &instance->launches, link)
                (void)launch_free(launch);
}
