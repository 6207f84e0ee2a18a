/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control groups of containers: the kernel says when nothing runs in one any more. Then its limit is for
 * nobody, and what enters it later begins anew.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "daemon/log.h"
#include "manager/fence/fence-internal.h"
#include "manager/model/manager.h"

static void name_events(const struct fence_group *group, char file[CONTROL_GROUP_MAX + 16])
{
        (void)snprintf(file, CONTROL_GROUP_MAX + 16, "%s/cgroup.events", group->path);
}

static bool is_gone(const struct fence_group *group)
{
        return access(group->path, F_OK) < 0 && errno == ENOENT;
}

/* What cannot be read is not taken for empty. */
static bool is_empty(const struct fence_group *group)
{
        char name[CONTROL_GROUP_MAX + 16], line[64];
        bool is_empty = false;
        FILE *file;

        name_events(group, name);
        file = fopen(name, "re");
        while (file && fgets(line, sizeof(line), file))
                is_empty |= strcmp(line, "populated 0\n") == 0;
        if (file)
                fclose(file);
        return is_empty || is_gone(group);
}

/* With a real group its limit is gone, too; the driver is asked only for one that is still there. */
static void look(struct fence *fence, struct fence_group *group)
{
        if (group->is_ours || list_is_empty(&group->members) || !is_empty(group))
                return;
        log_event(LOG_LEVEL_DEBUG, "nothing runs in a container any more", "group=%s", group->path);
        fence_release(group);
        if (!fence->manager->simulation[0] && (is_gone(group) || fence_is_off(fence)))
                fence_forget(fence, group);
}

static int on_change(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
        struct fence_group *group = userdata;
        struct fence *fence = group->fence;

        (void)source, (void)event;
        look(fence, group);
        fence_apply(fence);
        return 0;
}

/* A folder in the place of a group has nothing to watch: then fence_watch_look() is all. */
void fence_watch(struct fence_group *group)
{
        char file[CONTROL_GROUP_MAX + 16];

        name_events(group, file);
        (void)sd_event_add_inotify(group->fence->manager->event, &group->watch, file, IN_MODIFY,
                                   on_change, group);
}

void fence_watch_look(struct fence *fence)
{
        struct fence_group *group, *after;

        list_for_each_safe(group, after, &fence->groups, link)
                look(fence, group);
}
