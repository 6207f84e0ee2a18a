/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/guest-life.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/container.h"
#include "manager/model/backlog.h"
#include "manager/model/burial.h"
#include "manager/model/clean-copy.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/keep-once.h"
#include "manager/model/launch.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/reading.h"
#include "manager/model/recovery.h"
#include "manager/model/restore-room.h"
#include "manager/model/session.h"
#include "manager/model/silence.h"
#include "manager/model/spilled.h"
#include "manager/model/spilling.h"

void guest_leave(struct guest *guest)
{
        sd_event_source_set_enabled(guest->pid_source, SD_EVENT_OFF);
        guest_look_at_refusals(guest); /* most programs end of the first */
        list_remove(&guest->burial);   /* it has its turn now */
        guest_set_life(guest, GUEST_LEAVING);
        silence_end(guest);
        restore_room_forget(guest);
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_LEFT);
        guest_set_life(guest, GUEST_DEAD);
}

static int on_death(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct guest *guest = userdata;

        (void)fd, (void)events;
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
        burial_add(guest->instance->manager->burial, guest);
        return 0;
}

int guest_new(struct guest **ret_guest, struct instance *instance, pid_t pid, uid_t uid,
              uint64_t start_time)
{
        struct guest *guest = calloc(1, sizeof(*guest));
        struct container container;
        int r;

        if (!guest)
                return -ENOMEM;
        guest->instance = instance;
        guest->pid = pid;
        guest->uid = guest->payer = uid;
        guest->start_time = start_time;
        guest->joined_ns = clock_now(CLOCK_REALTIME);
        guest->pidfd = -1;
        guest->slot = UINT32_MAX;
        for (size_t i = 0; i < GATE_DEVICES_MAX; i++)
                guest->record[i].state_slot = UINT32_MAX;

        guest->context.place = instance_place(instance);
        list_init(&guest->link);
        list_init(&guest->sessions);
        list_init(&guest->turns);
        list_init(&guest->burial);
        list_init(&guest->sharing.makers);
        list_init(&guest->sharing.users);
        list_init(&guest->share.questions);
        process_get_name(pid, guest->name);
        (void)process_get_program(pid, &guest->program);
        if (container_find(&container, pid))
                (void)snprintf(guest->container, sizeof(guest->container), "%.*s",
                               CONTAINER_ID_SHORT, container.id);
        if (container.is_known)
                memcpy(guest->container_name, container.name, sizeof(guest->container_name));

        /* Edge-triggered: of many that have ended, the kernel tells each once, not all again and again. */
        r = process_open(pid, start_time, &guest->pidfd);
        if (r == 0)
                r = sd_event_add_io(instance->manager->event, &guest->pid_source, guest->pidfd,
                                    EPOLLIN | EPOLLET, on_death, guest);
        if (r < 0) {
                guest_unload(guest);
                return r;
        }
        list_append(&instance->guests, &guest->link);
        launch_drop(instance, pid);
        *ret_guest = guest;
        return 0;
}

/* Its pidfd; what it takes for turns is charged with them. */
int guest_charge(struct guest *guest, struct failure *failure)
{
        const struct account_cost cost = { { [ACCOUNT_OBJECTS] = 1, [ACCOUNT_DESCRIPTORS] = 1 } };

        return account_take(guest->instance->manager->accounts, &guest->charge, guest->payer, &cost,
                            failure);
}

void guest_succeed(const struct guest *former)
{
        struct instance *instance = former->instance;
        struct failure failure = { 0 };
        uid_t user = former->uid;
        struct guest *guest;

        if (instance_is_usable(instance)) {
                (void)launch_add(instance, former->pid, former->payer, &failure);
                return;
        }
        (void)process_get_user(former->pid, &user);
        if (guest_new(&guest, instance, former->pid, user, former->start_time) < 0)
                return; /* it has ended */
        guest->payer = former->payer;
        guest_set_presence(guest, GUEST_JOINING);
        if (guest_charge(guest, &failure) < 0)
                guest_unload(guest);
}

struct guest *guest_unload(struct guest *guest)
{
        if (!guest)
                return NULL;
        assert(guest->life != GUEST_LEAVING); /* the observer that is told still has it */
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_UNLOADED);
        list_remove(&guest->link);
        list_remove(&guest->burial);
        for (size_t i = 0; i < GATE_DEVICES_MAX; i++) {
                room_forget(&guest->room[i].coming);
                room_forget(&guest->room[i].arriving);
                room_forget(&guest->room[i].returning);
                room_forget(&guest->room[i].handed);
        }
        restore_room_forget(guest);
        sd_event_source_disable_unref(guest->pid_source);
        clean_copy_forget(guest);
        spilling_leave(guest);
        reading_leave(guest);
        spilled_forget(guest);
        keep_once_forget(guest);
        guest_forget_memory(guest);
        session_drop(guest);
        fd_close(guest->pidfd);
        account_end(&guest->memory_charge);
        account_end(&guest->charge);
        free(guest);
        return NULL;
}

/* The same in the pages of all parts. */

static void give_slot(struct guest *guest)
{
        struct instance *instance = guest->instance;

        for (size_t i = 0; i < instance->n_parts; i++)
                page_give_slot(&instance->part[i].page, guest->slot);
}

/* Of a free one nothing is to be left: who mends it first, clears it. */
static int take_slot(struct guest *guest)
{
        struct instance *instance = guest->instance;
        uint32_t slot;
        int r = page_take_slot(&instance->part[0].page, &slot);

        for (size_t i = 1; r == 0 && i < instance->n_parts; i++) {
                page_mend(&instance->part[i].page);
                r = page_claim_slot(&instance->part[i].page, slot);
        }
        if (r == 0)
                guest->slot = slot;
        return r;
}

int guest_claim_slot(struct guest *guest, uint32_t slot)
{
        struct instance *instance = guest->instance;
        int r = 0;

        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = page_claim_slot(&instance->part[i].page, slot);
        if (r == 0)
                guest->slot = slot;
        return r;
}

struct guest *guest_free(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct manager *manager = instance->manager;

        if (!guest_is_dead(guest))
                guest_leave(guest);
        guest_set_life(guest, GUEST_BURIED);
        recovery_drop_memory(guest);
        if (guest->slot != UINT32_MAX) {
                give_slot(guest);
                if (store_remove_process(manager->store, instance->id, guest->pid) < 0)
                        backlog_add_process(guest);
        }
        clean_copy_drop(guest);
        spilled_drop(guest);
        if (guest->reservation) {
                guest->reservation = pool_release(manager->pool, guest->reservation);
                recovery_sync_slabs(manager);
        }
        return guest_unload(guest);
}

int guest_admit(struct guest *guest)
{
        struct instance *instance = guest->instance;
        int r = take_slot(guest);

        if (r < 0)
                return r;
        guest_set_presence(guest, GUEST_PRESENT);
        guest->context.place = instance_place(instance);
        r = backlog_forget_process(instance, guest->pid);
        if (r == 0)
                r = recovery_store_process(guest);
        if (r == 0 && guest->program != 0)
                r = store_put_program(instance->manager->store, instance->id, guest->pid,
                                      guest->program);
        if (r < 0) {
                give_slot(guest);
                guest->slot = UINT32_MAX;
                return r;
        }
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_JOINED);
        return 0;
}
