/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations of vgpud took and moved, by kind and result. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "exporter/metrics-internal.h"

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

static double get_pre_copies(const struct vgpu_statistics_operation *operation)
{
        return (double)operation->n_pre_copies;
}

static double get_pre_copy_rounds(const struct vgpu_statistics_operation *operation)
{
        return (double)operation->n_pre_copy_rounds;
}

static double get_pre_copy_bytes(const struct vgpu_statistics_operation *operation)
{
        return (double)operation->pre_copy_bytes;
}

static double get_pre_copy_seconds(const struct vgpu_statistics_operation *operation)
{
        return operation->pre_copy_seconds;
}

static double get_pre_copy_stopped(const struct vgpu_statistics_operation *operation)
{
        return operation->pre_copy_stopped_seconds;
}

static const struct {
        const char *name, *unit, *help;
        double (*get)(const struct vgpu_statistics_operation *operation);
} pre_copy[] = {
        { "openvgpu_pre_copy_operations", NULL,
          "Operations that ended and had copied memory while their programs ran.", get_pre_copies },
        { "openvgpu_pre_copy_rounds", NULL, "Rounds of copying in which these did so.",
          get_pre_copy_rounds },
        { "openvgpu_pre_copy_bytes", "bytes",
          "Device memory that they copied then, some of it several times.", get_pre_copy_bytes },
        { "openvgpu_pre_copy_seconds", "seconds", "How long they copied then.",
          get_pre_copy_seconds },
        { "openvgpu_pre_copy_stopped_seconds", "seconds",
          "How long the programs of these operations stood still.", get_pre_copy_stopped },
};

/* Only a suspend has a pre-copy. */
static void write_pre_copies(struct text *text, const struct vgpu_statistics *statistics)
{
        for (size_t m = 0; m < sizeof(pre_copy) / sizeof(pre_copy[0]); m++) {
                text_family(text, pre_copy[m].name, TEXT_COUNTER, pre_copy[m].unit,
                            pre_copy[m].help);
                for (size_t i = 0; i < statistics->n_operations; i++) {
                        const struct vgpu_statistics_operation *operation =
                                statistics->operations[i];
                        struct labels labels = { .size = 0 };

                        if (strcmp(operation->operation, "suspend") != 0)
                                continue;
                        labels_add(&labels, "operation", operation->operation);
                        labels_add(&labels, "result", operation->result);
                        text_sample(text, &labels, pre_copy[m].get(operation));
                }
        }
}

/* An older vgpud has no buckets of bytes: then the one without a bound counts all. */
void metrics_write_operations(struct text *text, const struct vgpu_statistics *statistics)
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
        write_pre_copies(text, statistics);
}
