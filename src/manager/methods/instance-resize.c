/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A larger quota is in the store before the gates see it. A smaller one is in the page before we look at
 * what the programs hold: a gate tells what it asks for, and looks at the quota after that, so that either
 * the gate sees the smaller quota or we see what it asks for (state/page.h). Should vgpud die in between,
 * the next one writes the quota of the store into the page.
 */
#include "manager/methods/instance-resize.h"

#include <errno.h>
#include <inttypes.h>

#include "base/size.h"
#include "daemon/log.h"
#include "manager/meter/meter.h"
#include "manager/methods/instance-create.h"
#include "manager/model/backing.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/policy.h"
#include "manager/model/promise-room.h"
#include "manager/model/promise.h"
#include "manager/setting/settings.h"

/* What is off its device needs no room there: it is looked for when the vGPU comes back. */
static bool needs_room(const struct instance *instance, const struct device *device)
{
        return !instance_is_off(instance) || promise_is_overcommitted(device);
}

static int check_device(const struct instance *instance, const struct device *device,
                        uint64_t frame_buffer, struct failure *failure)
{
        int r = instance_check_size(device, frame_buffer, failure);

        return r < 0 || !needs_room(instance, device)
                       ? r
                       : settings_check_size(device, frame_buffer, instance, failure);
}

static int check_room(const struct instance *instance, uint64_t frame_buffer,
                      struct failure *failure)
{
        struct place place = place_nowhere;
        size_t n = 0;

        for (size_t i = 0; i < instance->n_parts; i++)
                if (needs_room(instance, instance->part[i].device))
                        place.device[n++] = instance->part[i].device;
        return n > 0 ? promise_check_room(&place, frame_buffer, instance, failure) : 0;
}

static int check(const struct instance *instance, uint64_t frame_buffer, struct failure *failure)
{
        int r = instance_check_idle(instance, failure);

        if (r == 0 && frame_buffer > instance->frame_buffer)
                r = policy_check_growth(instance, frame_buffer - instance->frame_buffer, failure);
        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = check_device(instance, instance->part[i].device, frame_buffer, failure);
        if (r == 0 && frame_buffer > instance->frame_buffer)
                r = check_room(instance, frame_buffer, failure);
        return r;
}

/* What is off the device is known without the page, where a guest may write. */
static uint64_t get_away(const struct instance *instance)
{
        const struct guest *guest;
        uint64_t sum = 0;

        if (instance->state != STATE_SUSPENDED && instance->state != STATE_EVICTED)
                return 0;
        list_for_each(guest, &instance->guests, link)
                sum += guest_is_dead(guest) ? 0 : guest->memory_bytes;
        return sum;
}

static void set_quota(struct instance *instance, uint64_t frame_buffer)
{
        for (size_t i = 0; i < instance->n_parts; i++) {
                instance->part[i].page.quota = frame_buffer;
                page_write_quota(&instance->part[i].page, frame_buffer);
        }
}

/* On all of its devices, or on none. */
static int lower_quotas(struct instance *instance, uint64_t frame_buffer, uint64_t *held)
{
        int r = *held > frame_buffer ? -EDQUOT : 0;

        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = page_lower_quota(&instance->part[i].page, frame_buffer, held);
        if (r < 0)
                set_quota(instance, instance->frame_buffer);
        return r;
}

static int lower_quota(struct instance *instance, uint64_t frame_buffer, struct failure *failure)
{
        char held_text[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX];
        uint64_t held = get_away(instance);
        int r = lower_quotas(instance, frame_buffer, &held);

        if (r == -EAGAIN)
                return failure_set(failure, -EBUSY, "Busy", "try again in a moment",
                                   "a program in vGPU %s is getting memory at this moment",
                                   instance->name);
        if (r < 0)
                return failure_set(failure, r, "InUse",
                                   "ask for more, or end a program (vgpu ls -l shows them)",
                                   "the programs in vGPU %s hold %s, more than %s", instance->name,
                                   size_format(held_text, held), size_format(wanted, frame_buffer));
        return 0;
}

static int store_size(const struct instance *instance, uint64_t frame_buffer)
{
        struct store *store = instance->manager->store;
        int r = store_begin_durable(store);

        if (r == 0)
                r = store_resize_instance(store, instance->id, frame_buffer);
        if (r == 0)
                r = store_commit(store);
        if (r < 0)
                store_rollback(store);
        return r;
}

int instance_resize(struct instance *instance, uint64_t frame_buffer, struct failure *failure)
{
        struct observers *observers = &instance->manager->observers;
        const struct place place = instance_place(instance);
        int r = check(instance, frame_buffer, failure);

        if (r == 0 && frame_buffer < instance->frame_buffer)
                r = lower_quota(instance, frame_buffer, failure);
        if (r < 0)
                return r;
        if (frame_buffer > instance->frame_buffer)
                r = backing_hold(instance, &place, frame_buffer, failure);
        if (r < 0)
                return r;
        r = store_size(instance, frame_buffer);
        if (r < 0) {
                set_quota(instance, instance->frame_buffer);
                return failure_from_errno(failure, r, "resizing the vGPU");
        }
        meter_sync(instance->manager->meter); /* up to now it was of the other size */
        log_event_of(instance->owner, LOG_LEVEL_INFO, "resized",
                     "vgpu=%s from=%" PRIu64 " frame_buffer=%" PRIu64, instance->name,
                     instance->frame_buffer, frame_buffer);
        instance->frame_buffer = frame_buffer;
        for (size_t i = 0; i < instance->n_parts; i++) /* its type may be another one */
                instance->part[i].placement = STATE_PLACEMENT_NONE;
        set_quota(instance, frame_buffer);
        observer_tell_instance(observers, instance, INSTANCE_RESIZED);
        observer_tell_changed(observers);
        return 0;
}
