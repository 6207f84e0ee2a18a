/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guest.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/log.h"
#include "manager/backlog.h"
#include "manager/burial.h"
#include "manager/custody.h"
#include "manager/device.h"
#include "manager/gate.h"
#include "manager/instance.h"
#include "manager/launch.h"
#include "manager/manager.h"
#include "manager/observer.h"
#include "manager/session.h"

/* Birth and death. */

void guest_leave(struct guest *guest)
{
        sd_event_source_set_enabled(guest->pid_source, SD_EVENT_OFF);
        guest->is_dead = true;
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_LEFT);
}

static int on_death(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct guest *guest = userdata;

        (void)fd, (void)events;
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
        burial_add(guest->instance->manager->burial, guest);
        return 0;
}

void guest_bury(struct guest *guest)
{
        struct instance *instance = guest->instance;
        char quoted[LOG_QUOTED_MAX];

        log_event_of(guest->uid, LOG_LEVEL_INFO, "process ended", "vgpu=%s pid=%d name=%s",
                     instance->name, (int)guest->pid, log_quote(quoted, guest->name));
        guest_leave(guest);
        if (instance->operation && !guest->is_waiting)
                return; /* the operation buries it at its end */
        guest_free(guest);
        observer_tell_instance(&instance->manager->observers, instance, INSTANCE_RETRY);
        backlog_room_came(instance->manager->backlog);
        instance_settle(instance);
}

int guest_new(struct guest **ret_guest, struct instance *instance, pid_t pid, uid_t uid,
              uint64_t start_time)
{
        struct guest *guest = calloc(1, sizeof(*guest));
        int r;

        if (!guest)
                return -ENOMEM;
        guest->instance = instance;
        guest->pid = pid;
        guest->uid = uid;
        guest->start_time = start_time;
        guest->joined_ns = clock_now(CLOCK_REALTIME);
        guest->pidfd = -1;
        guest->slot = UINT32_MAX;
        guest->board_slot = UINT32_MAX;
        guest->context_device = instance->device;
        list_init(&guest->link);
        list_init(&guest->sessions);
        list_init(&guest->turns);
        list_init(&guest->burial);
        process_get_name(pid, guest->name);

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

        return account_take(guest->instance->manager->accounts, &guest->charge, guest->uid, &cost,
                            failure);
}

struct guest *guest_unload(struct guest *guest)
{
        if (!guest)
                return NULL;
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_UNLOADED);
        list_remove(&guest->link);
        list_remove(&guest->burial);
        sd_event_source_disable_unref(guest->room_timer);
        room_forget(&guest->coming);
        room_forget(&guest->arriving);
        room_forget(&guest->returning);
        sd_event_source_disable_unref(guest->pid_source);
        guest_forget_memory(guest);
        session_drop(guest);
        fd_close(guest->pidfd);
        account_end(&guest->memory_charge);
        account_end(&guest->charge);
        free(guest);
        return NULL;
}

struct guest *guest_free(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct manager *manager = instance->manager;

        if (!guest->is_dead)
                guest_leave(guest);
        custody_drop_memory(guest);
        if (guest->slot != UINT32_MAX) {
                page_give_slot(&instance->page, guest->slot);
                if (store_remove_process(manager->store, instance->id, guest->pid) < 0)
                        backlog_add_process(guest);
        }
        if (guest->reservation) {
                guest->reservation = pool_release(manager->pool, guest->reservation);
                custody_sync_slabs(manager);
        }
        return guest_unload(guest);
}

struct guest *guest_find(struct instance *instance, pid_t pid)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->pid == pid && !guest->is_dead)
                        return guest;
        return NULL;
}

bool guest_has_ended(const struct guest *guest)
{
        struct pollfd end = { .fd = guest->pidfd, .events = POLLIN };

        return poll(&end, 1, 0) > 0;
}

bool guest_is_elsewhere(const struct instance *here, pid_t pid)
{
        struct instance *instance;
        const struct guest *guest;

        list_for_each(instance, &here->manager->instances, link) {
                guest = instance == here ? NULL : guest_find(instance, pid);
                if (guest && !guest_has_ended(guest))
                        return true;
        }
        return false;
}

int guest_admit(struct guest *guest)
{
        struct instance *instance = guest->instance;
        int r = page_take_slot(&instance->page, &guest->slot);

        if (r < 0)
                return r;
        guest->is_waiting = false;
        guest->context_device = instance->device;
        r = backlog_forget_process(instance, guest->pid);
        if (r == 0)
                r = custody_store_process(guest);
        if (r < 0) {
                page_give_slot(&instance->page, guest->slot);
                guest->slot = UINT32_MAX;
                return r;
        }
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_JOINED);
        return 0;
}

int guest_welcome(struct guest *guest)
{
        struct gate_welcome welcome = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_WELCOME },
                .slot = guest->slot,
        };

        snprintf(welcome.device_uuid, sizeof(welcome.device_uuid), "%s",
                 guest->instance->device->uuid);
        return gate_link_send(guest->gate, &welcome, sizeof(welcome), &guest->instance->page.fd, 1);
}

/* Memory. */

size_t guest_find_memory(const struct guest *guest, uint64_t address)
{
        size_t low = 0, high = guest->n_memory;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (guest->memory[middle].address < address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* The keeper's table has a duplicate of each that was exported. */
#define SOURCE_COST 2
#define TARGET_COST 1

static int charge_memory(struct guest *guest, uint64_t n, struct failure *failure)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = n } };

        return account_take(guest->instance->manager->accounts, &guest->memory_charge, guest->uid,
                            &cost, failure);
}

int guest_charge_source(struct guest *guest, struct failure *failure)
{
        return charge_memory(guest, SOURCE_COST, failure);
}

/* An undo brings back what its user had, a part at a time: that is not refused. */
int guest_charge_target(struct guest *guest, struct failure *failure)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = TARGET_COST } };

        if (!guest->instance->course.is_undoing)
                return charge_memory(guest, TARGET_COST, failure);
        return account_force(guest->instance->manager->accounts, &guest->memory_charge, guest->uid,
                             &cost);
}

void guest_close_source(struct guest *guest, struct guest_memory *memory)
{
        if (memory->source < 0)
                return;
        memory->source = fd_close(memory->source);
        account_give(&guest->memory_charge, ACCOUNT_DESCRIPTORS, SOURCE_COST);
}

void guest_close_target(struct guest *guest, struct guest_memory *memory)
{
        if (memory->target < 0)
                return;
        memory->target = fd_close(memory->target);
        account_give(&guest->memory_charge, ACCOUNT_DESCRIPTORS, TARGET_COST);
}

void guest_drop_sources(struct guest *guest)
{
        custody_drop_memory(guest);
        for (size_t i = 0; i < guest->n_memory; i++)
                guest_close_source(guest, &guest->memory[i]);
}

void guest_give_back(struct guest *guest)
{
        if (!guest->is_remembered)
                guest->reservation =
                        pool_release(guest->instance->manager->pool, guest->reservation);
}

void guest_forget_memory(struct guest *guest)
{
        for (size_t i = 0; i < guest->n_memory; i++) {
                guest_close_source(guest, &guest->memory[i]);
                guest_close_target(guest, &guest->memory[i]);
        }
        free(guest->memory);
        guest->memory = NULL;
        guest->n_memory = 0;
        guest->memory_bytes = 0;
}
