/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: what vgpud knows of them, what they measure of themselves, and what has happened to them. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "exporter/metrics-internal.h"

struct devices {
        const struct metrics_input *input;
        struct labels *labels; /* of each */
};

typedef uint64_t (*device_value)(const struct vgpu_usage_device *device);

static uint64_t get_total(const struct vgpu_usage_device *device)
{
        return device->memory_total;
}

static uint64_t get_promised(const struct vgpu_usage_device *device)
{
        return device->memory_promised;
}

static uint64_t get_used(const struct vgpu_usage_device *device)
{
        return device->memory_used;
}

/* What its vGPUs have in host memory instead. */
static void write_device_swapped(struct text *text, const struct devices *devices)
{
        const struct vgpu_usage_snapshot *snapshot = devices->input->snapshot;

        text_family(text, "openvgpu_device_memory_swapped_bytes", TEXT_GAUGE, "bytes",
                    "Memory of its vGPUs that is in host memory instead.");
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                uint64_t sum = 0;

                for (size_t k = 0; k < snapshot->n_instances; k++)
                        if (snapshot->instances[k]->device == snapshot->devices[i]->index)
                                sum += snapshot->instances[k]->host_memory;
                text_sample_integer(text, &devices->labels[i], sum);
        }
}

static void write_device_turns(struct text *text, const struct devices *devices)
{
        const struct vgpu_usage_snapshot *snapshot = devices->input->snapshot;

        text_family(text, "openvgpu_device_overcommitted", TEXT_GAUGE, NULL,
                    "1 if the device may promise more frame buffer than it has.");
        for (size_t i = 0; i < snapshot->n_devices; i++)
                text_sample_integer(text, &devices->labels[i],
                                    snapshot->devices[i]->is_overcommitted);
        text_family(text, "openvgpu_device_turns", TEXT_COUNTER, NULL,
                    "Turns that its vGPUs have taken.");
        for (size_t i = 0; i < snapshot->n_devices; i++)
                text_sample_integer(text, &devices->labels[i], snapshot->devices[i]->n_turns);
        text_family(text, "openvgpu_device_turns_mode", TEXT_GAUGE, NULL,
                    "1 for the way in which turns are enforced.");
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const char *mode = snapshot->devices[i]->turns_mode;
                struct labels labels;

                if (!mode || !*mode) /* a vgpud that does not say */
                        continue;
                labels_copy(&labels, &devices->labels[i]);
                labels_add(&labels, "mode", mode);
                text_sample(text, &labels, 1);
        }
}

static void write_device_bytes(struct text *text, const struct devices *devices, const char *name,
                               const char *help, device_value get)
{
        const struct vgpu_usage_snapshot *snapshot = devices->input->snapshot;

        text_family(text, name, TEXT_GAUGE, "bytes", help);
        for (size_t i = 0; i < snapshot->n_devices; i++)
                text_sample_integer(text, &devices->labels[i], get(snapshot->devices[i]));
}

static void write_device_facts(struct text *text, const struct devices *devices)
{
        const struct vgpu_usage_snapshot *snapshot = devices->input->snapshot;

        text_family(text, "openvgpu_device", TEXT_INFO, NULL,
                    "A device: its model, and where its GPU time comes from.");
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                struct labels labels;

                labels_copy(&labels, &devices->labels[i]);
                labels_add(&labels, "model", snapshot->devices[i]->name);
                labels_add(&labels, "metering", snapshot->devices[i]->source);
                text_sample(text, &labels, 1);
        }
        write_device_bytes(text, devices, "openvgpu_device_memory_bytes",
                           "Frame buffer of the device.", get_total);
        write_device_bytes(text, devices, "openvgpu_device_memory_promised_bytes",
                           "Sum of the quotas of its vGPUs.", get_promised);
        write_device_bytes(text, devices, "openvgpu_device_memory_used_bytes",
                           "Frame buffer that its vGPUs hold.", get_used);
        text_family(text, "openvgpu_device_utilization_ratio", TEXT_GAUGE, "ratio",
                    "Part of the last period in which the engine was busy with vGPUs.");
        for (size_t i = 0; i < snapshot->n_devices; i++)
                metrics_write_percents(text, &devices->labels[i], snapshot->devices[i]->percents);
}

/* A sensor: which member it is, and what to multiply with to get the base unit. */
struct sensor {
        const char *name;
        enum text_type type;
        const char *unit, *help;
        size_t offset;
        bool is_wide; /* 64 bits */
        double factor;
        const char *label, *label_value; /* or NULL */
};

#define SENSOR(member_) .offset = offsetof(struct vgpu_device_sensors, member_)
#define SAME_FAMILY     NULL

static const struct sensor sensors[] = {
        { "openvgpu_device_memory_free_bytes", TEXT_GAUGE, "bytes",
          "Frame buffer that nobody uses, be it in a vGPU or not.", SENSOR(memory_free), true, 1,
          NULL, NULL },
        { "openvgpu_device_temperature_celsius", TEXT_GAUGE, "celsius", "Temperature of the GPU.",
          SENSOR(temperature), false, 1, NULL, NULL },
        { "openvgpu_device_power_watts", TEXT_GAUGE, "watts", "Power drawn.", SENSOR(power_mw),
          false, 1e-3, NULL, NULL },
        { "openvgpu_device_power_limit_watts", TEXT_GAUGE, "watts", "Power that may be drawn.",
          SENSOR(power_limit_mw), false, 1e-3, NULL, NULL },
        { "openvgpu_device_energy_joules", TEXT_COUNTER, "joules",
          "Energy since the driver was loaded.", SENSOR(energy_mj), true, 1e-3, NULL, NULL },
        { "openvgpu_device_clock_hertz", TEXT_GAUGE, "hertz", "Clocks, now.", SENSOR(clock_sm_mhz),
          false, 1e6, "clock", "sm" },
        { SAME_FAMILY, TEXT_GAUGE, NULL, NULL, SENSOR(clock_memory_mhz), false, 1e6, "clock",
          "memory" },
        { "openvgpu_device_ecc_errors", TEXT_COUNTER, NULL,
          "ECC errors since the driver was loaded.", SENSOR(ecc_corrected), true, 1, "kind",
          "corrected" },
        { SAME_FAMILY, TEXT_COUNTER, NULL, NULL, SENSOR(ecc_uncorrected), true, 1, "kind",
          "uncorrected" },
};

static bool read_sensor(const struct sensor *sensor, const struct vgpu_device_sensors *of,
                        double *ret_value)
{
        const char *at = (const char *)of + sensor->offset;
        uint64_t wide;
        uint32_t narrow;

        if (!of)
                return false;
        if (sensor->is_wide) {
                memcpy(&wide, at, sizeof(wide));
                *ret_value = (double)wide * sensor->factor;
                return wide != UINT64_MAX;
        }
        memcpy(&narrow, at, sizeof(narrow));
        *ret_value = narrow * sensor->factor;
        return narrow != VGPU_UNKNOWN;
}

static void write_sensors(struct text *text, const struct devices *devices)
{
        const struct metrics_input *input = devices->input;
        double value;

        for (size_t s = 0; s < sizeof(sensors) / sizeof(sensors[0]); s++) {
                const struct sensor *sensor = &sensors[s];

                if (sensor->name)
                        text_family(text, sensor->name, sensor->type, sensor->unit, sensor->help);
                for (size_t i = 0; i < input->snapshot->n_devices; i++) {
                        struct labels labels;

                        labels_copy(&labels, &devices->labels[i]);
                        if (!read_sensor(sensor, input->sensors[i], &value))
                                continue;
                        if (sensor->label)
                                labels_add(&labels, sensor->label, sensor->label_value);
                        text_sample(text, &labels, value);
                }
        }
}

/* XID errors. */

static void write_xids(struct text *text, const struct devices *devices, bool has_time)
{
        const struct metrics_input *input = devices->input;

        for (size_t i = 0; i < input->snapshot->n_devices; i++)
                for (size_t k = 0; k < input->n_xids; k++) {
                        const struct xid_count *xid = &input->xids[k];
                        struct labels labels;

                        if (strcmp(xid->uuid, input->snapshot->devices[i]->uuid) != 0)
                                continue;
                        labels_copy(&labels, &devices->labels[i]);
                        if (xid->number == XID_OTHERS)
                                labels_add(&labels, "xid", "other");
                        else
                                labels_add_number(&labels, "xid", xid->number);
                        if (has_time)
                                text_sample(text, &labels, xid->last);
                        else
                                text_sample_integer(text, &labels, xid->count);
                }
}

static void write_events(struct text *text, const struct devices *devices)
{
        text_family(text, "openvgpu_device_xid_errors", TEXT_COUNTER, NULL,
                    "XID errors since this exporter was first asked, by number.");
        write_xids(text, devices, false);
        text_family(text, "openvgpu_device_xid_last_timestamp_seconds", TEXT_GAUGE, "seconds",
                    "When the XID error came last, since the epoch.");
        write_xids(text, devices, true);
}

void metrics_write_devices(struct text *text, const struct metrics_input *input)
{
        const struct vgpu_usage_snapshot *snapshot = input->snapshot;
        CLEANUP(freep) struct labels *labels = calloc(snapshot->n_devices + 1, sizeof(*labels));
        const struct devices devices = { .input = input, .labels = labels };

        if (!labels) {
                text->has_failed = true;
                return;
        }
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                labels_add_number(&labels[i], "device", snapshot->devices[i]->index);
                labels_add(&labels[i], "device_uuid", snapshot->devices[i]->uuid);
        }
        write_device_facts(text, &devices);
        write_device_swapped(text, &devices);
        write_device_turns(text, &devices);
        if (input->sensors)
                write_sensors(text, &devices);
        write_events(text, &devices);
}
