/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/state.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* More than a UUID and a name of a vGPU have, with their NUL. */
#define UUID_MAX  64
#define NAME_MAX_ 160

static json_t *describe_device(const struct vgpu_usage_device *device,
                               const struct vgpu_device_sensors *sensors)
{
        json_t *object = json_pack(
                "{si, ss, ss, sI, sI, sI, si}", "index", (int)device->index, "uuid", device->uuid,
                "name", device->name, "total", (json_int_t)device->memory_total, "promised",
                (json_int_t)device->memory_promised, "used", (json_int_t)device->memory_used, "gpu",
                (int)device->percents->gpu);

        if (sensors && sensors->temperature != VGPU_UNKNOWN)
                (void)json_object_set_new(object, "celsius", json_integer(sensors->temperature));
        if (sensors && sensors->power_mw != VGPU_UNKNOWN)
                (void)json_object_set_new(object, "watts", json_real(sensors->power_mw / 1e3));
        return object;
}

/* One of a single device is its own part, and they are left out. */
static size_t count_parts(const struct vgpu_usage_instance *instance)
{
        return instance->n_parts > 1 ? instance->n_parts : 0;
}

static json_t *describe_parts(const struct vgpu_usage_instance *instance)
{
        json_t *array = json_array();

        for (size_t i = 0; i < count_parts(instance); i++) {
                const struct vgpu_usage_part *part = instance->parts[i];

                (void)json_array_append_new(
                        array,
                        json_pack("{sI, si, sI, sf, si}", "id", (json_int_t)part->id, "device",
                                  (int)part->device, "used", (json_int_t)part->frame_buffer_used,
                                  "entitled", part->entitled, "gpu", (int)part->percents->gpu));
        }
        return array;
}

static json_t *describe_vgpu(const struct vgpu_usage_instance *instance)
{
        json_t *object = json_pack(
                "{sI, ss, ss, si, ss, sI, sI, si, sf, si, si}", "id", (json_int_t)instance->id,
                "name", instance->name, "uuid", instance->uuid, "device", (int)instance->device,
                "state", vgpu_instance_state_get_name(instance->state), "quota",
                (json_int_t)instance->frame_buffer, "used", (json_int_t)instance->frame_buffer_used,
                "share", (int)instance->share, "entitled", instance->entitled, "gpu",
                (int)instance->percents->gpu, "programs", (int)instance->n_programs);

        if (count_parts(instance) > 0)
                (void)json_object_set_new(object, "parts", describe_parts(instance));
        return object;
}

/* The past. */

/* Who looks already may have missed a sample or two. */
#define LATEST_SAMPLES 3

static void write_track(FILE *file, const uint8_t *percents, size_t first, size_t n)
{
        for (size_t i = first; i < n; i++) {
                if (percents[i] == HISTORY_NONE)
                        fprintf(file, "%snull", i > first ? "," : "");
                else
                        fprintf(file, "%s%u", i > first ? "," : "", percents[i]);
        }
}

/* Of UUIDs there is nothing to quote: vgpud makes them, and history.c takes no others. */
static void write_history(FILE *file, const struct history *history, size_t first)
{
        uint8_t percents[HISTORY_SAMPLES];
        size_t n = history_count(history);
        const char *uuid;

        fprintf(file, "{\"times\":[");
        for (size_t i = first; i < n; i++)
                fprintf(file, "%s%" PRIu64, i > first ? "," : "", history_get_time(history, i));
        fprintf(file, "],\"gpu\":{");
        for (size_t i = 0; (uuid = history_get_uuid(history, i)); i++) {
                history_get_percents(history, i, percents);
                fprintf(file, "%s\"%s\":[", i > 0 ? "," : "", uuid);
                write_track(file, percents, first, n);
                fprintf(file, "]");
        }
        fprintf(file, "}}");
}

static size_t find_latest(const struct history *history)
{
        size_t n = history_count(history);

        return n > LATEST_SAMPLES ? n - LATEST_SAMPLES : 0;
}

/* Turns. */

/* Who looks already may have missed a slice or two. */
#define LATEST_SLICES 3

static void write_slice(FILE *file, const struct turns_slice *slice)
{
        fprintf(file, "{\"from\":%" PRIu64 ",\"until\":%" PRIu64 ",\"turns\":%s,\"parts\":[",
                slice->from_ms, slice->until_ms, slice->is_of_turns ? "true" : "false");
        for (size_t i = 0; i < slice->n_parts; i++)
                fprintf(file, "%s[%u,%u]", i > 0 ? "," : "", slice->parts[i].id,
                        slice->parts[i].permille);
        fprintf(file, "],\"marks\":[");
        for (size_t i = 0; i < slice->n_marks; i++)
                fprintf(file, "%s[%u,\"%s\"]", i > 0 ? "," : "", slice->marks[i].id,
                        slice->marks[i].move == TURNS_CAME ? "came" : "left");
        fprintf(file, "]}");
}

/* Slices that ended after @since_ms; but no more than @most. */
static void write_turns(FILE *file, const struct turns_device *device, size_t most,
                        uint64_t since_ms)
{
        size_t first = device->n_slices > most ? device->n_slices - most : 0;

        while (first < device->n_slices && device->slices[first].until_ms < since_ms)
                first++;
        fprintf(file, "{\"slices\":[");
        for (size_t i = first; i < device->n_slices; i++) {
                fprintf(file, "%s", i > first ? "," : "");
                write_slice(file, &device->slices[i]);
        }
        fprintf(file, "],\"last\":[");
        for (size_t i = 0; i < device->n_last; i++)
                fprintf(file, "%s[%u,%u,%u]", i > 0 ? "," : "", device->last[i].id,
                        device->last[i].start_us, device->last[i].run_us);
        fprintf(file, "]}");
}

/* Texts are written here, and not made of objects: many times a second, for hundreds of vGPUs. */
static char *finish(FILE *file, char **text)
{
        if (fclose(file) == 0)
                return *text;
        free(*text);
        return NULL;
}

char *state_write_past(const struct history *history, const struct turns *turns, uint64_t now_ms)
{
        const struct turns_device *device;
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        fprintf(file, "{\"history\":");
        write_history(file, history, 0);
        fprintf(file, ",\"turns\":{");
        for (size_t i = 0; (device = turns_get(turns, i)); i++) {
                fprintf(file, "%s\"%s\":", i > 0 ? "," : "", device->uuid);
                write_turns(file, device, TURNS_SLICES, now_ms - TURNS_SLICES * MS_PER_S);
        }
        fprintf(file, "}}");
        return finish(file, &text);
}

/* All of it. */

static void add_snapshot(json_t *root, const struct metrics_input *input)
{
        const struct vgpu_usage_snapshot *snapshot = input->snapshot;
        json_t *devices = json_array(), *vgpus = json_array();

        for (size_t i = 0; i < snapshot->n_devices; i++)
                (void)json_array_append_new(
                        devices, describe_device(snapshot->devices[i],
                                                 input->sensors ? input->sensors[i] : NULL));
        for (size_t i = 0; i < snapshot->n_instances; i++)
                (void)json_array_append_new(vgpus, describe_vgpu(snapshot->instances[i]));
        (void)json_object_set_new(root, "devices", devices);
        (void)json_object_set_new(root, "vgpus", vgpus);
}

static void add_manager(json_t *root, const struct vgpu_manager *manager)
{
        (void)json_object_set_new(root, "version", json_string(manager->version));
        (void)json_object_set_new(root, "simulated", json_boolean(manager->is_simulated));
        (void)json_object_set_new(root, "pool",
                                  json_pack("{sI, sI}", "used", (json_int_t)manager->pool->used,
                                            "limit", (json_int_t)manager->pool->limit));
}

char *state_write(const struct metrics_input *input, const struct state_extras *extras)
{
        CLEANUP(json_decrefp)
        json_t *root = json_pack("{sb, sI, sI, ss}", "up", input->snapshot != NULL, "number",
                                 (json_int_t)extras->number, "time", (json_int_t)extras->now_ms,
                                 "host", input->hostname);

        if (root && input->manager)
                add_manager(root, input->manager);
        if (root && input->snapshot)
                add_snapshot(root, input);
        return root ? json_dumps(root, JSON_COMPACT) : NULL;
}

/* What changes all the time. */

struct vgpu_facts {
        enum vgpu_instance_state state;
        uint32_t device, share, gpu, programs;
        uint64_t used;
        double entitled;
};

struct part_facts {
        uint32_t device, gpu;
        uint64_t used;
        double entitled;
};

struct device_facts {
        uint64_t promised, used;
        uint32_t gpu, celsius, power_mw; /* VGPU_UNKNOWN: not known */
};

/* And what does not: with other ones it is another state. */
struct vgpu_base {
        char uuid[UUID_MAX], name[NAME_MAX_];
        uint64_t quota;
        struct vgpu_facts facts;
        size_t n_parts;
        struct part_facts *parts;
};

struct device_base {
        char uuid[UUID_MAX];
        struct device_facts facts;
};

struct state_base {
        uint64_t number;
        size_t n_vgpus, n_devices;
        struct vgpu_base *vgpus;
        struct device_base *devices;
};

static struct vgpu_facts get_vgpu_facts(const struct vgpu_usage_instance *instance)
{
        return (struct vgpu_facts){ .state = instance->state,
                                    .device = instance->device,
                                    .share = instance->share,
                                    .gpu = instance->percents->gpu,
                                    .programs = instance->n_programs,
                                    .used = instance->frame_buffer_used,
                                    .entitled = instance->entitled };
}

static struct part_facts get_part_facts(const struct vgpu_usage_part *part)
{
        return (struct part_facts){ .device = part->device,
                                    .gpu = part->percents->gpu,
                                    .used = part->frame_buffer_used,
                                    .entitled = part->entitled };
}

static struct device_facts get_device_facts(const struct vgpu_usage_device *device,
                                            const struct vgpu_device_sensors *sensors)
{
        return (struct device_facts){ .promised = device->memory_promised,
                                      .used = device->memory_used,
                                      .gpu = device->percents->gpu,
                                      .celsius = sensors ? sensors->temperature : VGPU_UNKNOWN,
                                      .power_mw = sensors ? sensors->power_mw : VGPU_UNKNOWN };
}

static bool are_vgpu_facts_equal(const struct vgpu_facts *a, const struct vgpu_facts *b)
{
        return a->state == b->state && a->device == b->device && a->share == b->share &&
               a->gpu == b->gpu && a->programs == b->programs && a->used == b->used &&
               !(a->entitled < b->entitled) && !(a->entitled > b->entitled);
}

static bool are_parts_equal(const struct vgpu_base *base,
                            const struct vgpu_usage_instance *instance)
{
        for (size_t i = 0; i < base->n_parts; i++) {
                struct part_facts now = get_part_facts(instance->parts[i]);
                const struct part_facts *was = &base->parts[i];

                if (now.device != was->device || now.gpu != was->gpu || now.used != was->used ||
                    now.entitled < was->entitled || now.entitled > was->entitled)
                        return false;
        }
        return true;
}

static bool are_device_facts_equal(const struct device_facts *a, const struct device_facts *b)
{
        return a->promised == b->promised && a->used == b->used && a->gpu == b->gpu &&
               a->celsius == b->celsius && a->power_mw == b->power_mw;
}

static const struct vgpu_device_sensors *get_sensors(const struct metrics_input *input, size_t i)
{
        return input->sensors ? input->sensors[i] : NULL;
}

static bool copy_text(char *to, size_t room, const char *from)
{
        return snprintf(to, room, "%s", from) < (int)room;
}

static bool fill_parts(struct vgpu_base *vgpu, const struct vgpu_usage_instance *instance)
{
        vgpu->n_parts = count_parts(instance);
        vgpu->parts = vgpu->n_parts ? calloc(vgpu->n_parts, sizeof(*vgpu->parts)) : NULL;
        for (size_t i = 0; vgpu->parts && i < vgpu->n_parts; i++)
                vgpu->parts[i] = get_part_facts(instance->parts[i]);
        return vgpu->parts || vgpu->n_parts == 0;
}

/* false: no memory, or a name is too long for it, which vgpud's are not. */
static bool fill_base(struct state_base *base, const struct metrics_input *input)
{
        const struct vgpu_usage_snapshot *snapshot = input->snapshot;
        bool fits = true;

        for (size_t i = 0; i < base->n_vgpus; i++) {
                struct vgpu_base *vgpu = &base->vgpus[i];

                fits &= copy_text(vgpu->uuid, UUID_MAX, snapshot->instances[i]->uuid) &&
                        copy_text(vgpu->name, NAME_MAX_, snapshot->instances[i]->name);
                vgpu->quota = snapshot->instances[i]->frame_buffer;
                vgpu->facts = get_vgpu_facts(snapshot->instances[i]);
                fits &= fill_parts(vgpu, snapshot->instances[i]);
        }
        for (size_t i = 0; i < base->n_devices; i++) {
                fits &= copy_text(base->devices[i].uuid, UUID_MAX, snapshot->devices[i]->uuid);
                base->devices[i].facts =
                        get_device_facts(snapshot->devices[i], get_sensors(input, i));
        }
        return fits;
}

struct state_base *state_base_free(struct state_base *base)
{
        if (!base)
                return NULL;
        for (size_t i = 0; base->vgpus && i < base->n_vgpus; i++)
                free(base->vgpus[i].parts);
        free(base->vgpus);
        free(base->devices);
        free(base);
        return NULL;
}

struct state_base *state_base_new(const struct metrics_input *input, uint64_t number)
{
        struct state_base *base = input->snapshot ? calloc(1, sizeof(*base)) : NULL;

        if (!base)
                return NULL;
        base->number = number;
        base->n_vgpus = input->snapshot->n_instances;
        base->n_devices = input->snapshot->n_devices;
        base->vgpus = calloc(base->n_vgpus + 1, sizeof(*base->vgpus));
        base->devices = calloc(base->n_devices + 1, sizeof(*base->devices));
        if (!base->vgpus || !base->devices || !fill_base(base, input))
                return state_base_free(base);
        return base;
}

static bool is_same_state(const struct state_base *base, const struct vgpu_usage_snapshot *snapshot)
{
        if (!snapshot || snapshot->n_instances != base->n_vgpus ||
            snapshot->n_devices != base->n_devices)
                return false;
        for (size_t i = 0; i < base->n_vgpus; i++)
                if (strcmp(base->vgpus[i].uuid, snapshot->instances[i]->uuid) != 0 ||
                    strcmp(base->vgpus[i].name, snapshot->instances[i]->name) != 0 ||
                    base->vgpus[i].quota != snapshot->instances[i]->frame_buffer ||
                    base->vgpus[i].n_parts != count_parts(snapshot->instances[i]))
                        return false;
        for (size_t i = 0; i < base->n_devices; i++)
                if (strcmp(base->devices[i].uuid, snapshot->devices[i]->uuid) != 0)
                        return false;
        return true;
}

/* All of them, if one of them is different. */
static void write_parts(FILE *file, const struct vgpu_usage_instance *instance)
{
        for (size_t i = 0; i < instance->n_parts; i++) {
                struct part_facts part = get_part_facts(instance->parts[i]);

                fprintf(file, "%s[%u,%" PRIu64 ",%.6g,%u]", i > 0 ? "," : ",[", part.device,
                        part.used, part.entitled, part.gpu);
        }
        fprintf(file, "]");
}

static void write_vgpus(FILE *file, const struct state_base *base,
                        const struct vgpu_usage_snapshot *snapshot)
{
        const char *comma = "";

        for (size_t i = 0; i < base->n_vgpus; i++) {
                const struct vgpu_usage_instance *instance = snapshot->instances[i];
                struct vgpu_facts now = get_vgpu_facts(instance);
                bool has_same_parts = are_parts_equal(&base->vgpus[i], instance);

                if (has_same_parts && are_vgpu_facts_equal(&now, &base->vgpus[i].facts))
                        continue;
                fprintf(file, "%s[%zu,\"%s\",%u,%" PRIu64 ",%u,%.6g,%u,%u", comma, i,
                        vgpu_instance_state_get_name(now.state), now.device, now.used, now.share,
                        now.entitled, now.gpu, now.programs);
                if (!has_same_parts)
                        write_parts(file, instance);
                fprintf(file, "]");
                comma = ",";
        }
}

static void write_known(FILE *file, uint32_t value, double factor)
{
        if (value == VGPU_UNKNOWN)
                fprintf(file, ",null");
        else
                fprintf(file, ",%.6g", value * factor);
}

static void write_devices(FILE *file, const struct state_base *base,
                          const struct metrics_input *input, const struct state_extras *extras)
{
        const char *comma = "";

        for (size_t i = 0; i < base->n_devices; i++) {
                struct device_facts now =
                        get_device_facts(input->snapshot->devices[i], get_sensors(input, i));
                const struct turns_device *turns =
                        extras->turns ? turns_find(extras->turns, base->devices[i].uuid) : NULL;

                if (!turns && are_device_facts_equal(&now, &base->devices[i].facts))
                        continue;
                fprintf(file, "%s[%zu,%" PRIu64 ",%" PRIu64 ",%u", comma, i, now.promised, now.used,
                        now.gpu);
                write_known(file, now.celsius, 1);
                write_known(file, now.power_mw, 1e-3);
                fprintf(file, turns ? "," : ",null");
                if (turns)
                        write_turns(file, turns, LATEST_SLICES, 0);
                fprintf(file, "]");
                comma = ",";
        }
}

char *state_write_change(const struct state_base *base, const struct metrics_input *input,
                         const struct state_extras *extras)
{
        char *text = NULL;
        size_t size;
        FILE *file;

        if (!is_same_state(base, input->snapshot))
                return NULL;
        file = open_memstream(&text, &size);
        if (!file)
                return NULL;
        fprintf(file, "{\"base\":%" PRIu64 ",\"number\":%" PRIu64 ",\"time\":%" PRIu64,
                base->number, extras->number, extras->now_ms);
        fprintf(file, ",\"vgpus\":[");
        write_vgpus(file, base, input->snapshot);
        fprintf(file, "],\"devices\":[");
        write_devices(file, base, input, extras);
        fprintf(file, "]");
        if (input->manager)
                fprintf(file, ",\"pool\":[%" PRIu64 ",%" PRIu64 "]", input->manager->pool->used,
                        input->manager->pool->limit);
        if (extras->history) {
                fprintf(file, ",\"history\":");
                write_history(file, extras->history, find_latest(extras->history));
        }
        fprintf(file, "}");
        return finish(file, &text);
}
