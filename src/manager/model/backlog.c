/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/backlog.h"

#include <errno.h>
#include <stdlib.h>

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/recovery.h"

/* A full disk has room again when somebody has seen to it. */
#define FIRST_US 500000
#define LAST_US  8000000

/* A process that is gone for us. */
struct departed {
        struct list link;
        uint32_t instance;
        pid_t pid;
        struct pool_reservation *reservation; /* or NULL */
};

struct backlog {
        struct manager *manager;
        struct list departed;
        struct list lacks;
        sd_event_source *timer; /* NULL: nothing to do */
        uint64_t interval_us;
};

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata);

static void arm(struct backlog *backlog)
{
        if (!backlog->timer)
                (void)sd_event_add_time_relative(backlog->manager->event, &backlog->timer,
                                                 CLOCK_MONOTONIC, backlog->interval_us, 0, on_timer,
                                                 backlog);
}

void backlog_add_instance(struct instance *instance)
{
        instance->is_unsettled = true;
        arm(instance->manager->backlog);
}

void backlog_add_process(struct guest *guest)
{
        struct backlog *backlog = guest->instance->manager->backlog;
        struct departed *departed = calloc(1, sizeof(*departed));

        if (departed) {
                departed->instance = guest->instance->id;
                departed->pid = guest->pid;
                departed->reservation = guest->reservation;
                list_append(&backlog->departed, &departed->link);
                arm(backlog);
        }
        guest->reservation = NULL; /* without memory to note it down it is lost, which is better */
}

static int store_instance(struct instance *instance)
{
        int r = recovery_store_instance(instance);

        if (r == 0)
                instance->is_unsettled = false;
        return r;
}

/* True: nothing is left to do for it. */
static bool try_instance(struct instance *instance)
{
        if (!instance->is_unsettled || instance->operation)
                return !instance->is_unsettled;
        if (instance->state != STATE_FAILED)
                return store_instance(instance) == 0;
        instance->is_unsettled = false;
        observer_tell_instance(&instance->manager->observers, instance,
                               INSTANCE_RETRY); /* says it anew when that fails */
        return true;
}

static int forget(struct backlog *backlog, struct departed *departed)
{
        struct manager *manager = backlog->manager;
        int r = store_remove_process(manager->store, departed->instance, departed->pid);

        if (r < 0)
                return r;
        pool_release(manager->pool, departed->reservation);
        list_remove(&departed->link);
        free(departed);
        return 0;
}

int backlog_forget_process(const struct instance *instance, pid_t pid)
{
        struct backlog *backlog = instance->manager->backlog;
        struct departed *departed, *next;
        int r = 0;

        list_for_each_safe(departed, next, &backlog->departed, link)
                if (r == 0 && departed->instance == instance->id && departed->pid == pid)
                        r = forget(backlog, departed);
        return r;
}

static bool try_all(struct backlog *backlog)
{
        struct departed *departed, *next;
        struct instance *instance;
        bool is_done = true;

        list_for_each_safe(departed, next, &backlog->departed, link)
                is_done = forget(backlog, departed) == 0 && is_done;
        list_for_each(instance, &backlog->manager->instances, link)
                is_done = try_instance(instance) && is_done;
        recovery_sync_slabs(backlog->manager);
        return is_done;
}

static void work(struct backlog *backlog)
{
        backlog->timer = sd_event_source_disable_unref(backlog->timer);
        if (store_is_writable(backlog->manager->store) && try_all(backlog)) {
                backlog->interval_us = FIRST_US;
                return;
        }
        if (backlog->interval_us < LAST_US)
                backlog->interval_us *= 2;
        arm(backlog);
}

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata)
{
        (void)source, (void)time_us;
        work(userdata);
        return 0;
}

int backlog_settle(struct instance *instance)
{
        if (instance->manager->backlog->timer)
                work(instance->manager->backlog);
        return instance->is_unsettled ? store_instance(instance) : 0;
}

/* Room. */

static int on_room_time(sd_event_source *source, uint64_t time_us, void *userdata)
{
        struct instance *instance = userdata;

        (void)time_us;
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (instance->operation) /* its end says more */
                return 0;
        if (instance->state != STATE_FAILED)
                backlog_end_lack(instance);
        else
                backlog_retry(instance);
        return 0;
}

void backlog_retry(struct instance *instance)
{
        (void)sd_event_source_set_time_relative(instance->lack.timer, instance->lack.pause_us);
        (void)sd_event_source_set_enabled(instance->lack.timer,
                                          SD_EVENT_ONESHOT); /* it may not even begin */
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_RETRY);
}

void backlog_add_lack(struct instance *instance)
{
        struct backlog *backlog = instance->manager->backlog;

        if (!instance->lack.timer) {
                if (sd_event_add_time_relative(backlog->manager->event, &instance->lack.timer,
                                               CLOCK_MONOTONIC, FIRST_US, 0, on_room_time,
                                               instance) < 0)
                        return;
                list_append(&backlog->lacks, &instance->lack.link);
                instance->lack.pause_us = FIRST_US;
                return;
        }
        if (instance->lack.pause_us < LAST_US)
                instance->lack.pause_us *= 2;
        (void)sd_event_source_set_time_relative(instance->lack.timer, instance->lack.pause_us);
        (void)sd_event_source_set_enabled(instance->lack.timer, SD_EVENT_ONESHOT);
}

void backlog_end_lack(struct instance *instance)
{
        if (!instance->lack.timer)
                return;
        instance->lack.timer = sd_event_source_disable_unref(instance->lack.timer);
        list_remove(&instance->lack.link);
}

void backlog_room_came(struct backlog *backlog)
{
        struct instance *instance;

        list_for_each(instance, &backlog->lacks, lack.link)
                (void)sd_event_source_set_time_relative(instance->lack.timer, 0);
}

int backlog_new(struct backlog **ret_backlog, struct manager *manager)
{
        struct backlog *backlog = calloc(1, sizeof(*backlog));

        if (!backlog)
                return -ENOMEM;
        backlog->manager = manager;
        backlog->interval_us = FIRST_US;
        list_init(&backlog->departed);
        list_init(&backlog->lacks);
        *ret_backlog = backlog;
        return 0;
}

struct backlog *backlog_free(struct backlog *backlog)
{
        struct departed *departed, *next;

        if (!backlog)
                return NULL;
        list_for_each_safe(departed, next, &backlog->departed, link)
                free(departed); /* its reservation is the pool's */
        sd_event_source_disable_unref(backlog->timer);
        free(backlog);
        return NULL;
}
