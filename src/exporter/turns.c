/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/turns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define INTERVAL_MS 900
#define FIRST_MS    1000

/* After such a pause what was known is too old: a slice would be a mean of minutes. */
#define FORGET_MS 5000

/* How long a vGPU has run in turns on the device. */
struct turns_total {
        uint32_t id;
        uint64_t ns;
        uint64_t had_ns; /* in the slice that is being made */
};

/* Where a vGPU, or its part, was when the last slice ended; 0 for a device is none. */
struct place {
        uint32_t id;
        int64_t device; /* index; -1: on none */
};

struct turns {
        uint64_t added_ms; /* the last slice; 0: none */
        size_t n_devices, n_places;
        struct turns_device **devices;
        struct place *places;
};

int turns_new(struct turns **ret_turns)
{
        *ret_turns = calloc(1, sizeof(**ret_turns));
        return *ret_turns ? 0 : -ENOMEM;
}

static void slice_deinit(struct turns_slice *slice)
{
        free(slice->parts);
        free(slice->marks);
}

static void forget(struct turns_device *device)
{
        for (size_t i = 0; i < device->n_slices; i++)
                slice_deinit(&device->slices[i]);
        free(device->totals);
        device->totals = NULL;
        device->n_totals = device->n_slices = device->n_last = 0;
}

struct turns *turns_free(struct turns *turns)
{
        if (!turns)
                return NULL;
        for (size_t i = 0; i < turns->n_devices; i++) {
                forget(turns->devices[i]);
                free(turns->devices[i]);
        }
        free(turns->devices);
        free(turns->places);
        free(turns);
        return NULL;
}

bool turns_is_due(const struct turns *turns, uint64_t now_ms)
{
        return turns->added_ms == 0 || now_ms < turns->added_ms ||
               now_ms - turns->added_ms >= INTERVAL_MS;
}

static struct turns_device *find(const struct turns *turns, const char *uuid)
{
        for (size_t i = 0; i < turns->n_devices; i++)
                if (strcmp(turns->devices[i]->uuid, uuid) == 0)
                        return turns->devices[i];
        return NULL;
}

const struct turns_device *turns_find(const struct turns *turns, const char *uuid)
{
        return find(turns, uuid);
}

const struct turns_device *turns_get(const struct turns *turns, size_t i)
{
        return i < turns->n_devices ? turns->devices[i] : NULL;
}

uint64_t turns_get_next(const struct turns *turns, const char *uuid)
{
        const struct turns_device *device = find(turns, uuid);

        return device ? device->next : 0;
}

static struct turns_device *find_or_add(struct turns *turns, const char *uuid)
{
        struct turns_device *device = find(turns, uuid), **devices;

        if (device || strlen(uuid) >= sizeof(device->uuid) || strpbrk(uuid, "\\\""))
                return device;
        devices = reallocarray(turns->devices, turns->n_devices + 1, sizeof(*devices));
        if (!devices)
                return NULL;
        turns->devices = devices;
        device = calloc(1, sizeof(*device));
        if (!device)
                return NULL;
        strcpy(device->uuid, uuid);
        return devices[turns->n_devices++] = device;
}

/* What a vGPU is on one device. */
struct piece {
        uint32_t id;
        int64_t device; /* index; -1: on none */
        uint32_t gpu;   /* percent */
};

static size_t count_pieces(const struct vgpu_usage_instance *instance)
{
        return instance->n_parts > 1 ? instance->n_parts : 1;
}

static bool is_on_a_device(const struct vgpu_usage_instance *instance)
{
        return instance->state != VGPU_INSTANCE_SUSPENDED &&
               instance->state != VGPU_INSTANCE_EVICTED;
}

static struct piece get_piece(const struct vgpu_usage_instance *instance, size_t i)
{
        const struct vgpu_usage_part *part = instance->n_parts > 1 ? instance->parts[i] : NULL;
        uint32_t device = part ? part->device : instance->device;

        return (struct piece){ .id = part ? part->id : instance->id,
                               .device = is_on_a_device(instance) ? (int64_t)device : -1,
                               .gpu = part ? part->percents->gpu : instance->percents->gpu };
}

/* A slice. */

static struct turns_total *find_total(struct turns_device *device, uint32_t id)
{
        struct turns_total *totals;

        for (size_t i = 0; i < device->n_totals; i++)
                if (device->totals[i].id == id)
                        return &device->totals[i];
        totals = reallocarray(device->totals, device->n_totals + 1, sizeof(*totals));
        if (!totals)
                return NULL;
        device->totals = totals;
        totals[device->n_totals] = (struct turns_total){ .id = id };
        return &totals[device->n_totals++];
}

/* Of one whose total is known all counts, and of another one this turn. A total that is less began anew. */
static void count_turn(struct turns_device *device, const struct vgpu_time_sharing_entry *entry)
{
        struct turns_total *total = find_total(device, entry->id);

        if (!total)
                return;
        if (total->ns > 0 && entry->run_total_ns >= total->ns)
                total->had_ns += entry->run_total_ns - total->ns;
        else
                total->had_ns += entry->run_ns;
        total->ns = entry->run_total_ns;
}

/* Those that the slice has the end of; a log may be an hour old. */
static void count_turns(struct turns_device *device, const struct vgpu_time_sharing_log *log,
                        struct turns_slice *slice)
{
        for (size_t i = 0; i < device->n_totals; i++)
                device->totals[i].had_ns = 0;
        for (size_t i = 0; log && i < log->n_entries; i++)
                if (log->entries[i]->timestamp_ns / NS_PER_MS > slice->from_ms) {
                        count_turn(device, log->entries[i]);
                        slice->is_of_turns = true;
                }
        if (log)
                device->next = log->next;
}

static void remember_last(struct turns_device *device, const struct vgpu_time_sharing_log *log,
                          uint64_t from_ms)
{
        size_t n = log ? log->n_entries : 0;
        uint64_t end_ns = n > 0 ? log->entries[n - 1]->timestamp_ns : 0;

        device->n_last = 0;
        for (size_t i = n > TURNS_LAST_MAX ? n - TURNS_LAST_MAX : 0; i < n; i++) {
                const struct vgpu_time_sharing_entry *entry = log->entries[i];
                uint64_t before_ns = end_ns - entry->timestamp_ns + entry->run_ns;

                if (entry->timestamp_ns / NS_PER_MS <= from_ms || entry->timestamp_ns > end_ns ||
                    before_ns / 1000 > UINT32_MAX)
                        continue;
                device->last[device->n_last++] =
                        (struct turns_turn){ .id = entry->id,
                                             .start_us = (uint32_t)(before_ns / 1000),
                                             .run_us = (uint32_t)(entry->run_ns / 1000) };
        }
}

static void add_part(struct turns_slice *slice, uint32_t id, uint64_t permille)
{
        struct turns_part *parts;

        if (permille == 0)
                return;
        parts = reallocarray(slice->parts, slice->n_parts + 1, sizeof(*parts));
        if (!parts)
                return;
        slice->parts = parts;
        parts[slice->n_parts++] =
                (struct turns_part){ .id = id,
                                     .permille = permille < 1000 ? (uint32_t)permille : 1000 };
}

static void add_metered(struct turns_slice *slice, const struct vgpu_usage_instance *instance,
                        uint32_t index)
{
        for (size_t i = 0; i < count_pieces(instance); i++) {
                struct piece piece = get_piece(instance, i);

                if (piece.device == (int64_t)index)
                        add_part(slice, piece.id, piece.gpu * 10u);
        }
}

/* The page stacks the parts: in one order, whichever vGPU had its turn first or came last. */
static int compare_ids(const void *a, const void *b)
{
        const struct turns_part *one = a, *other = b;

        return (one->id > other->id) - (one->id < other->id);
}

static void add_parts(struct turns_slice *slice, const struct turns_device *device,
                      const struct vgpu_usage_snapshot *snapshot, uint32_t index)
{
        uint64_t length_ns = (slice->until_ms - slice->from_ms) * NS_PER_MS;

        for (size_t i = 0; slice->is_of_turns && i < device->n_totals; i++)
                add_part(slice, device->totals[i].id,
                         device->totals[i].had_ns * 1000 / (length_ns ? length_ns : 1));
        for (size_t i = 0; !slice->is_of_turns && i < snapshot->n_instances; i++)
                add_metered(slice, snapshot->instances[i], index);
        if (slice->n_parts > 1)
                qsort(slice->parts, slice->n_parts, sizeof(*slice->parts), compare_ids);
}

/* Who came, and who left. */

static const struct place *find_place(const struct turns *turns, uint32_t id, size_t hint)
{
        for (size_t i = 0; i < turns->n_places; i++) {
                const struct place *place = &turns->places[(hint + i) % turns->n_places];

                if (place->id == id)
                        return place;
        }
        return NULL;
}

static void add_mark(struct turns_slice *slice, uint32_t id, enum turns_move move)
{
        struct turns_mark *marks = reallocarray(slice->marks, slice->n_marks + 1, sizeof(*marks));

        if (!marks)
                return;
        slice->marks = marks;
        marks[slice->n_marks++] = (struct turns_mark){ .id = id, .move = move };
}

/* A vGPU that is new, or gone, has not been moved. */
static void add_marks_of(const struct turns *turns, struct turns_slice *slice,
                         const struct vgpu_usage_instance *instance, uint32_t index, size_t hint)
{
        for (size_t i = 0; i < count_pieces(instance); i++) {
                struct piece piece = get_piece(instance, i);
                const struct place *was = find_place(turns, piece.id, hint + i);
                bool is_here = piece.device == (int64_t)index;

                if (was && is_here != (was->device == (int64_t)index))
                        add_mark(slice, piece.id, is_here ? TURNS_CAME : TURNS_LEFT);
        }
}

static void add_marks(const struct turns *turns, struct turns_slice *slice,
                      const struct vgpu_usage_snapshot *snapshot, uint32_t index)
{
        size_t hint = 0;

        for (size_t i = 0; i < snapshot->n_instances; i++) {
                add_marks_of(turns, slice, snapshot->instances[i], index, hint);
                hint += count_pieces(snapshot->instances[i]);
        }
}

static size_t count_all_pieces(const struct vgpu_usage_snapshot *snapshot)
{
        size_t n = 0;

        for (size_t i = 0; i < snapshot->n_instances; i++)
                n += count_pieces(snapshot->instances[i]);
        return n;
}

static void remember_places(struct turns *turns, const struct vgpu_usage_snapshot *snapshot)
{
        struct place *places =
                reallocarray(turns->places, count_all_pieces(snapshot) + 1, sizeof(*places));

        turns->n_places = 0;
        if (!places)
                return;
        turns->places = places;
        for (size_t i = 0; i < snapshot->n_instances; i++)
                for (size_t k = 0; k < count_pieces(snapshot->instances[i]); k++) {
                        struct piece piece = get_piece(snapshot->instances[i], k);

                        places[turns->n_places++] =
                                (struct place){ .id = piece.id, .device = piece.device };
                }
}

/* All of it. */

static struct turns_slice *add_slice(struct turns_device *device, uint64_t from_ms, uint64_t now_ms)
{
        struct turns_slice *slice;

        if (device->n_slices == TURNS_SLICES) {
                slice_deinit(&device->slices[0]);
                memmove(&device->slices[0], &device->slices[1],
                        (TURNS_SLICES - 1) * sizeof(device->slices[0]));
                device->n_slices--;
        }
        slice = &device->slices[device->n_slices++];
        *slice = (struct turns_slice){ .from_ms = from_ms, .until_ms = now_ms };
        return slice;
}

void turns_add(struct turns *turns, const struct vgpu_usage_snapshot *snapshot,
               struct vgpu_time_sharing_log *const *logs, uint64_t now_ms)
{
        bool has_paused = turns->added_ms == 0 || now_ms <= turns->added_ms ||
                          now_ms - turns->added_ms > FORGET_MS;
        uint64_t from_ms = has_paused ? now_ms - FIRST_MS : turns->added_ms;

        if (has_paused)
                turns->n_places = 0;
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                struct turns_device *device = find_or_add(turns, snapshot->devices[i]->uuid);
                const struct vgpu_time_sharing_log *log = logs ? logs[i] : NULL;
                struct turns_slice *slice;

                if (!device)
                        continue;
                if (has_paused)
                        forget(device);
                slice = add_slice(device, from_ms, now_ms);
                count_turns(device, log, slice);
                remember_last(device, log, from_ms);
                add_parts(slice, device, snapshot, snapshot->devices[i]->index);
                add_marks(turns, slice, snapshot, snapshot->devices[i]->index);
        }
        remember_places(turns, snapshot);
        turns->added_ms = now_ms;
}
