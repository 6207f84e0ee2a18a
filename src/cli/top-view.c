/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/usage.h"

#define NAME_WIDTH 18
#define BAR_WIDTH  20

const char top_view_title[] =
        "VGPU / PROGRAM     STATE     GPU SHARE  USE  MEM  ENC        MEMORY    GPU TIME";

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

/* Cut to, and filled up to @width columns: printf() counts bytes. */
static void pad(char *to, size_t room, const char *text, size_t width)
{
        char clean[TOP_TEXT_MAX];
        size_t n = 0, columns = 0;

        text_clean(clean, sizeof(clean), text);
        for (const char *c = clean; *c && n < room - 5; c++) {
                if ((*c & 0xc0) != 0x80 && ++columns > width)
                        break;
                to[n++] = *c;
        }
        for (columns = columns > width ? width : columns; columns < width && n < room - 1;
             columns++)
                to[n++] = ' ';
        to[n] = '\0';
}

static void make_device(char *text, const struct vgpu_usage_device *device)
{
        char bar[BAR_WIDTH + 1], name[80], used[16], total[16];
        int full = (int)(device->percents->gpu * BAR_WIDTH + 50) / 100;

        for (int i = 0; i < BAR_WIDTH; i++)
                bar[i] = i < full ? '|' : ' ';
        bar[BAR_WIDTH] = '\0';
        pad(name, sizeof(name), device->name, 17);
        snprintf(text, TOP_TEXT_MAX, "GPU %-2u %s %3u%% [%s] mem %3u%% %5s/%-5s", device->index,
                 name, device->percents->gpu, bar, device->percents->memory,
                 format_short(used, sizeof(used), device->memory_used),
                 format_short(total, sizeof(total), device->memory_total));
}

static void make_instance(struct top_line *line, const struct vgpu_usage_instance *instance)
{
        char name[100], device[16] = "-", used[16], quota[16], time[USAGE_DURATION_MAX];

        line->instance = instance;
        line->gpu = instance->percents->gpu;
        pad(name, sizeof(name), instance->name, NAME_WIDTH);
        if (instance->state != VGPU_INSTANCE_SUSPENDED)
                snprintf(device, sizeof(device), "%u", instance->device);
        snprintf(line->text, sizeof(line->text),
                 "%s %-9.9s %3s %4.0f%% %3u%% %3u%% %3u%% %6s/%-6s %11s", name,
                 vgpu_instance_state_get_name(instance->state), device, instance->entitled,
                 instance->percents->gpu, instance->percents->memory, instance->percents->encoder,
                 format_short(used, sizeof(used), instance->frame_buffer_used),
                 format_short(quota, sizeof(quota), instance->frame_buffer),
                 usage_format_duration(time, instance->seconds->gpu));
}

static void make_process(struct top_line *line, const struct vgpu_usage_instance *instance,
                         const struct vgpu_usage_process *process)
{
        char name[100], both[200], used[16], time[USAGE_DURATION_MAX];

        line->instance = instance;
        line->process = process;
        line->gpu = process->percents->gpu;
        snprintf(both, sizeof(both), "  %d %.100s", process->pid, process->name);
        pad(name, sizeof(name), both, NAME_WIDTH + 1 + 9);
        snprintf(line->text, sizeof(line->text), "%s %3s %5s %3u%% %3u%% %3u%% %6s%7s %11s", name,
                 "", "", process->percents->gpu, process->percents->memory,
                 process->percents->encoder, format_short(used, sizeof(used), process->memory_used),
                 "", usage_format_duration(time, process->seconds->gpu));
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
                         enum top_order order)
{
        CLEANUP(freep) struct key *keys = sort_processes(instance, order);

        if (!keys)
                return -ENOMEM;
        for (size_t i = 0; i < instance->n_processes; i++)
                make_process(&view->lines[view->n_lines++], instance,
                             instance->processes[keys[i].at]);
        return 0;
}

static size_t count_lines(const struct vgpu_usage_snapshot *snapshot)
{
        size_t n = snapshot->n_instances;

        for (size_t i = 0; i < snapshot->n_instances; i++)
                n += snapshot->instances[i]->n_processes;
        return n;
}

int top_view_make(struct top_view *view, const struct vgpu_usage_snapshot *snapshot,
                  enum top_order order, bool has_programs)
{
        CLEANUP(freep) struct key *keys = sort_instances(snapshot, order);
        int r = 0;

        top_view_deinit(view);
        view->devices = calloc(snapshot->n_devices + 1, sizeof(*view->devices));
        view->lines = calloc(count_lines(snapshot) + 1, sizeof(*view->lines));
        if (!keys || !view->devices || !view->lines)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_devices; i++)
                make_device(view->devices[view->n_devices++], snapshot->devices[i]);
        for (size_t i = 0; r == 0 && i < snapshot->n_instances; i++) {
                const struct vgpu_usage_instance *instance = snapshot->instances[keys[i].at];

                make_instance(&view->lines[view->n_lines++], instance);
                if (has_programs)
                        r = add_processes(view, instance, order);
        }
        return r;
}

void top_view_deinit(struct top_view *view)
{
        free(view->devices);
        free(view->lines);
        *view = (struct top_view){ 0 };
}
