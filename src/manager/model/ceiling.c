/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/ceiling.h"

#include "base/clock.h"
#include "base/size.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/pending.h"

#define LOOK_US 500000

/* The pages believe us so long, should we die: longer than a restore takes. */
#define TERM_NS 10000000000u

/* What may be taken without any charge: modules, stacks of kernels. */
#define RESERVE      (128 * MIB)
#define RESERVE_PART 64

/* The ceiling that nobody is under. */
#define CLOSED 1

/* So long the ceilings may be closed without a pause; then the gates have some time. */
#define CLOSED_MAX_NS 1000000000u
#define TURN_NS       20000000u

static bool is_closed(const struct device *device)
{
        return device->ceiling.n_closed > 0;
}

/* What a vGPU that is on @device has of it; NULL: it is not there. */
static struct instance_part *find_resident(struct instance *instance, const struct device *device)
{
        return instance_is_off(instance) ? NULL : instance_find_part(instance, device);
}

static void write_ceiling(struct instance_part *part, uint64_t bytes)
{
        page_write_ceiling(&part->page, bytes, clock_now(CLOCK_MONOTONIC) + TERM_NS);
}

/* Returns what the driver is being asked for by all but @except. */
static uint64_t freeze(struct device *device, const struct instance *except)
{
        struct instance *instance;
        uint64_t pending = 0;

        list_for_each(instance, &device->manager->instances, link) {
                struct instance_part *part = find_resident(instance, device);

                if (!part)
                        continue;
                write_ceiling(part, CLOSED);
                pending_look(instance, part);
                if (instance != except)
                        pending += part->claim.pending;
        }
        return pending;
}

void ceiling_freeze(struct device *device, struct ceiling_look *ret_look)
{
        ret_look->mark = room_mark(&device->room);
        ret_look->generation = device->ceiling.generation;
        ret_look->pending = freeze(device, NULL);
}

uint64_t ceiling_get_pending(const struct device *device)
{
        struct instance *instance;
        uint64_t pending = 0;

        list_for_each(instance, &device->manager->instances, link) {
                const struct instance_part *part = find_resident(instance, device);

                pending += part ? part->claim.pending : 0;
        }
        return pending;
}

int64_t ceiling_get_promised(const struct device *device)
{
        const struct instance *instance;
        int64_t sum = 0;

        list_for_each(instance, &device->manager->instances, link)
                for (size_t i = 0; i < instance->n_parts; i++)
                        if (room_is_to(&instance->part[i].residency.promise, &device->room))
                                sum += (int64_t)instance->part[i].residency.promise.bytes;
        return sum;
}

bool ceiling_is_known(struct device *device)
{
        if (device->ceiling.is_looking)
                return false;
        if (is_closed(device) || ceiling_get_pending(device) <= device->ceiling.free)
                return true;
        ceiling_look(device);
        return false;
}

static void begin_turn(struct ceiling *ceiling)
{
        if (ceiling->owes_turn)
                ceiling->turn_until_ns = clock_now(CLOCK_MONOTONIC) + TURN_NS;
        ceiling->owes_turn = false;
}

static void lift(struct device *device)
{
        struct instance_part *part;
        struct instance *instance;

        ceiling_deinit(device);
        device->ceiling.generation++;
        begin_turn(&device->ceiling);
        /* Also of those that are off: their next program would wait in vain for what limits no other one. */
        list_for_each(instance, &device->manager->instances, link) {
                part = instance_find_part(instance, device);
                if (part)
                        write_ceiling(part, 0);
        }
}

static size_t count_residents(struct device *device)
{
        struct instance *instance;
        size_t n = 0;

        list_for_each(instance, &device->manager->instances, link)
                n += find_resident(instance, device) != NULL;
        return n;
}

/* A promise is granted once it is answered and there: what others are leaving for it may not be free yet. */
static uint64_t grant_promised(struct instance_part *part, int64_t *left)
{
        const struct residency_part *mine = &part->residency;

        if (mine->asks_ns || (int64_t)mine->promise.bytes > *left)
                return 0;
        *left -= (int64_t)mine->promise.bytes;
        return mine->promise.bytes;
}

/*
 * To vGPUs that wait, as far as there is enough for all of what one wants.
 * @left: of what is free, for those that have a promise
 */
static uint64_t grant_wanted(struct device *device, uint64_t spare, int64_t left)
{
        struct instance *instance;

        list_for_each(instance, &device->manager->instances, link) {
                struct instance_part *part = find_resident(instance, device);

                if (!part)
                        continue;
                if (part->residency.promise.room) {
                        part->claim.wanted = grant_promised(part, &left);
                        continue;
                }
                if (part->claim.wanted > spare)
                        part->claim.wanted = 0;
                spare -= part->claim.wanted;
        }
        return spare;
}

/* What its gates have given back since the look is free in the driver's answer, or will be. */
static uint64_t read_taken(const struct instance *instance, const struct instance_part *part)
{
        struct page_claim claim;

        page_read_claim(&part->page, instance->frame_buffer, &claim);
        return claim.taken < part->claim.taken ? claim.taken : part->claim.taken;
}

/* @left: beside all promises; @left_for_promised: beside all but those to vGPUs that wait for room. */
static void divide(struct device *device, int64_t left, int64_t left_for_promised)
{
        size_t n = count_residents(device);
        struct instance *instance;
        uint64_t each;

        device->ceiling.generation++;
        begin_turn(&device->ceiling);
        if (n == 0)
                return;
        each = grant_wanted(device, left > 0 ? (uint64_t)left : 0, left_for_promised) / n;
        list_for_each(instance, &device->manager->instances, link) {
                struct instance_part *part = find_resident(instance, device);

                if (part)
                        write_ceiling(part, read_taken(instance, part) + part->claim.wanted + each +
                                                    CLOSED);
        }
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec;
        ceiling_look(userdata);
        return 0;
}

static void set_timer(struct device *device)
{
        ceiling_deinit(device);
        (void)sd_event_add_time_relative(device->manager->event, &device->ceiling.timer,
                                         CLOCK_MONOTONIC, LOOK_US, 0, on_time, device);
}

static bool is_promised(const struct device *device)
{
        return !list_is_empty(&device->room.promises);
}

/* What was seen is of before other gates were let on, or of before they were closed. */
static bool is_outdated(const struct device *device, const struct ceiling_look *look)
{
        return is_closed(device) || look->generation != device->ceiling.generation;
}

void ceiling_settle(struct device *device, uint64_t free, uint64_t held,
                    const struct ceiling_look *look)
{
        uint64_t reserve = device->memory_total / RESERVE_PART;
        int64_t left = room_balance(&device->room, free + held, look->mark);

        device->ceiling.free = free;
        if (is_outdated(device, look)) {
                ceiling_look(device);
                return;
        }
        if (!is_promised(device)) {
                lift(device);
                return;
        }
        left -= (int64_t)room_leaving(&device->room) + (int64_t)look->pending;
        divide(device, left - (int64_t)(reserve < RESERVE ? reserve : RESERVE),
               left + ceiling_get_promised(device));
        set_timer(device);
}

static void on_info(struct mover *mover, int error, const struct mover_info *info, void *userdata)
{
        struct device *device = userdata;

        (void)mover;
        device->ceiling.is_looking = false;
        ceiling_settle(device, error ? 0 : info->memory_free, 0, &device->ceiling.look);
}

/* Where the driver cannot be asked nobody knows what is free. */
static bool can_ask(const struct device *device)
{
        return device->mover && !mover_is_lost(device->mover) && device->has_context;
}

void ceiling_look(struct device *device)
{
        if (!is_closed(device) && !is_promised(device)) {
                lift(device);
                return;
        }
        set_timer(device);
        /* A mark of now would not go with an answer that is under way. */
        if (is_closed(device) || !can_ask(device) || device->ceiling.is_looking) {
                (void)freeze(device, NULL);
                return;
        }
        ceiling_freeze(device, &device->ceiling.look);
        device->ceiling.is_looking = mover_info(device->mover, on_info, device) == 0;
        if (!device->ceiling.is_looking)
                divide(device, 0, 0);
}

bool ceiling_may_close(const struct device *device)
{
        const struct ceiling *ceiling = &device->ceiling;
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (ceiling->owes_turn || now_ns < ceiling->turn_until_ns)
                return false;
        return !is_closed(device) || now_ns - ceiling->closed_ns < CLOSED_MAX_NS;
}

void ceiling_close(struct device *device)
{
        if (device->ceiling.n_closed++ == 0)
                device->ceiling.closed_ns = clock_now(CLOCK_MONOTONIC);
        device->ceiling.generation++;
        ceiling_look(device);
}

void ceiling_open(struct device *device)
{
        struct ceiling *ceiling = &device->ceiling;

        if (--ceiling->n_closed > 0)
                return;
        ceiling->owes_turn = clock_now(CLOCK_MONOTONIC) - ceiling->closed_ns >= CLOSED_MAX_NS;
        ceiling_look(device);
}

uint64_t ceiling_get_asked(struct device *device, const struct instance *except)
{
        return freeze(device, except);
}

void ceiling_cover(struct instance *instance)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                if (is_promised(instance->part[i].device) || is_closed(instance->part[i].device))
                        ceiling_look(instance->part[i].device);
}

bool ceiling_is_on(const struct device *device)
{
        return device->ceiling.timer != NULL;
}

void ceiling_deinit(struct device *device)
{
        device->ceiling.timer = sd_event_source_disable_unref(device->ceiling.timer);
}
