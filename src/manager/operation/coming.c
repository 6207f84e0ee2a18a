/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/coming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manager/model/backing.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise-room.h"
#include "manager/model/promise.h"
#include "manager/model/recovery.h"
#include "manager/operation/admission.h"
#include "manager/operation/arrival.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/copies.h"
#include "manager/operation/filling.h"
#include "manager/operation/group.h"
#include "manager/operation/leaving.h"
#include "manager/operation/operation.h"
#include "manager/schedule/schedule.h"
#include "manager/setting/settings.h"
#include "state/kind.h"

static int check_settings(const struct instance *instance, const struct device *device,
                          struct failure *failure)
{
        int r = settings_check_size(device, instance->frame_buffer, instance, failure);

        if (r == 0 && instance->n_parts > 1)
                r = schedule_check_several(device, failure);
        return r < 0 ? r : schedule_check_move(instance, device, failure);
}

/* It is there already, and asks for nothing: its quota can be made smaller. */
static void advise_to_resize(struct failure *failure)
{
        static const char ask[] = "ask for less, ";
        char rest[sizeof(failure->hint)];

        if (strncmp(failure->hint, ask, strlen(ask)) != 0)
                return;
        snprintf(rest, sizeof(rest), "%s", failure->hint + strlen(ask));
        snprintf(failure->hint, sizeof(failure->hint), "make it smaller (vgpu resize), %.*s",
                 (int)(sizeof(failure->hint) - 40), rest);
}

int coming_check_promise(const struct operation *operation, struct failure *failure)
{
        struct instance *instance = operation->instance;
        const struct place place = instance_place(instance);
        int r = 0;

        /* Where it is it stays, whatever the devices have become. */
        if (!place_is_equal(&place, &operation->target))
                r = promise_check_place(&operation->target, failure);
        if (r == 0)
                r = promise_check_room(&operation->target, instance->frame_buffer, instance,
                                       failure);
        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = check_settings(instance, operation->target.device[i], failure);
        if (r == 0)
                r = backing_hold(instance, &operation->target, instance->frame_buffer, failure);
        if (r < 0)
                advise_to_resize(failure);
        return r;
}

static int refuse(const struct instance *instance, const struct device *from,
                  const struct device *to, enum state_misfit misfit, struct failure *failure)
{
        switch (misfit) {
        case STATE_OTHER_KIND:
                return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                                   "choose a device of the same kind",
                                   "vGPU %s cannot move from device %u (%s) to device %u (%s): "
                                   "they are not of one kind",
                                   instance->name, from->index, from->name, to->index, to->name);
        case STATE_OTHER_TYPES:
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "choose another device",
                                   "device %u does not host vGPUs of the type of vGPU %s",
                                   to->index, instance->name);
        case STATE_TOO_SMALL:
                return failure_set(failure, -ENOSPC, "NoRoom", "choose another device",
                                   "device %u is smaller than vGPU %s", to->index, instance->name);
        case STATE_FITS:
                break;
        }
        return 0;
}

/* By what the state page says of both, and so as NVML's library answers for their metadata. */
static int check_fit(const struct instance *instance, const struct device *from,
                     const struct device *to, struct failure *failure)
{
        const struct state_page *state_page = from->manager->state_page;
        struct state_claim claim = { .quota = instance->frame_buffer };
        enum state_misfit misfit = STATE_OTHER_KIND;
        struct state_target target;
        struct state_device record;

        if (from != to && state_read_device(state_page, to->index, &record) && !record.can_migrate)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "choose another device",
                                   "vGPU %s cannot move to device %u: no vGPU can move there",
                                   instance->name, to->index);
        if (state_read_kind(state_page, from->index, &claim.kind) &&
            state_read_target(state_page, to->index, &target))
                misfit = state_find_misfit(&claim, &target);
        return refuse(instance, from, to, misfit, failure);
}

int coming_check_fit(const struct operation *operation, struct failure *failure)
{
        const struct instance *instance = operation->instance;
        int r = 0;

        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = check_fit(instance, instance->part[i].device, operation->target.device[i],
                              failure);
        return r;
}

void coming_check(struct operation *operation)
{
        if (operation->n_processes > 0)
                admission_begin(operation, true);
}

void coming_check_again(struct operation *operation)
{
        admission_begin(operation, false);
}

void coming_create(struct operation *operation)
{
        if (operation->request.is_early)
                arrival_begin(operation);
        broadcast_create(operation);
}

/* Memory that was created but not filled is worth nothing. */
void coming_undo_create(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                for (size_t i = 0; i < guest->n_memory; i++)
                        guest_close_target(guest, &guest->memory[i]);
        if (operation->request.is_early || operation->is_recovery)
                broadcast_release_parts(operation);
        broadcast_release(operation);
}

void coming_copy(struct operation *operation)
{
        struct guest *guest;

        if (operation->request.is_early) {
                arrival_run(operation);
                return;
        }
        for (size_t i = 0; i < operation->instance->n_parts; i++) {
                room_turn(&operation->staging[i]); /* it ends where the copy begins */
                operation_for_each_guest(guest, operation)
                        room_turn(&guest->room[i].arriving); /* it has been created */
        }
        operation_for_each_guest(guest, operation)
                copies_in(operation, guest);
        broadcast_take(operation);
}

static void end_copies(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                copies_end(operation, guest);
        filling_end(operation);
}

void coming_undo_copy(struct operation *operation)
{
        end_copies(operation);
}

static uint32_t state_after(const struct operation *operation)
{
        return operation_next_guest(operation, NULL) ? STATE_RUNNING : STATE_IDLE;
}

static int put(struct operation *operation)
{
        const struct store_memory nothing = { 0 };
        struct instance *instance = operation->instance;
        struct store *store = instance->manager->store;
        struct guest *guest;
        int r = recovery_put_state(instance, state_after(operation), &operation->target);

        operation_for_each_guest(guest, operation)
                if (r == 0)
                        r = store_put_memory(store, instance->id, guest->pid, &nothing);
        if (r == 0)
                r = store_remove_operation(store, instance->id);
        return r;
}

static void settle(struct operation *operation)
{
        struct guest *guest;

        for (size_t i = 0; i < operation->instance->n_parts; i++)
                operation->instance->part[i].device = operation->target.device[i];
        operation->instance->state = state_after(operation);
        operation->instance->still_since_ns = 0;
        operation_for_each_guest(guest, operation)
                guest->is_remembered = false;
}

void coming_record(struct operation *operation)
{
        group_record(operation, put, settle);
}

void coming_open(struct operation *operation)
{
        broadcast_open(operation);
}

void coming_let_go(struct operation *operation)
{
        end_copies(operation);
}

void coming_drop(struct operation *operation)
{
        struct guest *guest;

        leaving_drop(operation);
        operation_for_each_guest(guest, operation) {
                guest_forget_memory(guest);
                clean_copy_put_back(guest);
        }
}
