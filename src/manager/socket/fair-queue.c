/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/socket/fair-queue.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct fair_user {
        struct list link;
        uid_t uid;
        struct list waiting;
        size_t n_entries; /* that wait or may wait */
        uint64_t at;      /* where his next turn begins */
};

struct fair_queue {
        struct list users;
        uint64_t now; /* where the last turn began */
        size_t n_waiting;
        sd_event_source
                *source; /* of a descriptor that is always ready; enabled while somebody waits */
};

/*
 * A descriptor and no deferred event (sd_event_add_defer()): sd-event dispatches what has been pending
 * longest, and a deferred event that is enabled again counts as pending since its creation.
 */
static int on_ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events;
        (void)fair_queue_run(userdata);
        return 0;
}

static int add_source(struct fair_queue *queue, sd_event *event)
{
        CLEANUP(fd_closep) int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        int r = fd < 0 ? -errno
                       : sd_event_add_io(event, &queue->source, fd, EPOLLIN, on_ready, queue);

        if (r < 0)
                return r;
        sd_event_source_set_io_fd_own(queue->source, true);
        fd = -1;
        return sd_event_source_set_enabled(queue->source, SD_EVENT_OFF);
}

int fair_queue_new(struct fair_queue **ret_queue, sd_event *event)
{
        struct fair_queue *queue = calloc(1, sizeof(*queue));
        int r;

        if (!queue)
                return -ENOMEM;
        list_init(&queue->users);
        r = event ? add_source(queue, event) : 0;
        if (r < 0) {
                fair_queue_free(queue);
                return r;
        }
        *ret_queue = queue;
        return 0;
}

struct fair_queue *fair_queue_free(struct fair_queue *queue)
{
        struct fair_user *user, *after;

        if (!queue)
                return NULL;
        list_for_each_safe(user, after, &queue->users, link)
                free(user);
        sd_event_source_disable_unref(queue->source);
        free(queue);
        return NULL;
}

/* Users. */

static struct fair_user *find_or_add(struct fair_queue *queue, uid_t uid)
{
        struct fair_user *user;

        list_for_each(user, &queue->users, link)
                if (user->uid == uid)
                        return user;
        user = calloc(1, sizeof(*user));
        if (!user)
                return NULL;
        user->uid = uid;
        user->at = queue->now;
        list_init(&user->waiting);
        list_append(&queue->users, &user->link);
        return user;
}

/* A user without connections is kept as long as he has had more than the others. */
static void forget_idle(struct fair_queue *queue)
{
        struct fair_user *user, *after;

        list_for_each_safe(user, after, &queue->users, link) {
                if (user->n_entries > 0 || user->at > queue->now)
                        continue;
                list_remove(&user->link);
                free(user);
        }
}

static struct fair_user *find_next(const struct fair_queue *queue)
{
        struct fair_user *user, *next = NULL;

        list_for_each(user, &queue->users, link)
                if (!list_is_empty(&user->waiting) && (!next || user->at < next->at))
                        next = user;
        return next;
}

/* Entries. */

int fair_init(struct fair_entry *entry, struct fair_queue *queue, uid_t user, fair_fn function,
              void *userdata)
{
        *entry = (struct fair_entry){ .user = find_or_add(queue, user),
                                      .function = function,
                                      .userdata = userdata };
        if (!entry->user)
                return -ENOMEM;
        list_init(&entry->link);
        entry->queue = queue;
        entry->user->n_entries++;
        return 0;
}

static void set_ready(struct fair_queue *queue)
{
        if (queue->source)
                (void)sd_event_source_set_enabled(
                        queue->source, queue->n_waiting > 0 ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void stop_waiting(struct fair_entry *entry)
{
        if (!fair_is_waiting(entry))
                return;
        list_remove(&entry->link);
        entry->queue->n_waiting--;
        set_ready(entry->queue);
}

void fair_deinit(struct fair_entry *entry)
{
        if (!entry->queue)
                return;
        stop_waiting(entry);
        entry->user->n_entries--;
        entry->queue = NULL;
}

void fair_wait(struct fair_entry *entry)
{
        struct fair_queue *queue = entry->queue;

        if (fair_is_waiting(entry))
                return;
        if (list_is_empty(&entry->user->waiting) && entry->user->at < queue->now)
                entry->user->at = queue->now;
        list_append(&entry->user->waiting, &entry->link);
        queue->n_waiting++;
        set_ready(queue);
}

bool fair_is_waiting(const struct fair_entry *entry)
{
        return !list_is_empty(&entry->link);
}

bool fair_queue_run(struct fair_queue *queue)
{
        struct fair_user *user = find_next(queue);
        uint64_t begin_ns = clock_now(CLOCK_MONOTONIC);
        struct fair_entry *entry;

        if (!user)
                return false;
        entry = list_entry(user->waiting.next, struct fair_entry, link);
        queue->now = user->at;
        user->n_entries++; /* so that the function cannot free the user */
        stop_waiting(entry);
        entry->function(entry->userdata);
        user->n_entries--;
        user->at += 1 + (clock_now(CLOCK_MONOTONIC) - begin_ns) / NS_PER_MS;
        forget_idle(queue);
        return true;
}
