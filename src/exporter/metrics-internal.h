/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_METRICS_INTERNAL_H
#define EXPORTER_METRICS_INTERNAL_H

/* The parts of metrics_write(), each in a file of its own. */

#include "exporter/metrics.h"

void metrics_write_operations(struct text *text, const struct vgpu_statistics *statistics);
void metrics_write_devices(struct text *text, const struct metrics_input *input);
void metrics_write_vgpus(struct text *text, const struct vgpu_usage_snapshot *snapshot,
                         bool has_processes);

/* metrics_write_percents() - a sample for each engine, of a device or of a vGPU */
void metrics_write_percents(struct text *text, const struct labels *labels,
                            const struct vgpu_usage_percents *percents);

#endif
