/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A gauge or a counter of which there is one. */
static void write_one(struct text *text, const char *name, enum text_type type, const char *unit,
                      const char *help, double value)
{
        text_family(text, name, type, unit, help);
        text_sample(text, NULL, value);
}

/* The exporter, and the manager. */

static void write_exporter(struct text *text, const struct metrics_input *input)
{
        struct labels labels = { .size = 0 };

        write_one(text, "openvgpu_up", TEXT_GAUGE, NULL,
                  "1 if vgpud answered this scrape, else 0 and most of the rest is missing.",
                  input->snapshot != NULL);
        labels_add(&labels, "version", vgpu_get_version());
        text_family(text, "openvgpu_exporter_build", TEXT_INFO, NULL, "The exporter.");
        text_sample(text, &labels, 1);
        write_one(text, "openvgpu_exporter_collect_seconds", TEXT_GAUGE, "seconds",
                  "Time that vgpud and the devices took to answer this scrape.",
                  input->collect_seconds);
        write_one(text, "openvgpu_exporter_cpu_seconds", TEXT_COUNTER, "seconds",
                  "Processor time of the exporter.", input->cpu_seconds);
}

static void write_manager(struct text *text, const struct vgpu_manager *manager)
{
        struct labels labels = { .size = 0 };
        char cuda[32];

        snprintf(cuda, sizeof(cuda), "%u.%u", manager->cuda_driver_version / 1000,
                 manager->cuda_driver_version % 1000 / 10);
        labels_add(&labels, "version", manager->version);
        labels_add(&labels, "cuda_version", cuda);
        labels_add(&labels, "simulated", manager->is_simulated ? "true" : "false");
        text_family(text, "openvgpu_manager_build", TEXT_INFO, NULL, "vgpud.");
        text_sample(text, &labels, 1);
        write_one(text, "openvgpu_manager_descriptors", TEXT_GAUGE, NULL,
                  "Descriptors that vgpud has for vGPUs, processes and connections.",
                  (double)manager->descriptors_used);
        write_one(text, "openvgpu_manager_descriptors_limit", TEXT_GAUGE, NULL,
                  "Descriptors that vgpud may have for them.", (double)manager->descriptors_limit);
}

static void write_pool(struct text *text, const struct vgpu_pool *pool)
{
        write_one(text, "openvgpu_pool_limit_bytes", TEXT_GAUGE, "bytes",
                  "Host memory that the pool may take.", (double)pool->limit);
        write_one(text, "openvgpu_pool_size_bytes", TEXT_GAUGE, "bytes",
                  "Host memory that the pool has taken.", (double)pool->size);
        write_one(text, "openvgpu_pool_ready_bytes", TEXT_GAUGE, "bytes",
                  "Host memory of the pool that is pinned: a suspend goes there at once.",
                  (double)pool->ready);
        write_one(text, "openvgpu_pool_used_bytes", TEXT_GAUGE, "bytes",
                  "Host memory of the pool that suspended vGPUs fill.", (double)pool->used);
        write_one(text, "openvgpu_pool_saved_bytes", TEXT_GAUGE, "bytes",
                  "Host memory more that they would fill if equal blocks were not kept once.",
                  (double)pool->saved);
        write_one(text, "openvgpu_pool_spare_bytes", TEXT_GAUGE, "bytes",
                  "Host memory of the pool with copies of resumed vGPUs, given up when needed.",
                  (double)pool->spare);
        write_one(text, "openvgpu_pool_held_bytes", TEXT_GAUGE, "bytes",
                  "Host memory that has left the pool and that clients still have.",
                  (double)pool->held);
        write_one(text, "openvgpu_pool_spilled_bytes", TEXT_GAUGE, "bytes",
                  "Memory of suspended vGPUs that is on disk instead.", (double)pool->spilled);
        write_one(text, "openvgpu_pool_spill_limit_bytes", TEXT_GAUGE, "bytes",
                  "The most of it; 0: no limit but the disk, or nothing goes there.",
                  (double)pool->spill_limit);
}

/* What a histogram of operations counts: how long they took, or how many bytes they moved. */
struct measure {
        const double *bounds;
        size_t n_bounds;
        const uint64_t *(*get_buckets)(const struct vgpu_statistics_operation *operation);
        double (*get_sum)(const struct vgpu_statistics_operation *operation);
        double (*get_last)(const struct vgpu_statistics_operation *operation);
};

static const uint64_t *get_time_buckets(const struct vgpu_statistics_operation *operation)
{
        return operation->buckets;
}

static double get_time_sum(const struct vgpu_statistics_operation *operation)
{
        return operation->seconds;
}

static double get_last_time(const struct vgpu_statistics_operation *operation)
{
        return operation->last_seconds;
}

static const uint64_t *get_byte_buckets(const struct vgpu_statistics_operation *operation)
{
        return operation->byte_buckets;
}

static double get_byte_sum(const struct vgpu_statistics_operation *operation)
{
        return (double)operation->bytes;
}

static double get_last_bytes(const struct vgpu_statistics_operation *operation)
{
        return (double)operation->last_bytes;
}

/* The exemplar is the last operation. */
static void write_operation(struct text *text, const struct vgpu_statistics_operation *operation,
                            const struct measure *measure)
{
        struct labels labels = { .size = 0 }, vgpu = { .size = 0 };
        const struct text_exemplar last = { .labels = &vgpu,
                                            .value = measure->get_last(operation),
                                            .time = operation->last_time };
        const struct text_histogram histogram = {
                .bounds = measure->bounds,
                .buckets = measure->get_buckets(operation),
                .n_bounds = measure->n_bounds,
                .count = operation->count,
                .sum = measure->get_sum(operation),
                .exemplar = *operation->last_vgpu ? &last : NULL,
        };

        labels_add(&labels, "operation", operation->operation);
        labels_add(&labels, "result", operation->result);
        labels_add(&vgpu, "vgpu", operation->last_vgpu);
        text_histogram(text, &labels, &histogram);
}

/* An older vgpud has no buckets of bytes: then the one without a bound counts all. */
static void write_operations(struct text *text, const struct vgpu_statistics *statistics)
{
        size_t n_bytes = statistics->n_byte_bounds;
        CLEANUP(freep) double *byte_bounds = calloc(n_bytes + 1, sizeof(*byte_bounds));
        const struct measure seconds = { statistics->bounds, statistics->n_bounds, get_time_buckets,
                                         get_time_sum, get_last_time };
        const struct measure bytes = { byte_bounds, n_bytes, get_byte_buckets, get_byte_sum,
                                       get_last_bytes };

        if (!byte_bounds) {
                text->has_failed = true;
                return;
        }
        for (size_t i = 0; i < n_bytes; i++)
                byte_bounds[i] = (double)statistics->byte_bounds[i];
        text_family(text, "openvgpu_operation_duration_seconds", TEXT_HISTOGRAM, "seconds",
                    "How long operations took that ended, by kind and result.");
        for (size_t i = 0; i < statistics->n_operations; i++)
                write_operation(text, statistics->operations[i], &seconds);
        text_family(text, "openvgpu_operation_moved_bytes", TEXT_HISTOGRAM, "bytes",
                    "Device memory that operations moved that ended, by kind and result.");
        for (size_t i = 0; i < statistics->n_operations; i++)
                write_operation(text, statistics->operations[i], &bytes);
}

static void write_statistics(struct text *text, const struct vgpu_statistics *statistics)
{
        write_one(text, "openvgpu_manager_start_time_seconds", TEXT_GAUGE, "seconds",
                  "When vgpud began, since the epoch.", statistics->started);
        write_one(text, "openvgpu_ledger_working", TEXT_GAUGE, NULL,
                  "1 if usage reaches the ledger, 0 if it waits in memory or is not metered.",
                  statistics->is_ledger_fine);
        write_operations(text, statistics);
}

/* Devices. */

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

static void write_engine(struct text *text, const struct labels *labels, const char *engine,
                         uint32_t percent)
{
        struct labels with_engine;

        labels_copy(&with_engine, labels);
        labels_add(&with_engine, "engine", engine);
        text_sample(text, &with_engine, percent / 100.0);
}

static void write_percents(struct text *text, const struct labels *labels,
                           const struct vgpu_usage_percents *percents)
{
        write_engine(text, labels, "gpu", percents->gpu);
        write_engine(text, labels, "memory", percents->memory);
        write_engine(text, labels, "encoder", percents->encoder);
        write_engine(text, labels, "decoder", percents->decoder);
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
                write_percents(text, &devices->labels[i], snapshot->devices[i]->percents);
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

static void write_devices(struct text *text, const struct metrics_input *input)
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

/* vGPUs. */

/* What moves with a vGPU has no device among its labels, so that it goes on being the same series. */
struct vgpu_labels {
        struct labels lasting, now;
};

struct vgpus {
        const struct vgpu_usage_snapshot *snapshot;
        struct vgpu_labels *labels; /* of each */
};

static const char *find_device_uuid(const struct vgpu_usage_snapshot *snapshot, uint32_t index)
{
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (snapshot->devices[i]->index == index)
                        return snapshot->devices[i]->uuid;
        return "";
}

static void make_labels(struct vgpu_labels *labels, const struct vgpu_usage_instance *instance)
{
        labels_add(&labels->lasting, "vgpu", instance->name);
        labels_add(&labels->lasting, "uuid", instance->uuid);
        labels_add_number(&labels->lasting, "tenant", instance->owner);
        labels_copy(&labels->now, &labels->lasting);
        labels_add_number(&labels->now, "device", instance->device);
}

/* Of Slurm's plugin, which calls its vGPUs job-JOB-STEP: docs/slurm.md. */
static void add_job(struct labels *labels, const char *name)
{
        static const char prefix[] = "job-";
        const char *number = name + strlen(prefix);
        size_t n;
        char job[32];

        if (strncmp(name, prefix, strlen(prefix)) != 0)
                return;
        n = strspn(number, "0123456789");
        if (n == 0 || n >= sizeof(job) || number[n] != '-' || !number[n + 1])
                return;
        (void)snprintf(job, sizeof(job), "%.*s", (int)n, number);
        labels_add(labels, "slurm_job", job);
}

/* A label without a value is none. */
static void add_known(struct labels *labels, const char *name, const char *value)
{
        if (value && *value)
                labels_add(labels, name, value);
}

static void write_vgpu_facts(struct text *text, const struct vgpus *vgpus)
{
        const struct vgpu_usage_snapshot *snapshot = vgpus->snapshot;

        text_family(text, "openvgpu_vgpu", TEXT_INFO, NULL,
                    "A vGPU: which device it is on, or was on before it was suspended, and whose.");
        for (size_t i = 0; i < snapshot->n_instances; i++) {
                struct labels labels;

                labels_copy(&labels, &vgpus->labels[i].now);
                labels_add(&labels, "device_uuid",
                           find_device_uuid(snapshot, snapshot->instances[i]->device));
                add_known(&labels, "container", snapshot->instances[i]->container);
                add_known(&labels, "swap_class", snapshot->instances[i]->swap_class);
                add_job(&labels, snapshot->instances[i]->name);
                text_sample(text, &labels, 1);
        }
        text_family(text, "openvgpu_vgpu_state", TEXT_GAUGE, NULL,
                    "1 for the state that the vGPU is in.");
        for (size_t i = 0; i < snapshot->n_instances; i++) {
                struct labels labels;

                labels_copy(&labels, &vgpus->labels[i].now);
                labels_add(&labels, "state",
                           vgpu_instance_state_get_name(snapshot->instances[i]->state));
                text_sample(text, &labels, 1);
        }
}

static void write_vgpu_memory(struct text *text, const struct vgpus *vgpus)
{
        const struct vgpu_usage_snapshot *snapshot = vgpus->snapshot;

        text_family(text, "openvgpu_vgpu_memory_quota_bytes", TEXT_GAUGE, "bytes",
                    "Frame buffer that its programs may hold.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                text_sample_integer(text, &vgpus->labels[i].now,
                                    snapshot->instances[i]->frame_buffer);
        text_family(text, "openvgpu_vgpu_memory_used_bytes", TEXT_GAUGE, "bytes",
                    "Frame buffer that its programs hold.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                text_sample_integer(text, &vgpus->labels[i].now,
                                    snapshot->instances[i]->frame_buffer_used);
}

static void write_vgpu_time(struct text *text, const struct vgpus *vgpus)
{
        const struct vgpu_usage_snapshot *snapshot = vgpus->snapshot;

        text_family(text, "openvgpu_vgpu_share_ratio", TEXT_GAUGE, "ratio",
                    "Share of the device's time that it was given; 0: none.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                text_sample(text, &vgpus->labels[i].now, snapshot->instances[i]->share / 100.0);
        text_family(text, "openvgpu_vgpu_entitled_ratio", TEXT_GAUGE, "ratio",
                    "Part of the device's time that it can count on now.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                text_sample(text, &vgpus->labels[i].now, snapshot->instances[i]->entitled / 100);
        text_family(text, "openvgpu_vgpu_utilization_ratio", TEXT_GAUGE, "ratio",
                    "Part of the last period in which the engine was busy with it.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                write_percents(text, &vgpus->labels[i].now, snapshot->instances[i]->percents);
        text_family(text, "openvgpu_vgpu_gpu_seconds", TEXT_COUNTER, "seconds",
                    "GPU time of its programs since vgpud began.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                text_sample(text, &vgpus->labels[i].lasting,
                            snapshot->instances[i]->gpu_seconds_total);
        text_family(text, "openvgpu_vgpu_processes", TEXT_GAUGE, NULL, "Programs that run in it.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                text_sample_integer(text, &vgpus->labels[i].now,
                                    snapshot->instances[i]->n_programs);
}

/* Coming and going. */

static double get_waiting(const struct vgpu_usage_instance *instance)
{
        return instance->demand && strcmp(instance->demand, "waiting for memory") == 0;
}

static double get_idle(const struct vgpu_usage_instance *instance)
{
        return instance->idle;
}

static double get_host_memory(const struct vgpu_usage_instance *instance)
{
        return (double)instance->host_memory;
}

static double get_swaps(const struct vgpu_usage_instance *instance)
{
        return (double)instance->n_swaps;
}

static double get_swapped_bytes(const struct vgpu_usage_instance *instance)
{
        return (double)instance->swapped_bytes;
}

static double get_waits(const struct vgpu_usage_instance *instance)
{
        return (double)instance->n_waits;
}

static double get_waited(const struct vgpu_usage_instance *instance)
{
        return instance->waited_seconds;
}

static double get_resident(const struct vgpu_usage_instance *instance)
{
        return instance->resident_seconds;
}

static const struct {
        const char *name;
        enum text_type type;
        const char *unit, *help;
        double (*get)(const struct vgpu_usage_instance *instance);
} residency[] = {
        { "openvgpu_vgpu_idle_seconds", TEXT_GAUGE, "seconds",
          "Time that it has had no work on its device.", get_idle },
        { "openvgpu_vgpu_waiting", TEXT_GAUGE, NULL, "1 while it waits for memory of its device.",
          get_waiting },
        { "openvgpu_vgpu_host_memory_bytes", TEXT_GAUGE, "bytes",
          "Host memory that its evicted memory takes.", get_host_memory },
        { "openvgpu_vgpu_swaps", TEXT_COUNTER, NULL,
          "Times that it left its device, or came back, by itself and by demand.", get_swaps },
        { "openvgpu_vgpu_swapped_bytes", TEXT_COUNTER, "bytes", "Memory that these swaps moved.",
          get_swapped_bytes },
        { "openvgpu_vgpu_waits", TEXT_COUNTER, NULL,
          "Times that it waited for room, to come in or to allocate.", get_waits },
        { "openvgpu_vgpu_waited_seconds", TEXT_COUNTER, "seconds", "How long it waited for room.",
          get_waited },
        { "openvgpu_vgpu_resident_seconds", TEXT_COUNTER, "seconds",
          "Time that its programs were on a device.", get_resident },
};

/* Most vGPUs have none of it: where a value is 0 there is no sample, which would cost more than it says. */
static void write_vgpu_residency(struct text *text, const struct vgpus *vgpus)
{
        const struct vgpu_usage_snapshot *snapshot = vgpus->snapshot;

        for (size_t r = 0; r < sizeof(residency) / sizeof(residency[0]); r++) {
                bool is_lasting = residency[r].type == TEXT_COUNTER;

                text_family(text, residency[r].name, residency[r].type, residency[r].unit,
                            residency[r].help);
                for (size_t i = 0; i < snapshot->n_instances; i++) {
                        double value = residency[r].get(snapshot->instances[i]);

                        if (value > 0)
                                text_sample(text,
                                            is_lasting ? &vgpus->labels[i].lasting
                                                       : &vgpus->labels[i].now,
                                            value);
                }
        }
}

/* Processes: only when asked for. */

enum process_fact { PROCESS_MEMORY, PROCESS_UTILIZATION, PROCESS_SECONDS };

static void write_process(struct text *text, const struct labels *of,
                          const struct vgpu_usage_process *process, enum process_fact fact)
{
        struct labels labels;

        labels_copy(&labels, of);
        labels_add_number(&labels, "pid", (uint64_t)process->pid);
        labels_add(&labels, "process", process->name);
        add_known(&labels, "container", process->container);
        if (fact == PROCESS_MEMORY)
                text_sample_integer(text, &labels, process->memory_used);
        else if (fact == PROCESS_UTILIZATION)
                text_sample(text, &labels, process->percents->gpu / 100.0);
        else
                text_sample(text, &labels, process->seconds->gpu);
}

static void write_all_processes(struct text *text, const struct vgpus *vgpus,
                                enum process_fact fact)
{
        const struct vgpu_usage_snapshot *snapshot = vgpus->snapshot;

        for (size_t i = 0; i < snapshot->n_instances; i++)
                for (size_t p = 0; p < snapshot->instances[i]->n_processes; p++)
                        write_process(text, &vgpus->labels[i].lasting,
                                      snapshot->instances[i]->processes[p], fact);
}

static void write_processes(struct text *text, const struct vgpus *vgpus)
{
        text_family(text, "openvgpu_process_memory_used_bytes", TEXT_GAUGE, "bytes",
                    "Frame buffer that the process holds.");
        write_all_processes(text, vgpus, PROCESS_MEMORY);
        text_family(text, "openvgpu_process_utilization_ratio", TEXT_GAUGE, "ratio",
                    "Part of the last period in which kernels of the process ran.");
        write_all_processes(text, vgpus, PROCESS_UTILIZATION);
        text_family(text, "openvgpu_process_gpu_seconds", TEXT_COUNTER, "seconds",
                    "GPU time of the process since it began.");
        write_all_processes(text, vgpus, PROCESS_SECONDS);
}

static void write_vgpus(struct text *text, const struct vgpu_usage_snapshot *snapshot,
                        bool has_processes)
{
        CLEANUP(freep)
        struct vgpu_labels *labels = calloc(snapshot->n_instances + 1, sizeof(*labels));
        const struct vgpus vgpus = { .snapshot = snapshot, .labels = labels };

        if (!labels) {
                text->has_failed = true;
                return;
        }
        for (size_t i = 0; i < snapshot->n_instances; i++)
                make_labels(&labels[i], snapshot->instances[i]);
        write_vgpu_facts(text, &vgpus);
        write_vgpu_memory(text, &vgpus);
        write_vgpu_time(text, &vgpus);
        write_vgpu_residency(text, &vgpus);
        if (has_processes)
                write_processes(text, &vgpus);
}

void metrics_write(struct text *text, const struct metrics_input *input,
                   const struct metrics_options *options)
{
        write_exporter(text, input);
        if (input->manager) {
                write_manager(text, input->manager);
                write_pool(text, input->manager->pool);
        }
        if (input->statistics)
                write_statistics(text, input->statistics);
        if (!input->snapshot)
                return;
        write_devices(text, input);
        write_vgpus(text, input->snapshot, options->has_processes);
        if (options->has_dcgm)
                metrics_write_dcgm(text, input);
        if (options->has_hami)
                metrics_write_hami(text, input);
}
