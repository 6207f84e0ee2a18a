/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/image/held.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "daemon/log.h"
#include "manager/model/manager.h"

struct held_slab {
        struct list link;
        int watch;
        uint64_t size;
        uid_t user;
};

struct held {
        struct manager *manager;
        struct list slabs;
        int inotify;
        sd_event_source *source;
};

static struct held_slab *find(struct held *held, int watch)
{
        struct held_slab *slab;

        list_for_each(slab, &held->slabs, link)
                if (slab->watch == watch)
                        return slab;
        return NULL;
}

static void forget(struct held_slab *slab)
{
        list_remove(&slab->link);
        free(slab);
}

static void end(struct held *held, int watch)
{
        struct held_slab *slab = find(held, watch);
        uint64_t size = slab ? slab->size : 0;

        if (!slab)
                return;
        forget(slab);
        pool_gone(held->manager->pool, size);
}

/* Events have no names in them: nothing that is watched is a directory. */
static int on_events(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct inotify_event event[64];
        struct held *held = userdata;
        ssize_t n = read(fd, event, sizeof(event));

        (void)source, (void)events;
        for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(event[0]); i++)
                if (event[i].mask & IN_DELETE_SELF)
                        end(held, event[i].wd);
        return 0;
}

int held_new(struct held **ret_held, struct manager *manager)
{
        struct held *held = calloc(1, sizeof(*held));
        int r;

        if (!held)
                return -ENOMEM;
        held->manager = manager;
        list_init(&held->slabs);
        held->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        r = held->inotify < 0 ? -errno
                              : sd_event_add_io(manager->event, &held->source, held->inotify,
                                                EPOLLIN, on_events, held);
        if (r < 0) {
                held_free(held);
                return r;
        }
        *ret_held = held;
        return 0;
}

struct held *held_free(struct held *held)
{
        struct held_slab *slab, *after;

        if (!held)
                return NULL;
        list_for_each_safe(slab, after, &held->slabs, link)
                forget(slab);
        sd_event_source_disable_unref(held->source);
        fd_close(held->inotify);
        free(held);
        return NULL;
}

int held_watch(int fd, uint64_t size, uid_t user, void *userdata)
{
        const struct manager *manager = userdata;
        struct held_slab *slab = calloc(1, sizeof(*slab));
        char path[32];

        if (!slab)
                return -ENOMEM;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        *slab = (struct held_slab){ .size = size, .user = user };
        slab->watch = inotify_add_watch(manager->held->inotify, path, IN_DELETE_SELF);
        if (slab->watch < 0) {
                int r = -errno;

                log_event_of(
                        user, LOG_LEVEL_WARNING, "memory that a client may keep is not counted",
                        "uid=%u bytes=%ju error=%s", user, (uintmax_t)size, strerrordesc_np(-r));
                free(slab);
                return r;
        }
        list_append(&manager->held->slabs, &slab->link);
        return 0;
}

uint64_t held_count(const struct held *held, uid_t user)
{
        const struct held_slab *slab;
        uint64_t size = 0;

        list_for_each(slab, &held->slabs, link)
                size += slab->user == user ? slab->size : 0;
        return size;
}
