/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

/*
 * What vgpu top shows, as lines of text: the devices, and below them the vGPUs, each with what it has of
 * its devices, if they are several, and with its programs. No terminal in here. cli/top-layout.h decides which columns there are.
 */

#include <stdbool.h>

#include <openvgpu/usage.h>

#include "base/cleanup.h"
#include "cli/top-layout.h"

enum top_order { TOP_BY_GPU, TOP_BY_MEMORY, TOP_BY_ENCODER, TOP_BY_TIME, TOP_BY_NAME, TOP_ORDERS };

/* top_order_get_name() - "gpu", "memory", "encoder", "time", "name". */
const char *top_order_get_name(enum top_order order);

/* top_order_find() - TOP_ORDERS: there is none of that name. */
enum top_order top_order_find(const char *name);

struct top_line {
        const struct vgpu_usage_instance *instance; /* of the snapshot */
        const struct vgpu_usage_process *process;   /* of a program's line, */
        const struct vgpu_usage_part
                *part; /* of that of one of several devices; else the vGPU itself */
        uint32_t gpu;  /* percent, for the colour */
        char text[TOP_TEXT_MAX];
};

struct top_view {
        char title[TOP_TEXT_MAX]; /* above the lines */
        size_t n_devices;
        char (*devices)[TOP_TEXT_MAX];
        size_t n_lines;
        struct top_line *lines;
};

/*
 * top_view_make() - of @snapshot, which must live as long. A zeroed view is an empty one.
 * @width:  columns that a line may have; 0: nothing is left out
 *
 * Errors: -ENOMEM.
 */
int top_view_make(struct top_view *view, const struct vgpu_usage_snapshot *snapshot,
                  enum top_order order, bool has_programs, size_t width);
void top_view_deinit(struct top_view *view);

#endif
