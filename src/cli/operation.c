/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's call-back draws the bar, so only an interrupt can come at a bad moment. The manager
 * continues the operation whatever happens to this process: the handler of the interrupt prints
 * this, in a text that was made before, and lets the signal end the process.
 */
#include "cli/operation.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/size.h"
#include "base/text.h"
#include "cli/document.h"
#include "cli/instance-devices.h"

static struct {
        char title[80];        /* "suspend train" */
        char drawn[256];       /* what the terminal shows; "": nothing */
        char interrupted[256]; /* what the handler writes */
        size_t interrupted_size;
} operation;

static void on_interrupt(int number)
{
        (void)!write(STDERR_FILENO, operation.interrupted, operation.interrupted_size);
        raise(number); /* SA_RESETHAND: ends the process when the handler returns */
}

static size_t terminal_width(void)
{
        struct winsize size;

        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

#define BAR_MAX 24
#define BAR_MIN 6

static const char *describe_stage(const char *stage)
{
        static const struct {
                const char *stage, *words;
        } stages[] = {
                { "running", "copying while its programs run" },
                { "draining", "waiting for its programs to come to rest" },
                { "context", "moving its context" },
                { "reading", "reading its memory from disk" },
        };

        for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
                if (strcmp(stages[i].stage, stage) == 0)
                        return stages[i].words;
        return stage;
}

/* The words come first: a narrow terminal gets a shorter bar, or none. */
static void write_line(char *line, size_t room, const struct vgpu_operation_progress *progress)
{
        char done[SIZE_TEXT_MAX], total[SIZE_TEXT_MAX], bar[BAR_MAX + 4] = "", words[160];
        const char *stage = describe_stage(progress->stage);
        size_t width, length;

        if (progress->bytes_total == 0 || progress->bytes_done > progress->bytes_total) {
                snprintf(line, room, "%s: %s", operation.title, stage);
                return;
        }
        snprintf(words, sizeof(words), "%s of %s, %s", size_format(done, progress->bytes_done),
                 size_format(total, progress->bytes_total), stage);
        length = strlen(operation.title) + 1 + strlen(words) + sizeof("[] ");
        width = length + BAR_MIN > room ? 0 : room - length > BAR_MAX ? BAR_MAX : room - length;
        if (width > 0) {
                bar[0] = '[';
                memset(bar + 1, '.', width);
                memset(bar + 1, '#',
                       (size_t)((double)progress->bytes_done / (double)progress->bytes_total *
                                (double)width));
                strcpy(bar + 1 + width, "] ");
        }
        snprintf(line, room, "%s%s%s%s", operation.title, width > 0 ? " " : ": ", bar, words);
}

static void draw(const struct vgpu_operation_progress *progress, void *userdata)
{
        size_t room = sizeof(operation.drawn);
        char text[sizeof(operation.drawn)], line[sizeof(operation.drawn)];
        (void)userdata;

        /* A line that wraps could not be wiped away. */
        if (room > terminal_width())
                room = terminal_width();
        write_line(text, room, progress);
        text_clean(line, room, text);
        if (strcmp(line, operation.drawn) == 0)
                return;
        fprintf(stderr, "\r%s\033[K", line);
        memcpy(operation.drawn, line, strlen(line) + 1);
}

static bool can_draw(const struct arguments *arguments)
{
        const char *terminal = getenv("TERM");

        return !arguments->is_json && isatty(STDERR_FILENO) && terminal &&
               strcmp(terminal, "dumb") != 0;
}

static void make_texts(const struct arguments *arguments, const char *name)
{
        const char *verb = arguments->command->name;

        snprintf(operation.title, sizeof(operation.title), "%s %s", verb, name ? name : "");
        snprintf(operation.interrupted, sizeof(operation.interrupted),
                 "\nvgpu: %s: interrupted, but vgpud continues the operation%s\n"
                 "hint: see 'vgpu ls'\n",
                 verb, name ? "" : "s that have begun");
        operation.interrupted_size = strlen(operation.interrupted);
}

int operation_begin(const struct arguments *arguments, const char *name,
                    struct vgpu_operation_options *options)
{
        struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND };
        int r;

        r = arguments_get_seconds(arguments, "timeout", &options->timeout_seconds);
        if (r != 0)
                return r;
        options->keep_context = arguments_get(arguments, "keep-context") != NULL;
        options->verify = arguments_get(arguments, "verify") != NULL;
        options->group = arguments_get(arguments, "group") != NULL;
        options->pre_copy = arguments_get(arguments, "pre-copy") != NULL;

        make_texts(arguments, name);
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);

        if (name && can_draw(arguments))
                options->progress = draw;
        return 0;
}

void operation_end(void)
{
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        if (operation.drawn[0])
                fputs("\r\033[K", stderr);
        operation.drawn[0] = '\0';
}

char *operation_describe_time(char *text, double seconds)
{
        if (seconds < 0.01)
                snprintf(text, OPERATION_TIME_MAX, "%.1f ms", seconds * 1000);
        else
                snprintf(text, OPERATION_TIME_MAX, "%.2f s", seconds);
        return text;
}

static uint64_t get_changed(const struct vgpu_operation_report *report)
{
        return report->bytes > report->bytes_unchanged ? report->bytes - report->bytes_unchanged
                                                       : 0;
}

static void describe_pre_copy(char *text, const struct vgpu_operation_report *report,
                              const char *how)
{
        char ahead[SIZE_TEXT_MAX], rest[SIZE_TEXT_MAX];
        char ahead_time[OPERATION_TIME_MAX], rest_time[OPERATION_TIME_MAX];

        snprintf(text, OPERATION_TEXT_MAX, "%s %s in %s while its programs ran, then %s in %s",
                 size_format(ahead, report->pre_copy_bytes), how,
                 operation_describe_time(ahead_time, report->pre_copy_seconds),
                 size_format(rest, get_changed(report)),
                 operation_describe_time(rest_time, report->copy_seconds));
}

/* To find out what has changed takes a part of the time: it says nothing of a bandwidth. */
static void describe_part(char *text, const struct vgpu_operation_report *report, const char *how)
{
        char size[SIZE_TEXT_MAX], part[SIZE_TEXT_MAX], time[OPERATION_TIME_MAX];

        snprintf(text, OPERATION_TEXT_MAX, "%s of %s %s in %s, the rest had not changed",
                 size_format(part, get_changed(report)), size_format(size, report->bytes), how,
                 operation_describe_time(time, report->copy_seconds));
}

/* GB/s. What would be printed as 0.0 says nothing but that the GPU is a simulated one. */
#define LEAST_RATE 0.05

static double get_rate(const struct vgpu_operation_report *report)
{
        return (double)report->bytes / report->copy_seconds / 1e9;
}

char *operation_describe_copy(char *text, const struct vgpu_operation_report *report,
                              const char *how)
{
        char size[SIZE_TEXT_MAX], time[OPERATION_TIME_MAX];
        int n;

        if (report->n_processes == 0) {
                snprintf(text, OPERATION_TEXT_MAX, "no program in it");
                return text;
        }
        if (report->pre_copy_bytes > 0) {
                describe_pre_copy(text, report, how);
                n = (int)strlen(text);
        } else if (report->bytes_unchanged > 0) {
                describe_part(text, report, how);
                n = (int)strlen(text);
        } else {
                n = snprintf(text, OPERATION_TEXT_MAX, "%s %s in %s",
                             size_format(size, report->bytes), how,
                             operation_describe_time(time, report->copy_seconds));
        }
        if (report->bytes > 0 && report->bytes_unchanged == 0 && report->pre_copy_bytes == 0 &&
            report->copy_seconds >= 0.001 && get_rate(report) >= LEAST_RATE)
                n += snprintf(text + n, OPERATION_TEXT_MAX - (size_t)n, " (%.1f GB/s)",
                              get_rate(report));
        if (report->context_seconds >= 0.0001)
                snprintf(text + n, OPERATION_TEXT_MAX - (size_t)n, ", context %s",
                         operation_describe_time(time, report->context_seconds));
        return text;
}

char *operation_describe_stop(char *text, const struct vgpu_operation_report *report)
{
        char stopped[OPERATION_TIME_MAX];

        text[0] = '\0';
        if (report->n_processes > 0 && report->stopped_seconds > 0)
                snprintf(text, OPERATION_STOP_MAX, ", its programs stood still for %s",
                         operation_describe_time(stopped, report->stopped_seconds));
        return text;
}

char *operation_describe_devices(char *text, const struct vgpu_operation_report *report,
                                 uint32_t device)
{
        char numbers[INSTANCE_DEVICES_MAX];

        if (report->instance->n_parts > 1)
                snprintf(text, OPERATION_DEVICES_MAX, "GPUs %s",
                         instance_devices_format(numbers, report->instance));
        else
                snprintf(text, OPERATION_DEVICES_MAX, "GPU %u", device);
        return text;
}

void operation_tell_lost(const struct vgpu_operation_report *report)
{
        if (report->lost && *report->lost)
                fprintf(stderr, "vgpu: %s: the driver could not restore it; the others continue\n",
                        report->lost);
}

/* What is worth telling apart: a quarter more than the longer of the two, which overlap. */
#define WAITED_LONGER 1.25

char *operation_describe_whole(char *text, const struct vgpu_operation_report *report)
{
        double longer = report->copy_seconds > report->context_seconds ? report->copy_seconds
                                                                       : report->context_seconds;
        char time[OPERATION_TIME_MAX];
        int n;

        text[0] = '\0';
        if (report->n_processes == 0 || report->seconds <= WAITED_LONGER * longer)
                return text;
        n = snprintf(text, OPERATION_WHOLE_MAX, ", %s in all",
                     operation_describe_time(time, report->seconds));
        if (report->pool_seconds >= 0.01)
                n += snprintf(text + n, OPERATION_WHOLE_MAX - (size_t)n,
                              " (waited %s for host memory to be pinned)",
                              operation_describe_time(time, report->pool_seconds));
        if (report->fetch_seconds > 0)
                snprintf(text + n, OPERATION_WHOLE_MAX - (size_t)n, ", %s of it to read from disk",
                         operation_describe_time(time, report->fetch_seconds));
        return text;
}

/* "1 of 2 processes, ", where some were left behind; else "". */
#define COUNT_MAX 48
static const char *describe_count(char text[COUNT_MAX], const struct vgpu_operation_report *report)
{
        text[0] = '\0';
        if (*report->left_behind)
                snprintf(text, COUNT_MAX, "%u of %zu processes, ", report->n_processes,
                         report->instance->n_processes);
        return text;
}

void operation_tell_resumed(const struct arguments *arguments,
                            const struct vgpu_operation_report *report, json_t **ret_document)
{
        char copy[OPERATION_TEXT_MAX], whole[OPERATION_WHOLE_MAX], devices[OPERATION_DEVICES_MAX];
        char stop[OPERATION_STOP_MAX], count[COUNT_MAX], clean[512];

        operation_tell_lost(report);
        if (arguments->is_json)
                *ret_document = document_from_report(report);
        else
                printf("resumed %s: %s%s%s%s, on %s%s%s\n", report->instance->name,
                       describe_count(count, report), operation_describe_copy(copy, report, "back"),
                       operation_describe_whole(whole, report),
                       operation_describe_stop(stop, report),
                       operation_describe_devices(devices, report, report->to_device),
                       *report->left_behind ? "; " : "",
                       text_clean(clean, sizeof(clean), report->left_behind));
}
