/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_FENCE_INTERNAL_H
#define MANAGER_FENCE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/control-group.h"
#include "base/list.h"
#include "manager/fence/fence.h"

struct child;
struct instance;

#define FENCE_NO_LIMIT UINT64_MAX

/* A vGPU whose programs are in a group: one of a group of ours, any number in that of a container. */
struct fence_member {
        struct list link;
        const struct instance *instance;
};

struct fence_group {
        struct list link;
        struct list members; /* none: its limit is to be taken away, then it is forgotten */
        struct fence *fence;
        sd_event_source *watch; /* of a container's: is anything left in it? */
        bool is_ours;           /* and not a container's */
        char path[CONTROL_GROUP_MAX];
        uint64_t wanted, asked, set; /* bytes; FENCE_NO_LIMIT */
};

struct fence {
        struct manager *manager;
        char parent[CONTROL_GROUP_MAX]; /* where our folder is */
        char folder[CONTROL_GROUP_MAX]; /* of the groups of this manager's vGPUs */
        struct list groups;

        struct fence_group *under_way; /* NVIDIA's library is being asked for it */
        sd_event_source *answer, *patience;
        struct child *child;
        pid_t pid; /* of the child */
};

/* Groups: fence-group.c. */

/* fence_group_make_folder() - find, and make, the folder for them. 0: off, and why is known. */
int fence_group_make_folder(struct fence *fence, struct failure *failure);

/* fence_group_remove() - of no vGPU any more: what is left in it goes to the parent. */
void fence_group_remove(const struct fence *fence, const char *path);

/* Containers: fence-watch.c. */

/* fence_watch() - from now on until @group is freed: it is forgotten once nothing is left in it. */
void fence_watch(struct fence_group *group);

/* fence_watch_look() - at all of them, now; fence_apply() is to follow. */
void fence_watch_look(struct fence *fence);

/* The driver: fence-driver.c. */

/* fence_apply() - have the driver set what is wanted and not set; may take a while. */
void fence_apply(struct fence *fence);

void fence_driver_end(struct fence *fence);

/* fence_is_off() - and why is known: manager->kernel_limits. */
bool fence_is_off(const struct fence *fence);

/* fence_release() - @group is for no vGPU any more. */
void fence_release(struct fence_group *group);

/* fence_forget() - free @group. */
void fence_forget(struct fence *fence, struct fence_group *group);

/* fence_note() - the limit of @group is another one, or the fence is off: tell who shows it. */
void fence_note(struct fence *fence);

#endif
