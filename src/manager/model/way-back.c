/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/way-back.h"

#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"

/* Its context: the driver has refused it, and is asked again. */
static bool waits_for_room(const struct guest *guest)
{
        return !guest_is_dead(guest) && guest->context.room_deadline_ns > 0 &&
               guest->context.state != GUEST_CONTEXT_RUNNING;
}

bool way_back_lacks_room(const struct instance *instance)
{
        const struct guest *guest;

        if (instance->state == STATE_FAILED && !instance->operation)
                return instance->lack.timer != NULL;
        if (!instance->course.is_undoing)
                return false;
        list_for_each(guest, &instance->guests, link)
                if (waits_for_room(guest))
                        return true;
        return false;
}

static uint64_t context_bytes(const struct guest *guest, size_t part, const struct device *device)
{
        const struct guest_room *own = &guest->room[part];
        const struct room *room = &device->room;

        if (guest->context.state == GUEST_CONTEXT_RUNNING || room_is_to(&own->returning, room) ||
            room_is_to(&own->kept, room))
                return 0;
        return footprint_get(guest, part, device);
}

/* What waits in the pool; if nothing does, the first that is exported still needs as much once more, until it is filled. */
static uint64_t memory_bytes(const struct guest *guest, size_t part, const struct device *device)
{
        uint64_t parked = 0, first = 0;

        for (size_t i = 0; i < guest->n_memory; i++) {
                const struct guest_memory *memory = &guest->memory[i];

                if (memory->part != part)
                        continue;
                if (memory->is_parked)
                        parked += memory->size;
                else if (memory->source >= 0 && first == 0)
                        first = memory->size;
        }
        if (room_is_to(&guest->room[part].handed, &device->room))
                return 0;
        return parked > 0 ? parked : first;
}

uint64_t way_back_get_bytes(const struct instance *instance, size_t part)
{
        const struct device *device = instance->part[part].device;
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest))
                        sum += context_bytes(guest, part, device) +
                               memory_bytes(guest, part, device);
        return sum;
}
