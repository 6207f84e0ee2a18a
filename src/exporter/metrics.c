/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/metrics.h"

#include <stdio.h>

#include "exporter/metrics-internal.h"

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
                  "1 if vgpud runs, else 0 and most of the rest is missing.",
                  input->snapshot != NULL);
        labels_add(&labels, "version", vgpu_get_version());
        text_family(text, "openvgpu_exporter_build", TEXT_INFO, NULL, "The exporter.");
        text_sample(text, &labels, 1);
        write_one(text, "openvgpu_exporter_collect_seconds", TEXT_GAUGE, "seconds",
                  "Time that this scrape took until all was read, the devices' answers included.",
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

static void write_statistics(struct text *text, const struct vgpu_statistics *statistics)
{
        write_one(text, "openvgpu_manager_start_time_seconds", TEXT_GAUGE, "seconds",
                  "When vgpud began, since the epoch.", statistics->started);
        write_one(text, "openvgpu_ledger_working", TEXT_GAUGE, NULL,
                  "1 if usage reaches the ledger, 0 if it waits in memory or is not metered.",
                  statistics->is_ledger_fine);
        metrics_write_operations(text, statistics);
}

/* All of it. */

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
        metrics_write_devices(text, input);
        metrics_write_vgpus(text, input->snapshot, options->has_processes);
        if (options->has_dcgm)
                metrics_write_dcgm(text, input);
        if (options->has_hami)
                metrics_write_hami(text, input);
}
