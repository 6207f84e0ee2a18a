/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_METRICS_H
#define EXPORTER_METRICS_H

/*
 * Which metrics there are, and what they are called: from the library's answers to text. docs/metrics.md
 * lists them.
 */

#include <openvgpu/device.h>
#include <openvgpu/manager.h>
#include <openvgpu/statistics.h>
#include <openvgpu/usage.h>

#include "exporter/text.h"
#include "exporter/xid.h"

/* What to write besides our own names. */
struct metrics_options {
        bool has_processes; /* a label for each process: as many series as there are processes */
        bool has_dcgm;      /* names of NVIDIA's DCGM exporter */
        bool has_hami;      /* names of HAMi's monitor */
};

/* NULL: it did not answer. Without the first there is nothing but that. */
struct metrics_input {
        const struct vgpu_usage_snapshot *snapshot;
        const struct vgpu_manager *manager;
        const struct vgpu_statistics *statistics;
        const struct vgpu_device_sensors *const
                *sensors;             /* of each device of the snapshot, or NULL */
        const struct xid_count *xids; /* of all devices */
        size_t n_xids;
        double collect_seconds; /* that the answers took */
        double cpu_seconds;     /* of the exporter since it began */
        const char *hostname;
};

/* metrics_write() - all of it but text_end(). */
void metrics_write(struct text *text, const struct metrics_input *input,
                   const struct metrics_options *options);

/* metrics_write_dcgm(), metrics_write_hami() - by names that dashboards know. */
void metrics_write_dcgm(struct text *text, const struct metrics_input *input);
void metrics_write_hami(struct text *text, const struct metrics_input *input);

#endif
