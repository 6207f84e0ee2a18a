/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "manager/custody.h"
#include "manager/gate.h"
#include "manager/instance.h"
#include "manager/log.h"
#include "manager/manager.h"
#include "manager/operation.h"
#include "manager/schedule.h"
#include "manager/session.h"

/* Birth and death. */

static int on_death(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct guest *guest = userdata;
        struct instance *instance = guest->instance;
        char quoted[LOG_QUOTED_MAX];

        (void)fd, (void)events;
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
        log_event(LOG_LEVEL_INFO, "process ended", "vgpu=%s pid=%d name=%s", instance->name,
                  (int)guest->pid, log_quote(quoted, guest->name));
        schedule_forget(guest);
        guest->gate = gate_link_free(guest->gate);
        guest->is_dead = true;
        meter_end(guest);
        if (instance->operation && !guest->is_waiting) {
                guest_end_request(guest, -ESRCH); /* the operation buries it at its end */
                return 0;
        }
        guest_free(guest);
        operation_try_again(instance);
        instance_settle(instance);
        return 0;
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
        process_get_name(pid, guest->name);

        r = process_open(pid, start_time, &guest->pidfd);
        if (r == 0)
                r = sd_event_add_io(instance->manager->event, &guest->pid_source, guest->pidfd,
                                    EPOLLIN, on_death, guest);
        if (r < 0) {
                guest_unload(guest);
                return r;
        }
        list_append(&instance->guests, &guest->link);
        *ret_guest = guest;
        return 0;
}

struct guest *guest_unload(struct guest *guest)
{
        if (!guest)
                return NULL;
        schedule_forget(guest);
        list_remove(&guest->link);
        gate_link_free(guest->gate);
        sd_event_source_disable_unref(guest->request.timer);
        sd_event_source_disable_unref(guest->pid_source);
        guest_forget_memory(guest);
        session_drop(guest);
        fd_close(guest->pidfd);
        free(guest);
        return NULL;
}

struct guest *guest_free(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct manager *manager = instance->manager;

        custody_drop_memory(guest);
        if (guest->reservation) {
                guest->reservation = pool_release(manager->pool, guest->reservation);
                custody_sync_slabs(manager);
        }
        if (guest->slot != UINT32_MAX) {
                meter_end(guest);
                page_give_slot(&instance->page, guest->slot);
                (void)store_remove_process(manager->store, instance->id, guest->pid);
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

int guest_admit(struct guest *guest)
{
        struct instance *instance = guest->instance;
        int r = page_take_slot(&instance->page, &guest->slot);

        if (r < 0)
                return r;
        guest->is_waiting = false;
        guest->context_device = instance->device;
        r = custody_store_process(guest);
        if (r < 0) {
                page_give_slot(&instance->page, guest->slot);
                guest->slot = UINT32_MAX;
                return r;
        }
        meter_begin(guest);
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

void guest_drop_sources(struct guest *guest)
{
        custody_drop_memory(guest);
        for (size_t i = 0; i < guest->n_memory; i++)
                guest->memory[i].source = fd_close(guest->memory[i].source);
}

void guest_forget_memory(struct guest *guest)
{
        for (size_t i = 0; i < guest->n_memory; i++) {
                fd_close(guest->memory[i].source);
                fd_close(guest->memory[i].target);
        }
        free(guest->memory);
        guest->memory = NULL;
        guest->n_memory = 0;
        guest->memory_bytes = 0;
}
