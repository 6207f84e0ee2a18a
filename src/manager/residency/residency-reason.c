/* SPDX-License-Identifier: Apache-2.0 */
/* Why a vGPU waits: on which of its devices, and for whom. */
#include <stdio.h>

#include "base/size.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise.h"
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

/* "@before device 1 @behind" */
static void note(struct instance *instance, size_t part, const char *before, const char *behind)
{
        char name[NAME_MAX_BYTES];

        snprintf(instance->residency.reason, sizeof(instance->residency.reason), "%s%s%s", before,
                 name_device(instance, part, name), behind);
}

void residency_note_later(struct instance *instance, size_t part)
{
        note(instance, part, "others have the memory of ", " for now");
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
                if (guest->context == GUEST_CONTEXT_RUNNING)
                        sum += footprint_get(guest, part, instance->part[part].device);
        return sum;
}

/* What of the device nobody has that vgpud knows: the driver's, and programs outside of all vGPUs. */
static uint64_t get_outside(const struct residency_look *look)
{
        const struct instance *instance;
        uint64_t known = look->memory_free + device_get_used(look->device);

        if (look->device->has_context)
                known += footprint_get_unknown(look->device);
        list_for_each(instance, &look->device->manager->instances, link)
                for (size_t i = 0; i < instance->n_parts; i++)
                        if (instance->part[i].device == look->device)
                                known += sum_beside(instance, i);
        return known < look->device->memory_total ? look->device->memory_total - known : 0;
}

/* Without them there would be room: it says so, for nothing that vgpud does will make them leave. */
static bool note_outside(const struct residency_look *look, struct instance *instance, int64_t lack)
{
        uint64_t outside = get_outside(look);
        char size[SIZE_TEXT_MAX];

        if (lack <= 0 || outside < (uint64_t)lack)
                return false;
        snprintf(
                instance->residency.reason, sizeof(instance->residency.reason),
                "programs outside of all vGPUs have about %s of device %u ('nvidia-smi' lists them)",
                size_format(size, outside), look->device->index);
        return true;
}

static bool note_held(struct instance *instance, const struct device *device)
{
        const struct instance *other;

        list_for_each(other, &instance->manager->instances, link) {
                char hold[sizeof(instance->residency.reason)];

                if (other == instance || instance_is_off(other) || !instance_is_on(other, device))
                        continue;
                residency_find_hold(other, hold, sizeof(hold));
                if (!hold[0])
                        continue;
                snprintf(instance->residency.reason, sizeof(instance->residency.reason),
                         "vGPU %.40s stays on the device: %.120s", other->name, hold);
                return true;
        }
        return false;
}

void residency_note_stuck(struct instance *instance, size_t part, int64_t lack)
{
        const struct device *device = instance->part[part].device;
        const struct residency_look *look = &instance->manager->residency->look[device->index];

        if (!promise_is_overcommitted(device))
                note(instance, part, "",
                     " has promised its memory to vGPUs that have work or do not leave by "
                     "themselves");
        else if (!note_outside(look, instance, lack) && !note_held(instance, device))
                note(instance, part, "", " has not enough memory that others could leave");
}
