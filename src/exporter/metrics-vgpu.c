/* SPDX-License-Identifier: Apache-2.0 */
/* vGPUs and their processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "exporter/metrics-internal.h"

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

#define DEVICES_MAX 1024 /* letters: there is room for 16 UUIDs and commas */

static void append(char *to, const char *text)
{
        size_t n = strlen(to);

        (void)snprintf(to + n, DEVICES_MAX - n, "%s%s", n > 0 ? "," : "", text);
}

/* Of several devices "0,1": a sum over both is of neither. */
static void add_devices(struct labels *labels, const struct vgpu_usage_instance *instance)
{
        char devices[DEVICES_MAX] = "", index[16];

        if (instance->n_parts < 2) {
                labels_add_number(labels, "device", instance->device);
                return;
        }
        for (size_t i = 0; i < instance->n_parts; i++) {
                (void)snprintf(index, sizeof(index), "%u", instance->parts[i]->device);
                append(devices, index);
        }
        labels_add(labels, "device", devices);
}

static void add_device_uuids(struct labels *labels, const struct vgpu_usage_snapshot *snapshot,
                             const struct vgpu_usage_instance *instance)
{
        char uuids[DEVICES_MAX] = "";

        if (instance->n_parts < 2)
                append(uuids, find_device_uuid(snapshot, instance->device));
        for (size_t i = 0; instance->n_parts > 1 && i < instance->n_parts; i++)
                append(uuids, find_device_uuid(snapshot, instance->parts[i]->device));
        labels_add(labels, "device_uuid", uuids);
}

static void make_labels(struct vgpu_labels *labels, const struct vgpu_usage_instance *instance)
{
        labels_add(&labels->lasting, "vgpu", instance->name);
        labels_add(&labels->lasting, "uuid", instance->uuid);
        labels_add_number(&labels->lasting, "tenant", instance->owner);
        labels_copy(&labels->now, &labels->lasting);
        add_devices(&labels->now, instance);
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
                add_device_uuids(&labels, snapshot, snapshot->instances[i]);
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
                    "Part of the device's time that it can count on, whoever has work there.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                text_sample(text, &vgpus->labels[i].now, snapshot->instances[i]->entitled / 100);
        text_family(text, "openvgpu_vgpu_utilization_ratio", TEXT_GAUGE, "ratio",
                    "Part of the last period in which the engine was busy with it.");
        for (size_t i = 0; i < snapshot->n_instances; i++)
                metrics_write_percents(text, &vgpus->labels[i].now,
                                       snapshot->instances[i]->percents);
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

static void write_restored(struct text *text, const struct labels *of, const char *context,
                           uint32_t n)
{
        struct labels labels;

        labels_copy(&labels, of);
        labels_add(&labels, "context", context);
        text_sample_integer(text, &labels, n);
}

/* What an alert is for: kernels of an unwhole context keep others off the device. */
static void write_vgpu_restored(struct text *text, const struct vgpus *vgpus)
{
        text_family(
                text, "openvgpu_vgpu_restored_processes", TEXT_GAUGE, NULL,
                "Programs whose contexts the driver restored, by whether they are whole again.");
        for (size_t i = 0; i < vgpus->snapshot->n_instances; i++) {
                const struct vgpu_usage_instance *instance = vgpus->snapshot->instances[i];

                write_restored(text, &vgpus->labels[i].now, "whole", instance->n_whole);
                write_restored(text, &vgpus->labels[i].now, "unwhole", instance->n_unwhole);
        }
}

/* On each of several devices; of a vGPU of one device the families above say it. */

static bool has_parts(const struct vgpu_usage_snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_instances; i++)
                if (snapshot->instances[i]->n_parts > 1)
                        return true;
        return false;
}

typedef void (*part_fn)(struct text *text, const struct labels *labels,
                        const struct vgpu_usage_instance *instance,
                        const struct vgpu_usage_part *part);

/* They are all of the same size. */
static void write_part_quota(struct text *text, const struct labels *labels,
                             const struct vgpu_usage_instance *instance,
                             const struct vgpu_usage_part *part)
{
        (void)part;
        text_sample_integer(text, labels, instance->frame_buffer / instance->n_parts);
}

static void write_part_percents(struct text *text, const struct labels *labels,
                                const struct vgpu_usage_instance *instance,
                                const struct vgpu_usage_part *part)
{
        (void)instance;
        metrics_write_percents(text, labels, part->percents);
}

static void write_part_memory(struct text *text, const struct labels *labels,
                              const struct vgpu_usage_instance *instance,
                              const struct vgpu_usage_part *part)
{
        (void)instance;
        text_sample_integer(text, labels, part->frame_buffer_used);
}

static void write_part_time(struct text *text, const struct labels *labels,
                            const struct vgpu_usage_instance *instance,
                            const struct vgpu_usage_part *part)
{
        (void)instance;
        text_sample(text, labels, part->gpu_seconds_total);
}

static void write_each_part(struct text *text, const struct vgpus *vgpus, part_fn write)
{
        for (size_t i = 0; i < vgpus->snapshot->n_instances; i++) {
                const struct vgpu_usage_instance *instance = vgpus->snapshot->instances[i];

                for (size_t k = 0; instance->n_parts > 1 && k < instance->n_parts; k++) {
                        struct labels labels;

                        labels_copy(&labels, &vgpus->labels[i].lasting);
                        labels_add_number(&labels, "device", instance->parts[k]->device);
                        write(text, &labels, instance, instance->parts[k]);
                }
        }
}

static void write_parts(struct text *text, const struct vgpus *vgpus)
{
        if (!has_parts(vgpus->snapshot))
                return;
        text_family(text, "openvgpu_vgpu_part_memory_quota_bytes", TEXT_GAUGE, "bytes",
                    "Frame buffer that the programs of a vGPU may hold on one of its devices.");
        write_each_part(text, vgpus, write_part_quota);
        text_family(text, "openvgpu_vgpu_part_memory_used_bytes", TEXT_GAUGE, "bytes",
                    "Frame buffer that the programs of a vGPU hold on one of its devices.");
        write_each_part(text, vgpus, write_part_memory);
        text_family(text, "openvgpu_vgpu_part_utilization_ratio", TEXT_GAUGE, "ratio",
                    "Part of the last period in which an engine of the device was busy with it.");
        write_each_part(text, vgpus, write_part_percents);
        text_family(text, "openvgpu_vgpu_part_gpu_seconds", TEXT_COUNTER, "seconds",
                    "GPU time of the programs of a vGPU on one of its devices since vgpud began.");
        write_each_part(text, vgpus, write_part_time);
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

void metrics_write_vgpus(struct text *text, const struct vgpu_usage_snapshot *snapshot,
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
        write_vgpu_restored(text, &vgpus);
        write_parts(text, &vgpus);
        write_vgpu_residency(text, &vgpus);
        if (has_processes)
                write_processes(text, &vgpus);
}
