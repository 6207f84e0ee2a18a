/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-layout.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/program-container.h"

/* Names: the least that can be told apart, what is usual, and all of it. */
#define NAME_MIN   10
#define NAME_USUAL 18
#define NAME_FULL  0

#define DEVICE_NAME_MIN   11 /* "NVIDIA H200" */
#define DEVICE_NAME_USUAL 17
#define BAR_MIN           20
#define BAR_MAX           60

static const struct {
        const char *title;
        size_t width;
} columns[TOP_COLUMNS] = {
        [TOP_STATE] = { "STATE", 10 },    [TOP_DEVICE] = { "GPU", 3 },
        [TOP_ENTITLED] = { "ENTITL", 6 }, [TOP_USE] = { "USE", 4 },
        [TOP_MEMORY_USE] = { "MEM", 4 },  [TOP_ENCODER] = { "ENC", 4 },
        [TOP_DECODER] = { "DEC", 4 },     [TOP_JPEG] = { "JPEG", 4 },
        [TOP_OFA] = { "OFA", 4 },         [TOP_MEMORY] = { "MEMORY", 11 },
        [TOP_TIME] = { "GPU TIME", 12 },
};

/* From the most important one; each comes only if so much is left for the names. */
static const struct {
        enum top_column column;
        size_t name;
} importance[TOP_COLUMNS] = {
        { TOP_USE, NAME_MIN },          { TOP_MEMORY, NAME_MIN },        { TOP_STATE, NAME_MIN },
        { TOP_ENTITLED, NAME_MIN + 2 }, { TOP_DEVICE, NAME_MIN + 2 },    { TOP_TIME, NAME_USUAL },
        { TOP_MEMORY_USE, NAME_USUAL }, { TOP_ENCODER, NAME_USUAL - 1 }, { TOP_DECODER, NAME_FULL },
        { TOP_JPEG, NAME_FULL },        { TOP_OFA, NAME_FULL },
};

size_t top_column_get_width(enum top_column column)
{
        return columns[column].width;
}

const char *top_column_get_title(enum top_column column)
{
        return columns[column].title;
}

void top_layout_put(char *to, size_t room, const char *text, size_t width)
{
        char clean[TOP_TEXT_MAX];
        size_t n = 0, at = 0;

        text_clean(clean, sizeof(clean), text);
        if (text_width(clean) > width && width > 0) {
                for (const char *c = clean; n < room - 1; c++) {
                        if ((*c & 0xc0) != 0x80 && ++at == width)
                                break;
                        to[n++] = *c;
                }
                to[n++] = '+';
                to[n] = '\0';
                return;
        }
        snprintf(to, room, "%s%*s", clean, (int)(width - text_width(clean)), "");
}

static size_t larger(size_t a, size_t b)
{
        return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

static size_t clean_width(const char *text)
{
        char clean[TOP_TEXT_MAX];

        return text_width(text_clean(clean, sizeof(clean), text));
}

/* The name of a program has the state's column as well, if that is there. */
static size_t beside_label(const struct top_layout *layout)
{
        return layout->shows[TOP_STATE] ? 1 + columns[TOP_STATE].width : 0;
}

void top_layout_label(char label[TOP_LABEL_MAX], const struct vgpu_usage_process *process)
{
        struct container container;
        const char *name =
                program_container_find(&container, process->pid, process->container_name);

        (void)snprintf(label, TOP_LABEL_MAX, "  %d %.100s%s%s%s", process->pid, process->name,
                       name ? " (" : "", name ? name : "", name ? ")" : "");
}

static size_t longest_name(const struct vgpu_usage_snapshot *snapshot)
{
        size_t longest = NAME_USUAL;
        char label[TOP_LABEL_MAX];

        for (size_t i = 0; i < snapshot->n_instances; i++) {
                const struct vgpu_usage_instance *one = snapshot->instances[i];

                longest = larger(longest, clean_width(one->name));
                for (size_t j = 0; j < one->n_processes; j++) {
                        top_layout_label(label, one->processes[j]);
                        longest =
                                larger(longest + 1 + columns[TOP_STATE].width, clean_width(label)) -
                                1 - columns[TOP_STATE].width;
                }
        }
        return longest;
}

static void lay_out_lines(struct top_layout *layout, const struct vgpu_usage_snapshot *snapshot,
                          size_t width)
{
        size_t longest = longest_name(snapshot), used = 0;

        for (size_t i = 0; i < TOP_COLUMNS; i++) {
                size_t more = 1 + columns[importance[i].column].width;
                size_t name = importance[i].name == NAME_FULL ? longest : importance[i].name;

                if (used + more + name > width)
                        continue;
                layout->shows[importance[i].column] = true;
                used += more;
        }
        layout->name = smaller(larger(width, used + 1) - used, longest);
        layout->label = layout->name + beside_label(layout);
}

static void lay_out_devices(struct top_layout *layout, const struct vgpu_usage_snapshot *snapshot,
                            size_t width, bool is_full)
{
        static const size_t base = 7 + 5, memory = 12, memory_use = 9, around_bar = 3;
        size_t longest = DEVICE_NAME_USUAL, used = base;

        for (size_t i = 0; i < snapshot->n_devices; i++)
                longest = larger(longest, clean_width(snapshot->devices[i]->name));
        layout->shows_device_memory = used + memory + DEVICE_NAME_MIN <= width;
        used += layout->shows_device_memory ? memory : 0;
        layout->shows_device_memory_use = used + memory_use + DEVICE_NAME_MIN <= width;
        used += layout->shows_device_memory_use ? memory_use : 0;
        if (used + around_bar + BAR_MIN + DEVICE_NAME_USUAL <= width) {
                size_t left = width - used - around_bar;

                layout->bar = is_full || left < longest + BAR_MIN
                                      ? BAR_MIN
                                      : smaller(left - longest, BAR_MAX);
                used += around_bar + layout->bar;
        }
        layout->device_name = smaller(larger(width, used + 1) - used, longest);
}

void top_layout_make(struct top_layout *layout, const struct vgpu_usage_snapshot *snapshot,
                     size_t width)
{
        bool is_full = width == 0;

        if (is_full || width > TOP_WIDTH_MAX)
                width = TOP_WIDTH_MAX;
        *layout = (struct top_layout){ 0 };
        lay_out_lines(layout, snapshot, width);
        lay_out_devices(layout, snapshot, width, is_full);
}
