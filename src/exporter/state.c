/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/state.h"

#include <jansson.h>

#include "base/cleanup.h"

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

static json_t *describe_vgpu(const struct vgpu_usage_instance *instance)
{
        return json_pack("{sI, ss, ss, sI, si, ss, sI, sI, si, sf, si, si}", "id",
                         (json_int_t)instance->id, "name", instance->name, "uuid", instance->uuid,
                         "owner", (json_int_t)instance->owner, "device", (int)instance->device,
                         "state", vgpu_instance_state_get_name(instance->state), "quota",
                         (json_int_t)instance->frame_buffer, "used",
                         (json_int_t)instance->frame_buffer_used, "share", (int)instance->share,
                         "entitled", instance->entitled, "gpu", (int)instance->percents->gpu,
                         "programs", (int)instance->n_programs);
}

static json_t *describe_track(const uint8_t *percents, size_t n)
{
        json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                (void)json_array_append_new(array, percents[i] == HISTORY_NONE
                                                           ? json_null()
                                                           : json_integer(percents[i]));
        return array;
}

static json_t *describe_history(const struct history *history,
                                const struct vgpu_usage_snapshot *snapshot)
{
        json_t *times = json_array(), *tracks = json_object();
        uint8_t percents[HISTORY_SAMPLES];
        size_t n = history_count(history);

        for (size_t i = 0; i < n; i++)
                (void)json_array_append_new(times,
                                            json_integer((json_int_t)history_get_time(history, i)));
        for (size_t i = 0; i < snapshot->n_instances; i++) {
                history_get_percents(history, snapshot->instances[i]->uuid, percents);
                (void)json_object_set_new(tracks, snapshot->instances[i]->uuid,
                                          describe_track(percents, n));
        }
        return json_pack("{so, so}", "times", times, "gpu", tracks);
}

/* Turns. */

static json_t *describe_slice(const struct turns_slice *slice)
{
        json_t *parts = json_array(), *marks = json_array();

        for (size_t i = 0; i < slice->n_parts; i++)
                (void)json_array_append_new(parts, json_pack("[ii]", (int)slice->parts[i].id,
                                                             (int)slice->parts[i].permille));
        for (size_t i = 0; i < slice->n_marks; i++)
                (void)json_array_append_new(
                        marks, json_pack("[is]", (int)slice->marks[i].id,
                                         slice->marks[i].move == TURNS_CAME ? "came" : "left"));
        return json_pack("{sI, sI, sb, so, so}", "from", (json_int_t)slice->from_ms, "until",
                         (json_int_t)slice->until_ms, "turns", slice->is_of_turns, "parts", parts,
                         "marks", marks);
}

/* Who looks already may have missed a slice or two. */
#define LATEST_SLICES 3

static json_t *describe_turns(const struct turns_device *device, bool is_all)
{
        json_t *slices = json_array(), *last = json_array();
        size_t first =
                !is_all && device->n_slices > LATEST_SLICES ? device->n_slices - LATEST_SLICES : 0;

        for (size_t i = first; i < device->n_slices; i++)
                (void)json_array_append_new(slices, describe_slice(&device->slices[i]));
        for (size_t i = 0; i < device->n_last; i++)
                (void)json_array_append_new(last, json_pack("[iii]", (int)device->last[i].id,
                                                            (int)device->last[i].start_us,
                                                            (int)device->last[i].run_us));
        return json_pack("{so, so}", "slices", slices, "last", last);
}

static void add_turns(json_t *device, const char *uuid, const struct state_extras *extras)
{
        const struct turns_device *turns = extras->turns ? turns_find(extras->turns, uuid) : NULL;

        if (turns)
                (void)json_object_set_new(device, "turns",
                                          describe_turns(turns, extras->history != NULL));
}

static void add_snapshot(json_t *root, const struct metrics_input *input,
                         const struct state_extras *extras)
{
        const struct vgpu_usage_snapshot *snapshot = input->snapshot;
        json_t *devices = json_array(), *vgpus = json_array();

        for (size_t i = 0; i < snapshot->n_devices; i++) {
                json_t *device = describe_device(snapshot->devices[i],
                                                 input->sensors ? input->sensors[i] : NULL);

                add_turns(device, snapshot->devices[i]->uuid, extras);
                (void)json_array_append_new(devices, device);
        }
        for (size_t i = 0; i < snapshot->n_instances; i++)
                (void)json_array_append_new(vgpus, describe_vgpu(snapshot->instances[i]));
        (void)json_object_set_new(root, "devices", devices);
        (void)json_object_set_new(root, "vgpus", vgpus);
        if (extras->history)
                (void)json_object_set_new(root, "history",
                                          describe_history(extras->history, snapshot));
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
                add_snapshot(root, input, extras);
        return root ? json_dumps(root, JSON_COMPACT) : NULL;
}
