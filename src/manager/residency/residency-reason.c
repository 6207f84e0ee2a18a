/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a vGPU waits: on which of its devices, and for whom. What is so at one look may be over at the next, as memory that
 * was given back is not free at once: a reason is shown when it has been the same at two looks.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/size.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise.h"
#include "manager/model/way-back.h"
#include "manager/operation/operation.h"
#include "manager/residency/residency-internal.h"

#define NAME_MAX_BYTES 24

/* By its number, if the vGPU has several. */
static const char *name_device(const struct instance *instance, size_t part,
                               char text[NAME_MAX_BYTES])
{
        if (instance->n_parts == 1)
                return "its device";
        snprintf(text, NAME_MAX_BYTES, "device %u", instance->part[part].device->index);
        return text;
}

/* Of the looks at one part: sizes in the words may change, the reason is the same. */
enum kind {
        KIND_NONE = 0,
        KIND_LEAVING,
        KIND_LATER,
        KIND_PROMISED,
        KIND_TOO_LITTLE,
        KIND_OUTSIDE,
        KIND_HELD, /* and by which vGPU */
};

__attribute__((format(printf, 5, 6))) static void
note(struct instance *instance, size_t part, enum kind kind, uint32_t by, const char *format, ...)
{
        struct residency_part *mine = &instance->part[part].residency;
        uint64_t reason = (uint64_t)kind << 32 | by;
        bool has_held = mine->reason == reason;
        va_list args;

        mine->reason = reason;
        if (!has_held)
                return;
        va_start(args, format);
        vsnprintf(instance->residency.reason, sizeof(instance->residency.reason), format, args);
        va_end(args);
}

void residency_note_no_reason(struct instance *instance, size_t part)
{
        instance->part[part].residency.reason = KIND_NONE;
}

void residency_note_leaving(struct instance *instance, size_t part)
{
        char name[NAME_MAX_BYTES];

        note(instance, part, KIND_LEAVING, 0, "others are leaving %s for it",
             name_device(instance, part, name));
}

void residency_note_later(struct instance *instance, size_t part)
{
        char name[NAME_MAX_BYTES];

        note(instance, part, KIND_LATER, 0, "others have the memory of %s for now",
             name_device(instance, part, name));
}

/* What its processes have there beside what they allocated. */
static uint64_t sum_beside(const struct instance *instance, size_t part)
{
        const struct guest *guest;
        uint64_t sum = 0;

        /* It counts as what it will use, of which nothing is there before its turn. */
        if (residency_awaits_turn(instance) && !instance_is_off(instance))
                sum -= guests_get_used_of(instance, &instance->part[part]);
        list_for_each(guest, &instance->guests, link)
                if (guest->context.state == GUEST_CONTEXT_RUNNING)
                        sum += footprint_get(guest, part, instance->part[part].device);
        return sum;
}

/* While one is on its way, what is known of it and what is free are of two moments. */
static bool is_in_motion(const struct device *device)
{
        const struct instance *other;

        list_for_each(other, &device->manager->instances, link)
                if (other->operation && !residency_awaits_turn(other) &&
                    !way_back_lacks_room(other) && operation_is_at(other->operation, device))
                        return true;
        return false;
}

/* What of the device nobody has that vgpud knows: the driver's, and programs outside of all vGPUs. */
static uint64_t get_outside(const struct residency_look *look)
{
        const struct instance *instance;
        uint64_t known = look->memory_free + device_get_used(look->device);

        if (look->device->has_context)
                known += footprint_get_mover(look->device);
        list_for_each(instance, &look->device->manager->instances, link)
                for (size_t i = 0; i < instance->n_parts; i++)
                        if (instance->part[i].device == look->device)
                                known += sum_beside(instance, i);
        return known < look->device->memory_total ? look->device->memory_total - known : 0;
}

/* Without them there would be room: it says so, for nothing that vgpud does will make them leave. */
static bool note_outside(const struct residency_look *look, struct instance *instance, size_t part,
                         int64_t lack)
{
        uint64_t outside = get_outside(look);
        char size[SIZE_TEXT_MAX];

        /* A program there has a context at least: less is the error of what is known of the others. */
        if (lack <= 0 || outside < (uint64_t)lack ||
            outside < footprint_get_unknown(look->device) || is_in_motion(look->device))
                return false;
        note(instance, part, KIND_OUTSIDE, 0,
             "programs outside of all vGPUs have about %s of device %u ('nvidia-smi' lists them)",
             size_format(size, outside), look->device->index);
        return true;
}

static bool note_held(struct instance *instance, size_t part)
{
        const struct device *device = instance->part[part].device;
        const struct instance *other;

        list_for_each(other, &instance->manager->instances, link) {
                char hold[sizeof(instance->residency.reason)];

                if (other == instance || instance_is_off(other) || !instance_is_on(other, device))
                        continue;
                residency_find_hold(other, hold, sizeof(hold));
                if (!hold[0])
                        continue;
                note(instance, part, KIND_HELD, other->id, "vGPU %.40s stays on the device: %.120s",
                     other->name, hold);
                return true;
        }
        return false;
}

void residency_note_stuck(struct instance *instance, size_t part, int64_t lack)
{
        const struct device *device = instance->part[part].device;
        const struct residency_look *look = &instance->manager->residency->look[device->index];
        char buffer[NAME_MAX_BYTES];
        const char *name = name_device(instance, part, buffer);

        if (!promise_is_overcommitted(device))
                note(instance, part, KIND_PROMISED, 0,
                     "%s has promised its memory to vGPUs that have work or do not leave by "
                     "themselves",
                     name);
        else if (!note_outside(look, instance, part, lack) && !note_held(instance, part))
                note(instance, part, KIND_TOO_LITTLE, 0,
                     "%s has not enough memory that others could give up", name);
}
