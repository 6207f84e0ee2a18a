/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_LAYOUT_H
#define CLI_TOP_LAYOUT_H

/*
 * Which columns of vgpu top fit into a width, and how wide they are.
 *
 * Columns go by their importance. Names shrink before the more important columns go, and grow to
 * their full length before the least important ones come.
 */

#include <stdbool.h>
#include <stddef.h>

#include <openvgpu/usage.h>

#define TOP_WIDTH_MAX 400
#define TOP_TEXT_MAX  (4 * TOP_WIDTH_MAX + 1) /* bytes: names are UTF-8 */

/* In the order in which they are shown; the name comes before them. */
enum top_column {
        TOP_STATE,
        TOP_DEVICE,
        TOP_ENTITLED,
        TOP_USE,
        TOP_MEMORY_USE,
        TOP_ENCODER,
        TOP_DECODER,
        TOP_JPEG,
        TOP_OFA,
        TOP_MEMORY,
        TOP_TIME,
        TOP_COLUMNS
};

struct top_layout {
        size_t name;  /* width of the names */
        size_t label; /* of the programs' names, which may reach below the state */
        bool shows[TOP_COLUMNS];
        size_t device_name;
        size_t bar; /* 0: there is none */
        bool shows_device_memory, shows_device_memory_use;
};

/* top_layout_make() - for lines of at most @width columns; 0: of all columns, nothing cut. */
void top_layout_make(struct top_layout *layout, const struct vgpu_usage_snapshot *snapshot,
                     size_t width);

/* top_layout_put() - @text in @width columns; one that is too long ends with '+'. */
void top_layout_put(char *to, size_t room, const char *text, size_t width);

/* top_layout_label() - of a program: its number, its name, and its container if it is in one */
#define TOP_LABEL_MAX 256
void top_layout_label(char label[TOP_LABEL_MAX], const struct vgpu_usage_process *process);

/* top_column_get_width(), top_column_get_title() - numbers are flush right, as their titles are */
size_t top_column_get_width(enum top_column column);
const char *top_column_get_title(enum top_column column);

#endif
