/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/instance-life.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "daemon/log.h"
#include "manager/model/account.h"
#include "manager/model/backlog.h"
#include "manager/model/burial.h"
#include "manager/model/ceiling.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/launch.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/recovery.h"
#include "manager/model/reserve.h"

struct instance *instance_find_settled(struct manager *manager, const char *name,
                                       struct failure *failure)
{
        struct instance *instance = instance_find(manager, name, failure);

        if (!instance)
                return NULL;
        burial_finish(manager->burial, instance);
        return instance_find(manager, name, failure);
}

/* In memory. */

static int on_creator_gone(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct instance *instance = userdata;

        (void)fd, (void)events;
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
        instance->is_creator_gone = true;
        instance_settle(instance);
        return 0;
}

static int watch_creator(struct instance *instance)
{
        CLEANUP(fd_closep) int pidfd = -1;
        int r;

        if (!instance->is_transient)
                return 0;
        r = process_open(instance->creator, instance->creator_start, &pidfd);
        if (r == -ESRCH) {
                instance->is_creator_gone = true;
                return 0;
        }
        if (r < 0)
                return r;
        r = sd_event_add_io(instance->manager->event, &instance->creator_source, pidfd, EPOLLIN,
                            on_creator_gone, instance);
        if (r < 0)
                return r;
        sd_event_source_set_io_fd_own(instance->creator_source, true);
        pidfd = -1;
        return 0;
}

struct instance *instance_free(struct instance *instance)
{
        struct guest *guest, *after;

        if (!instance)
                return NULL;
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_UNLOADED);
        list_for_each_safe(guest, after, &instance->guests, link)
                guest_unload(guest);
        launch_drop_all(instance);
        list_remove(&instance->link);
        sd_event_source_disable_unref(instance->creator_source);
        sd_event_source_disable_unref(instance->catch_up_timer);
        backlog_end_lack(instance);
        reserve_forget(instance);
        for (size_t i = 0; i < instance->n_parts; i++) {
                room_forget(&instance->part[i].residency.promise);
                page_deinit(&instance->part[i].page);
                accounting_deinit(&instance->part[i].meter.accounting);
        }
        account_end(&instance->charge);
        free(instance);
        return NULL;
}
DEFINE_CLEANUP(struct instance *, instance_free);

/* Its pages, which are in the table of the keeper as well, and its creator. */
static struct account_cost get_cost(const struct instance *instance)
{
        return (struct account_cost){
                { [ACCOUNT_OBJECTS] = 1, [ACCOUNT_DESCRIPTORS] = 1 + 2 * instance->n_parts }
        };
}

static void add_part(struct instance *instance, uint32_t id, struct device *device)
{
        instance->part[instance->n_parts++] = (struct instance_part){
                .id = id,
                .device = device,
                .page = { .fd = -1 },
                .state_slot = UINT32_MAX,
                .placement = STATE_PLACEMENT_NONE,
        };
}

/* A device that is gone is left out, if there is another one. */
static void add_parts(struct instance *instance, const struct store_instance *stored)
{
        struct manager *manager = instance->manager;

        for (size_t i = 0; i <= stored->n_more; i++) {
                const char *uuid = i ? stored->more[i - 1].device_uuid : stored->device_uuid;
                struct device *device = device_find_uuid(manager, uuid);

                if (device && !instance_is_on(instance, device))
                        add_part(instance, i ? stored->more[i - 1].id : stored->id, device);
                else if (!device)
                        (void)snprintf(instance->gone, sizeof(instance->gone), "%s", uuid);
                if (!device)
                        log_event(
                                LOG_LEVEL_ERROR, "a device of a vGPU is gone",
                                "vgpu=%s device=%s hint=\"its programs see the others, or device 0\"",
                                stored->name, uuid);
        }
        if (instance->n_parts == 0)
                add_part(instance, stored->id, &manager->device[0]);
}

static int instance_new(struct instance **ret_instance, struct manager *manager,
                        const struct store_instance *stored)
{
        struct instance *instance = calloc(1, sizeof(*instance));

        if (!instance)
                return -ENOMEM;
        *instance = (struct instance){
                .manager = manager,
                .id = stored->id,
                .frame_buffer = stored->frame_buffer,
                .created_ns = stored->created_ns,
                .owner = stored->owner,
                .state = stored->state,
                .encoder_capacity = 100,
                .is_transient = stored->is_transient,
                .creator = stored->creator,
                .creator_start = stored->creator_start,
        };
        add_parts(instance, stored);
        snprintf(instance->name, sizeof(instance->name), "%s", stored->name);
        snprintf(instance->uuid, sizeof(instance->uuid), "%s", stored->uuid);
        list_init(&instance->link);
        list_init(&instance->guests);
        list_init(&instance->turns);
        list_init(&instance->launches);
        *ret_instance = instance;
        return 0;
}

int instance_add(struct manager *manager, struct store_instance *stored, instance_add_fn also,
                 const void *userdata, struct instance **ret_instance, struct failure *failure)
{
        CLEANUP(instance_freep) struct instance *instance = NULL;
        struct account_cost cost;
        int r = stored->is_transient ? store_begin(manager->store)
                                     : store_begin_durable(manager->store);

        if (r < 0)
                return r;
        r = store_add_instance(manager->store, stored);
        if (r == 0)
                r = instance_new(&instance, manager, stored);
        if (r == 0) {
                cost = get_cost(instance);
                r = account_take(manager->accounts, &instance->charge, instance->owner, &cost,
                                 failure);
        }
        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = page_create(&instance->part[i].page, instance->frame_buffer);
        if (r == 0)
                r = recovery_put_pages(instance);
        if (r == 0)
                r = watch_creator(instance);
        if (r == 0 && instance->is_creator_gone)
                r = -ESRCH;
        if (r == 0)
                r = also(instance, userdata, failure);
        if (r == 0)
                r = store_commit(manager->store);
        if (r < 0) {
                store_rollback(manager->store);
                if (instance) {
                        recovery_drop_pages(instance);
                        reserve_drop(instance);
                }
                return r;
        }
        list_append(&manager->instances, &instance->link);
        ceiling_cover(instance); /* before anybody can join it */
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_ADDED);
        *ret_instance = TAKE(instance);
        return 0;
}

int instance_restore(struct manager *manager, const struct store_instance *stored)
{
        CLEANUP(instance_freep) struct instance *instance = NULL;
        struct account_cost cost;
        int r = instance_new(&instance, manager, stored);

        if (r < 0)
                return r;
        cost = get_cost(instance);
        r = account_force(manager->accounts, &instance->charge, instance->owner, &cost);
        reserve_adopt(instance);
        if (r == 0)
                r = recovery_get_pages(instance);
        if (r < 0)
                return r;
        r = watch_creator(instance);
        if (r < 0)
                return r;
        list_append(&manager->instances, &instance->link);
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_LOADED);
        instance = NULL;
        return 0;
}

/* Changing and removing. */

void instance_set_state(struct instance *instance, enum state_instance_state state)
{
        instance->state = state;
        if (store_set_instance(instance->manager->store, instance->id, state,
                               instance_home(instance)->uuid) < 0)
                backlog_add_instance(instance);
        observer_tell_changed(&instance->manager->observers);
}

static int remove_from_store(struct instance *instance)
{
        struct store *store = instance->manager->store;
        int r = instance->is_transient ? store_begin(store) : store_begin_durable(store);

        if (r == 0)
                r = store_remove_instance(store, instance->id);
        if (r == 0)
                r = store_commit(store);
        if (r < 0)
                store_rollback(store);
        return r;
}

static int forget(struct instance *instance)
{
        struct manager *manager = instance->manager;
        int r = remove_from_store(instance);

        if (r < 0)
                return r;
        log_event_of(instance->owner, LOG_LEVEL_INFO, "removed", "vgpu=%s", instance->name);
        recovery_drop_pages(instance);
        reserve_drop(instance);
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_REMOVED);
        instance_free(instance);
        observer_tell_changed(&manager->observers);
        return 0;
}

/* The mover still calls back for it. */
static bool has_unburied(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest_is_dead(guest) && guest->refresh)
                        return true;
        return false;
}

int instance_remove(struct instance *instance, struct failure *failure)
{
        size_t n = guests_count(instance) + list_count(&instance->launches);
        int r = instance_check_no_image(instance, failure);

        if (r < 0)
                return r;
        /* First: an operation passes by itself, its processes do not. */
        if (n > 0)
                return failure_set(failure, -EBUSY, "Busy",
                                   n == 1 ? "end it first (vgpu ls -l shows it)"
                                          : "end them first (vgpu ls -l shows them)",
                                   "vGPU %s has %zu process%s", instance->name, n,
                                   n == 1 ? "" : "es");
        r = instance_check_idle(instance, failure);
        if (r < 0)
                return r;
        if (has_unburied(instance))
                return failure_set(
                        failure, -EBUSY, "Busy", "try again in a moment",
                        "the memory of a process of vGPU %s that has ended is being let go",
                        instance->name);
        r = forget(instance);
        return r < 0 ? failure_from_errno(failure, r, "removing the vGPU") : 0;
}

void instance_settle(struct instance *instance)
{
        enum state_instance_state wanted = instance->state;
        size_t n = guests_count(instance);

        if (instance->operation || instance->image || has_unburied(instance))
                return;
        if (n == 0 && instance->is_transient && instance->is_creator_gone) {
                (void)forget(instance);
                return;
        }
        if (n == 0)
                wanted = STATE_IDLE, instance->still_since_ns = 0;
        else if (instance->state == STATE_IDLE)
                wanted = STATE_RUNNING;
        if (wanted != instance->state) {
                instance_set_state(instance, wanted);
                ceiling_cover(instance); /* it may have been off */
                if (store_remove_operation(instance->manager->store, instance->id) < 0)
                        backlog_add_instance(instance);
        }
        if (instance_is_usable(instance))
                observer_tell_instance(&instance->manager->observers, instance, INSTANCE_SETTLED);
        observer_tell_changed(
                &instance->manager->observers); /* which settles the devices, once for all */
}

void instance_bury(struct guest *guest)
{
        struct instance *instance = guest->instance;
        bool is_replaced = guest_is_replaced(guest);
        char quoted[LOG_QUOTED_MAX];

        log_event_of_program(&(struct log_program){ guest->payer, instance->id, instance->name },
                             LOG_LEVEL_INFO,
                             is_replaced ? "process became another program" : "process ended",
                             "vgpu=%s pid=%d name=%s", instance->name, (int)guest->pid,
                             log_quote(quoted, guest->name));
        guest_leave(guest);
        if (is_replaced)
                guest_succeed(guest);
        instance_bury_at_last(guest);
}

void instance_bury_at_last(struct guest *guest)
{
        struct instance *instance = guest->instance;

        if (guest->life != GUEST_DEAD || guest->refresh ||
            (instance->operation && guest->presence != GUEST_JOINING))
                return;
        guest_free(guest);
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_RETRY);
        backlog_room_came(instance->manager->backlog);
        instance_settle(instance);
}
