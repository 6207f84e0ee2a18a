/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

/*
 * What vgpu top shows, as lines of text: the devices, and below them the vGPUs with their programs. No
 * terminal in here. A line is at most TOP_WIDTH columns wide.
 */

#include <stdbool.h>

#include <openvgpu/usage.h>

#include "base/cleanup.h"

#define TOP_WIDTH    79
#define TOP_TEXT_MAX (4 * TOP_WIDTH + 1) /* bytes: names are UTF-8 */

enum top_order { TOP_BY_GPU, TOP_BY_MEMORY, TOP_BY_ENCODER, TOP_BY_TIME, TOP_BY_NAME, TOP_ORDERS };

/* top_order_get_name() - "gpu", "memory", "encoder", "time", "name". */
const char *top_order_get_name(enum top_order order);

/* top_order_find() - TOP_ORDERS: there is none of that name. */
enum top_order top_order_find(const char *name);

struct top_line {
        const struct vgpu_usage_instance *instance; /* of the snapshot */
        const struct vgpu_usage_process *process;   /* NULL: the vGPU itself */
        uint32_t gpu;                               /* percent, for the colour */
        char text[TOP_TEXT_MAX];
};

struct top_view {
        size_t n_devices;
        char (*devices)[TOP_TEXT_MAX];
        size_t n_lines;
        struct top_line *lines;
};

/* The titles above the lines. */
extern const char top_view_title[];

/* top_view_make() - of @snapshot, which must live as long. A zeroed view is an empty one. -ENOMEM. */
int top_view_make(struct top_view *view, const struct vgpu_usage_snapshot *snapshot,
                  enum top_order order, bool has_programs);
void top_view_deinit(struct top_view *view);

#endif
