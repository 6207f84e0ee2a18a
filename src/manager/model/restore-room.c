/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/restore-room.h"

#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

/* NULL: none, or on a device that is gone. */
static struct room *find_target(const struct guest *guest, size_t part)
{
        if (guest_is_dead(guest) || guest->context.state != GUEST_CONTEXT_RESUMING ||
            part >= place_count(&guest->context.target))
                return NULL;
        return &guest->context.target.device[part]->room;
}

static void drop_kept(struct guest *guest, size_t part, const struct room *room)
{
        struct room_promise *kept = &guest->room[part].kept;

        if (room_is_to(kept, room))
                room_forget(kept);
}

static void make(struct room_promise *promise, const struct guest *guest, size_t part,
                 struct device *device)
{
        const struct room_promise *kept = &guest->room[part].kept;

        room_promise(&device->room, promise,
                     room_is_to(kept, &device->room) ? kept->bytes
                                                     : footprint_get(guest, part, device));
}

/* The way back of an operation to one device stays when its process has to be restored to another one first. */
struct room_promise *restore_room_promise(struct guest *guest, size_t part, struct device *device)
{
        struct guest_room *own = &guest->room[part];
        struct room_promise *promise;

        if (room_is_to(&own->coming, &device->room))
                promise = &own->coming;
        else if (!own->returning.room || room_is_to(&own->returning, &device->room))
                promise = &own->returning;
        else
                promise = &own->kept;
        if (!room_is_to(promise, &device->room))
                make(promise, guest, part, device);
        if (promise != &own->kept)
                drop_kept(guest, part, &device->room);
        return promise;
}

void restore_room_expect(struct guest *guest, size_t part, struct device *device)
{
        room_promise(&device->room, &guest->room[part].returning,
                     footprint_get(guest, part, device));
        drop_kept(guest, part, &device->room);
}

void restore_room_end(struct guest *guest, size_t part, struct room_promise *promise)
{
        struct room_promise *kept = &guest->room[part].kept;
        struct room *room = find_target(guest, part);
        uint64_t bytes = promise->bytes;
        bool is_of_restore = room && room_is_to(promise, room);

        room_forget(promise);
        if (is_of_restore && !(room_is_to(kept, room) && kept->bytes >= bytes))
                room_promise(room, kept, bytes);
}

void restore_room_load(struct guest *guest)
{
        for (size_t part = 0; part < guest->instance->n_parts; part++)
                if (find_target(guest, part))
                        make(&guest->room[part].kept, guest, part,
                             guest->context.target.device[part]);
}

void restore_room_forget(struct guest *guest)
{
        for (size_t part = 0; part < GATE_DEVICES_MAX; part++)
                room_forget(&guest->room[part].kept);
}

static bool is_kept_for(const struct guest *guest, const struct device *device)
{
        for (size_t part = 0; part < guest->instance->n_parts; part++)
                if (room_is_to(&guest->room[part].kept, &device->room))
                        return true;
        return false;
}

bool restore_room_is_kept(const struct device *device)
{
        const struct instance *instance;
        const struct guest *guest;

        list_for_each(instance, &device->manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        if (is_kept_for(guest, device))
                                return true;
        return false;
}

/* Room that is kept for a restore that the driver was not asked for would be kept until the process ends. */
static bool is_kept_for_nothing(const struct guest *guest, size_t part)
{
        const struct room *kept = guest->room[part].kept.room;

        return kept && !guest_is_dead(guest) && find_target(guest, part) != kept;
}

bool restore_room_is_valid(const struct guest *guest)
{
        for (size_t part = 0; part < guest->instance->n_parts; part++) {
                const struct guest_room *own = &guest->room[part];
                const struct room *room = find_target(guest, part);

                if (is_kept_for_nothing(guest, part))
                        return false;
                if (room && !room_is_to(&own->coming, room) && !room_is_to(&own->returning, room) &&
                    !room_is_to(&own->kept, room))
                        return false;
        }
        return true;
}
