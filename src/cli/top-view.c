/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-view.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/usage.h"

static const char *const order_names[TOP_ORDERS] = {
        [TOP_BY_GPU] = "gpu",   [TOP_BY_MEMORY] = "memory", [TOP_BY_ENCODER] = "encoder",
        [TOP_BY_TIME] = "time", [TOP_BY_NAME] = "name",
};

const char *top_order_get_name(enum top_order order)
{
        return order_names[order];
}

enum top_order top_order_find(const char *name)
{
        int order = 0;

        while (order < TOP_ORDERS && strcmp(order_names[order], name) != 0)
                order++;
        return (enum top_order)order;
}

/* "31.8G": three digits and a letter, as room is short. */
static char *format_short(char *text, size_t room, uint64_t bytes)
{
        static const char units[] = "BKMGTPE";
        double value = (double)bytes;
        int unit = 0;

        while (value >= 1000 && unit < 6) {
                value /= 1024;
                unit++;
        }
        snprintf(text, room, value < 100 && unit > 0 && value != (int)value ? "%.1f%c" : "%.0f%c",
                 value, units[unit]);
        return text;
}

/* A line that is put together from its left end. */
struct line {
        char *text;
        size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(line->text + line->n, TOP_TEXT_MAX - line->n, format, args);
        va_end(args);
        line->n += n > 0 ? (size_t)n : 0;
        if (line->n >= TOP_TEXT_MAX)
                line->n = TOP_TEXT_MAX - 1;
}

static void add_name(struct line *line, const char *name, size_t width)
{
        top_layout_put(line->text + line->n, TOP_TEXT_MAX - line->n, name, width);
        line->n += strlen(line->text + line->n);
}

static void end(struct line *line)
{
        while (line->n > 0 && line->text[line->n - 1] == ' ')
                line->text[--line->n] = '\0';
}

/* "31.8G/40G", the slashes below each other. */
static void add_memory(struct line *line, uint64_t used, uint64_t total)
{
        char one[16], other[16];

        add(line, " %5s/%-5s", format_short(one, sizeof(one), used),
            format_short(other, sizeof(other), total));
}

static void make_device(char *text, const struct top_layout *layout,
                        const struct vgpu_usage_device *device)
{
        struct line line = { .text = text };
        uint32_t percent = device->percents->gpu < 100 ? device->percents->gpu : 100;
        int full = (int)((percent * layout->bar + 50) / 100);

        add(&line, "GPU %-2u ", device->index);
        add_name(&line, device->name, layout->device_name);
        add(&line, " %3u%%", device->percents->gpu);
        if (layout->bar > 0) {
                add(&line, " [");
                for (int i = 0; i < (int)layout->bar; i++)
                        add(&line, "%c", i < full ? '|' : ' ');
                add(&line, "]");
        }
        if (layout->shows_device_memory_use)
                add(&line, " bus %3u%%", device->percents->memory);
        if (layout->shows_device_memory)
                add_memory(&line, device->memory_used, device->memory_total);
        end(&line);
}

static void make_title(char *text, const struct top_layout *layout)
{
        static const char title[] = "VGPU / PROGRAM";
        struct line line = { .text = text };

        add_name(&line, layout->name < strlen(title) ? "VGPU" : title, layout->name);
        for (int i = 0; i < TOP_COLUMNS; i++)
                if (layout->shows[i])
                        add(&line, i == TOP_STATE ? " %-*s" : " %*s",
                            (int)top_column_get_width((enum top_column)i),
                            top_column_get_title((enum top_column)i));
        end(&line);
}

static void add_percents(struct line *line, const struct top_layout *layout,
                         const struct vgpu_usage_percents *percents)
{
        const struct {
                enum top_column column;
                uint32_t percent;
        } all[] = {
                { TOP_USE, percents->gpu },         { TOP_MEMORY_USE, percents->memory },
                { TOP_ENCODER, percents->encoder }, { TOP_DECODER, percents->decoder },
                { TOP_JPEG, percents->jpeg },       { TOP_OFA, percents->ofa },
        };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (layout->shows[all[i].column])
                        add(line, " %3u%%", all[i].percent);
}

static void add_time(struct line *line, const struct top_layout *layout, double seconds)
{
        char time[USAGE_DURATION_MAX];

        if (layout->shows[TOP_TIME])
                add(line, " %*s", (int)top_column_get_width(TOP_TIME),
                    usage_format_duration(time, seconds));
        end(line);
}

#define MINUTE 60
#define HOUR   3600

/* In ten columns. */
static void format_idle(char *text, size_t size, double seconds)
{
        if (seconds < 1000)
                snprintf(text, size, "idle %.0f s", seconds);
        else if (seconds < 16 * HOUR)
                snprintf(text, size, "idle %.0fmin", seconds / MINUTE);
        else
                snprintf(text, size, "idle %.0f h", seconds / HOUR);
}

static void format_demand(char *text, size_t size, const char *demand, uint32_t percent)
{
        bool is_coming = strcmp(demand, "coming in") == 0;

        if (strcmp(demand, "waiting for memory") == 0)
                snprintf(text, size, "waits: mem");
        else if (percent > 0 && (is_coming || strcmp(demand, "leaving") == 0))
                snprintf(text, size, "%s %u%%", is_coming ? "coming" : "leaves", percent);
        else
                snprintf(text, size, "%s", demand);
}

/* What it does by itself comes before its state: both do not fit. */
static void add_state(struct line *line, const struct vgpu_usage_instance *instance)
{
        char text[40];

        if (instance->demand && instance->demand[0])
                format_demand(text, sizeof(text), instance->demand, instance->demand_percent);
        else if (instance->idle >= 1)
                format_idle(text, sizeof(text), instance->idle);
        else
                snprintf(text, sizeof(text), "%s", vgpu_instance_state_get_name(instance->state));
        add(line, " %-*.*s", (int)top_column_get_width(TOP_STATE),
            (int)top_column_get_width(TOP_STATE), text);
}

static void make_instance(struct top_line *to, const struct top_layout *layout,
                          const struct vgpu_usage_instance *instance)
{
        struct line line = { .text = to->text };
        char device[24] = "-";

        to->instance = instance;
        to->gpu = instance->percents->gpu;
        if (instance->n_parts > 1)
                snprintf(device, sizeof(device), "%zux", instance->n_parts);
        else if (instance->state != VGPU_INSTANCE_SUSPENDED)
                snprintf(device, sizeof(device), "%u", instance->device);
        add_name(&line, instance->name, layout->name);
        if (layout->shows[TOP_STATE])
                add_state(&line, instance);
        if (layout->shows[TOP_DEVICE])
                add(&line, " %3s", device);
        if (layout->shows[TOP_ENTITLED])
                add(&line, " %5.0f%%", instance->entitled);
        add_percents(&line, layout, instance->percents);
        if (layout->shows[TOP_MEMORY])
                add_memory(&line, instance->frame_buffer_used, instance->frame_buffer);
        add_time(&line, layout, instance->seconds->gpu);
}

static void make_part(struct top_line *to, const struct top_layout *layout,
                      const struct vgpu_usage_instance *instance,
                      const struct vgpu_usage_part *part)
{
        struct line line = { .text = to->text };
        char label[32];

        to->instance = instance;
        to->part = part;
        to->gpu = part->percents->gpu;
        snprintf(label, sizeof(label), "  on GPU %u", part->device);
        add_name(&line, label, layout->label);
        if (layout->shows[TOP_DEVICE])
                add(&line, " %3u", part->device);
        if (layout->shows[TOP_ENTITLED])
                add(&line, " %5.0f%%", part->entitled);
        add_percents(&line, layout, part->percents);
        if (layout->shows[TOP_MEMORY])
                add_memory(&line, part->frame_buffer_used,
                           instance->frame_buffer / instance->n_parts);
        add_time(&line, layout, part->seconds->gpu);
}

static void make_process(struct top_line *to, const struct top_layout *layout,
                         const struct vgpu_usage_instance *instance,
                         const struct vgpu_usage_process *process)
{
        struct line line = { .text = to->text };
        char label[TOP_LABEL_MAX], used[16];

        to->instance = instance;
        to->process = process;
        to->gpu = process->percents->gpu;
        top_layout_label(label, process);
        add_name(&line, label, layout->label);
        if (layout->shows[TOP_DEVICE])
                add(&line, " %3s", "");
        if (layout->shows[TOP_ENTITLED])
                add(&line, " %6s", "");
        add_percents(&line, layout, process->percents);
        if (layout->shows[TOP_MEMORY])
                add(&line, " %5s%6s", format_short(used, sizeof(used), process->memory_used), "");
        add_time(&line, layout, process->seconds->gpu);
}

/* Order. */

struct key {
        double value;
        const char *name;
        size_t at;
};

static double get_value(const struct vgpu_usage_percents *percents, uint64_t memory, double seconds,
                        enum top_order order)
{
        switch (order) {
        case TOP_BY_GPU:
                return percents->gpu;
        case TOP_BY_MEMORY:
                return (double)memory;
        case TOP_BY_ENCODER:
                return percents->encoder;
        case TOP_BY_TIME:
                return seconds;
        case TOP_BY_NAME:
        case TOP_ORDERS:
                break;
        }
        return 0;
}

static int compare(const void *a, const void *b)
{
        const struct key *one = a, *other = b;

        if (one->value != other->value)
                return one->value > other->value ? -1 : 1;
        if (strcmp(one->name, other->name) != 0)
                return strcmp(one->name, other->name);
        return one->at < other->at ? -1 : 1;
}

static struct key *sort_instances(const struct vgpu_usage_snapshot *snapshot, enum top_order order)
{
        struct key *keys = calloc(snapshot->n_instances + 1, sizeof(*keys));

        for (size_t i = 0; keys && i < snapshot->n_instances; i++) {
                const struct vgpu_usage_instance *one = snapshot->instances[i];

                keys[i] = (struct key){ get_value(one->percents, one->frame_buffer_used,
                                                  one->seconds->gpu, order),
                                        one->name, i };
        }
        if (keys)
                qsort(keys, snapshot->n_instances, sizeof(*keys), compare);
        return keys;
}

static struct key *sort_processes(const struct vgpu_usage_instance *instance, enum top_order order)
{
        struct key *keys = calloc(instance->n_processes + 1, sizeof(*keys));

        for (size_t i = 0; keys && i < instance->n_processes; i++) {
                const struct vgpu_usage_process *one = instance->processes[i];

                keys[i] = (struct key){ get_value(one->percents, one->memory_used,
                                                  one->seconds->gpu, order),
                                        one->name, i };
        }
        if (keys)
                qsort(keys, instance->n_processes, sizeof(*keys), compare);
        return keys;
}

static int add_processes(struct top_view *view, const struct vgpu_usage_instance *instance,
                         const struct top_layout *layout, enum top_order order)
{
        CLEANUP(freep) struct key *keys = sort_processes(instance, order);

        if (!keys)
                return -ENOMEM;
        for (size_t i = 0; i < instance->n_processes; i++)
                make_process(&view->lines[view->n_lines++], layout, instance,
                             instance->processes[keys[i].at]);
        return 0;
}

static size_t count_lines(const struct vgpu_usage_snapshot *snapshot)
{
        size_t n = snapshot->n_instances;

        for (size_t i = 0; i < snapshot->n_instances; i++)
                n += snapshot->instances[i]->n_processes + snapshot->instances[i]->n_parts;
        return n;
}

int top_view_make(struct top_view *view, const struct vgpu_usage_snapshot *snapshot,
                  enum top_order order, bool has_programs, size_t width)
{
        CLEANUP(freep) struct key *keys = sort_instances(snapshot, order);
        struct top_layout layout;
        int r = 0;

        top_view_deinit(view);
        view->devices = calloc(snapshot->n_devices + 1, sizeof(*view->devices));
        view->lines = calloc(count_lines(snapshot) + 1, sizeof(*view->lines));
        if (!keys || !view->devices || !view->lines)
                return -ENOMEM;
        top_layout_make(&layout, snapshot, width);
        make_title(view->title, &layout);
        for (size_t i = 0; i < snapshot->n_devices; i++)
                make_device(view->devices[view->n_devices++], &layout, snapshot->devices[i]);
        for (size_t i = 0; r == 0 && i < snapshot->n_instances; i++) {
                const struct vgpu_usage_instance *instance = snapshot->instances[keys[i].at];

                make_instance(&view->lines[view->n_lines++], &layout, instance);
                for (size_t k = 0; instance->n_parts > 1 && k < instance->n_parts; k++)
                        make_part(&view->lines[view->n_lines++], &layout, instance,
                                  instance->parts[k]);
                if (has_programs)
                        r = add_processes(view, instance, &layout, order);
        }
        return r;
}

void top_view_deinit(struct top_view *view)
{
        free(view->devices);
        free(view->lines);
        *view = (struct top_view){ 0 };
}
