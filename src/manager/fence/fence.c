/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/fence/fence.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "daemon/log.h"
#include "manager/fence/fence-internal.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/launch.h"
#include "manager/model/manager.h"

static uint64_t get_limit(const struct instance *instance)
{
        uint64_t n = guests_count(instance) + list_count(&instance->launches) + 1;

        return instance->frame_buffer + n * footprint_get_unknown(instance_home(instance));
}

/* All of its vGPUs together: the driver does not know which of them a process is in. */
static uint64_t get_sum(const struct fence_group *group)
{
        const struct fence_member *member;
        uint64_t sum = 0;

        list_for_each(member, &group->members, link)
                sum += get_limit(member->instance);
        return list_is_empty(&group->members) ? FENCE_NO_LIMIT : sum;
}

static struct fence_member *find_member(const struct fence_group *group,
                                        const struct instance *instance)
{
        struct fence_member *member;

        list_for_each(member, &group->members, link)
                if (member->instance == instance)
                        return member;
        return NULL;
}

static void remove_member(struct fence_member *member)
{
        list_remove(&member->link);
        free(member);
}

static void add_member(struct fence_group *group, const struct instance *instance)
{
        struct fence_member *member;

        if (find_member(group, instance))
                return;
        member = calloc(1, sizeof(*member));
        if (!member)
                return;
        member->instance = instance;
        list_append(&group->members, &member->link);
}

bool fence_is_off(const struct fence *fence)
{
        return strncmp(fence->manager->kernel_limits, "off", 3) == 0;
}

void fence_note(struct fence *fence)
{
        struct fence_group *group;
        struct instance *instance;

        list_for_each(instance, &fence->manager->instances, link) {
                uint64_t limit = 0;

                list_for_each(group, &fence->groups, link)
                        if (group->is_ours && find_member(group, instance) &&
                            group->set != FENCE_NO_LIMIT && !fence_is_off(fence))
                                limit = group->set;
                instance->kernel_limit = limit;
        }
}

static struct fence_group *find_path(const struct fence *fence, const char *path)
{
        struct fence_group *group;

        list_for_each(group, &fence->groups, link)
                if (strcmp(group->path, path) == 0)
                        return group;
        return NULL;
}

static void add(struct fence *fence, const struct instance *instance, const char *path,
                bool is_ours)
{
        struct fence_group *group = find_path(fence, path);

        if (!group) {
                group = calloc(1, sizeof(*group));
                if (!group)
                        return;
                *group = (struct fence_group){ .fence = fence,
                                               .is_ours = is_ours,
                                               .wanted = FENCE_NO_LIMIT,
                                               .asked = FENCE_NO_LIMIT,
                                               .set = FENCE_NO_LIMIT };
                list_init(&group->members);
                (void)snprintf(group->path, sizeof(group->path), "%s", path);
                list_append(&fence->groups, &group->link);
                if (!is_ours)
                        fence_watch(group);
        }
        add_member(group, instance);
}

void fence_release(struct fence_group *group)
{
        struct fence_member *member, *after;

        list_for_each_safe(member, after, &group->members, link)
                remove_member(member);
        group->wanted = FENCE_NO_LIMIT;
}

void fence_forget(struct fence *fence, struct fence_group *group)
{
        if (fence->under_way == group)
                fence->under_way = NULL;
        fence_release(group);
        sd_event_source_disable_unref(group->watch);
        list_remove(&group->link);
        free(group);
}

static void make_group(struct fence *fence, const struct instance *instance)
{
        char path[CONTROL_GROUP_MAX];

        if (snprintf(path, sizeof(path), "%s/%s", fence->folder, instance->uuid) >=
            (int)sizeof(path))
                return;
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                log_event_of(instance->owner, LOG_LEVEL_WARNING, "a control group cannot be made",
                             "vgpu=%s path=%s error=\"%s\"", instance->name, path, strerror(errno));
        else
                add(fence, instance, path, true);
}

static const char *find_group(const struct fence *fence, const struct instance *instance)
{
        const struct fence_group *group;

        list_for_each(group, &fence->groups, link)
                if (group->is_ours && find_member(group, instance))
                        return group->path;
        return NULL;
}

/* Of a container: the group that is called like it, with all that is below. */
static bool has_its_own(const struct guest *guest, char path[CONTROL_GROUP_MAX])
{
        char *name;

        if (!guest || !guest->container[0] || !control_group_find(path, guest->pid))
                return false;
        name = strstr(path, guest->container);
        if (name)
                name[strcspn(name, "/")] = '\0';
        return name;
}

/* A child of one that is in it already is in it, too. */
static void enter(struct fence *fence, const struct instance *instance, const struct guest *guest,
                  pid_t pid)
{
        const char *group = find_group(fence, instance);
        char own[CONTROL_GROUP_MAX];
        int r;

        if (has_its_own(guest, own)) {
                add(fence, instance, own, false);
                return;
        }
        if (!group || control_group_has(group, pid))
                return;
        r = control_group_move(group, pid);
        if (r < 0 && r != -ESRCH)
                log_event_of(instance->owner, LOG_LEVEL_WARNING,
                             "a process cannot be moved into the control group of its vGPU",
                             "vgpu=%s pid=%d error=\"%s\"", instance->name, (int)pid, strerror(-r));
}

static void update(struct fence *fence, const struct instance *instance)
{
        struct fence_group *group;

        list_for_each(group, &fence->groups, link)
                if (find_member(group, instance))
                        group->wanted = get_sum(group);
        fence_apply(fence);
}

/* With its own group goes its limit. */
static void remove_groups(struct fence *fence, const struct instance *instance)
{
        struct fence_group *group, *after;
        struct fence_member *member;

        list_for_each_safe(group, after, &fence->groups, link) {
                member = find_member(group, instance);
                if (!member)
                        continue;
                remove_member(member);
                group->wanted = get_sum(group);
                if (!group->is_ours)
                        continue;
                fence_group_remove(fence, group->path);
                if (!fence->manager->simulation[0])
                        fence_forget(fence, group);
        }
        fence_apply(fence);
}

/* Of a manager that ends: everything stays as it is. */
static void unload(struct fence *fence, const struct instance *instance)
{
        struct fence_group *group, *after;
        struct fence_member *member;

        list_for_each_safe(group, after, &fence->groups, link) {
                member = find_member(group, instance);
                if (member)
                        remove_member(member);
                if (list_is_empty(&group->members))
                        fence_forget(fence, group);
        }
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        const struct launch *launch;
        struct fence *fence = userdata;

        if (event == INSTANCE_ADDED || event == INSTANCE_LOADED)
                make_group(fence, instance);
        if (event == INSTANCE_LAUNCHES)
                list_for_each(launch, &instance->launches, link)
                        enter(fence, instance, NULL, launch->pid);
        if (event == INSTANCE_ADDED || event == INSTANCE_LOADED || event == INSTANCE_LAUNCHES ||
            event == INSTANCE_RESIZED)
                update(fence, instance);
        else if (event == INSTANCE_REMOVED)
                remove_groups(fence, instance);
        else if (event == INSTANCE_UNLOADED)
                unload(fence, instance);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        struct fence *fence = userdata;

        if (event == GUEST_LEFT)
                fence_watch_look(fence);
        if (event == GUEST_JOINED || event == GUEST_LOADED)
                enter(fence, guest->instance, guest, guest->pid);
        if (event == GUEST_JOINED || event == GUEST_LOADED || event == GUEST_LEFT)
                update(fence, guest->instance);
}

static struct observer observer = { .of_instance = on_instance, .of_guest = on_guest };

static bool is_of_one(const struct fence *fence, const char *uuid)
{
        const struct instance *instance;

        list_for_each(instance, &fence->manager->instances, link)
                if (strcmp(instance->uuid, uuid) == 0)
                        return true;
        return false;
}

void fence_sweep(struct fence *fence)
{
        char path[CONTROL_GROUP_MAX];
        struct dirent *entry;
        DIR *folder = fence ? opendir(fence->folder) : NULL;

        while (folder && (entry = readdir(folder)))
                if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                    !is_of_one(fence, entry->d_name) &&
                    snprintf(path, sizeof(path), "%s/%s", fence->folder, entry->d_name) <
                            (int)sizeof(path))
                        fence_group_remove(fence, path);
        if (folder)
                closedir(folder);
}

int fence_new(struct fence **ret_fence, struct manager *manager, struct failure *failure)
{
        CLEANUP(freep) struct fence *fence = NULL;
        int r;

        strcpy(manager->kernel_limits, "off");
        if (!manager->options->kernel_limits[0] || manager->scenario)
                return 0;
        fence = calloc(1, sizeof(*fence));
        if (!fence)
                return -ENOMEM;
        fence->manager = manager;
        list_init(&fence->groups);
        r = fence_group_make_folder(fence, failure);
        if (r <= 0)
                return r;
        strcpy(manager->kernel_limits,
               manager->simulation[0] ? "in force" : "on, and not tried yet");
        if (!manager->simulation[0] && !manager->real_nvml[0])
                strcpy(manager->kernel_limits, "off: there is no NVML of a driver");
        observer_add(&manager->observers, &observer, fence);
        *ret_fence = TAKE(fence);
        return 0;
}

struct fence *fence_free(struct fence *fence)
{
        struct fence_group *group, *after;

        if (!fence)
                return NULL;
        observer_remove(&fence->manager->observers, &observer);
        fence_driver_end(fence);
        list_for_each_safe(group, after, &fence->groups, link)
                fence_forget(fence, group);
        if (fence->manager->is_unused)
                fence_group_remove(fence, fence->folder);
        free(fence);
        return NULL;
}
