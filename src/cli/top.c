/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openvgpu/time-sharing.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/document.h"
#include "cli/say.h"
#include "cli/top-action.h"
#include "cli/top-screen.h"
#include "cli/top-view.h"
#include "cli/usage.h"

#define DELAY_SECONDS 1.0
#define DELAY_MIN     0.1

/* Percent, for each press of a key. */
#define SHARE_STEP 5

/* A manager that hangs must not hang the screen for long. */
#define ANSWER_MS 2000

/* Turns are shown while some are taken. */
#define TURNS_FRESH_NS 5000000000u

struct top {
        const struct arguments *arguments;
        struct vgpu_client *client;
        struct vgpu_usage_snapshot *snapshot;
        struct top_view view;
        enum top_order order;
        struct top_history history;
        struct vgpu_time_sharing_log
                *turns; /* of the chosen vGPU's GPU, while its graph is shown */
        bool has_programs, shows_help, shows_graph, is_old, must_end;
        size_t chosen, first;
        size_t width; /* that the view was made for */
        struct top_action action;
        char status[TOP_SAID_MAX + 64];
        double delay;
};

static volatile sig_atomic_t was_told_to_end;

static void on_signal(int number)
{
        (void)number;
        was_told_to_end = 1;
}

/* Once, as text. */

static int print_once(const struct arguments *arguments, struct vgpu_client *client,
                      enum top_order order)
{
        CLEANUP(vgpu_usage_snapshot_freep) struct vgpu_usage_snapshot *snapshot = NULL;
        struct top_view view = { 0 };

        if (vgpu_usage_take_snapshot(client, &snapshot) < 0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, usage_document_snapshot(snapshot));
        if (top_view_make(&view, snapshot, order, true, 0) < 0) {
                top_view_deinit(&view);
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        }
        for (size_t i = 0; i < view.n_devices; i++)
                puts(view.devices[i]);
        puts(view.title);
        for (size_t i = 0; i < view.n_lines; i++)
                puts(view.lines[i].text);
        top_view_deinit(&view);
        return 0;
}

/* On the screen. */

/* What was chosen stays so wherever it is now. */
static bool is_of(const struct top_line *line, const char *uuid, int32_t pid, uint32_t part)
{
        return strcmp(line->instance->uuid, uuid) == 0 &&
               (line->process ? line->process->pid : 0) == pid &&
               (line->part ? line->part->id : 0) == part;
}

static void choose_again(struct top *top, const char *uuid, int32_t pid, uint32_t part)
{
        for (size_t i = 0; i < top->view.n_lines; i++)
                if (is_of(&top->view.lines[i], uuid, pid, part)) {
                        top->chosen = i;
                        return;
                }
        if (top->chosen >= top->view.n_lines)
                top->chosen = top->view.n_lines ? top->view.n_lines - 1 : 0;
}

static void show(struct top *top, struct vgpu_usage_snapshot *snapshot)
{
        char uuid[64] = "";
        int32_t pid = 0;
        uint32_t part = 0;

        if (top->chosen < top->view.n_lines) {
                const struct top_line *line = &top->view.lines[top->chosen];

                (void)snprintf(uuid, sizeof(uuid), "%s", line->instance->uuid);
                pid = line->process ? line->process->pid : 0;
                part = line->part ? line->part->id : 0;
        }
        top->width = top_screen_get_width();
        if (top_view_make(&top->view, snapshot, top->order, top->has_programs, top->width) < 0)
                top_view_deinit(&top->view);
        if (snapshot != top->snapshot) {
                (void)vgpu_usage_snapshot_free(top->snapshot);
                top->snapshot = snapshot;
        }
        choose_again(top, uuid, pid, part);
}

/* A log may be an hour old: what counts is that a turn has just ended. */
static bool is_fresh(const struct vgpu_time_sharing_log *log)
{
        return log->n_entries > 0 &&
               log->entries[log->n_entries - 1]->timestamp_ns + TURNS_FRESH_NS >
                       clock_now(CLOCK_REALTIME);
}

static void ask_turns(struct top *top)
{
        struct vgpu_time_sharing_log *log = NULL;
        const struct top_line *line;
        char device[16];

        if (top->shows_graph && top->chosen < top->view.n_lines) {
                line = &top->view.lines[top->chosen];
                (void)snprintf(device, sizeof(device), "%u",
                               line->part ? line->part->device : line->instance->device);
                (void)vgpu_time_sharing_lookup_log(top->client, device, 0, &log);
        }
        if (log && !is_fresh(log))
                log = vgpu_time_sharing_log_free(log);
        (void)vgpu_time_sharing_log_free(top->turns);
        top->turns = log;
}

static void ask(struct top *top)
{
        struct vgpu_usage_snapshot *snapshot;
        int r = vgpu_usage_take_snapshot(top->client, &snapshot);

        if (r < 0) {
                top->is_old = true;
                top_history_add(&top->history, NULL);
                (void)snprintf(top->status, sizeof(top->status), "%s; trying again",
                               vgpu_client_get_error(top->client)->message);
                return;
        }
        if (top->is_old)
                top->status[0] = '\0';
        top->is_old = false;
        top_history_add(&top->history, snapshot);
        show(top, snapshot);
        ask_turns(top);
}

static void say(struct top *top, const char *what, const char *name)
{
        (void)snprintf(top->status, sizeof(top->status), "%s %.100s", what, name);
}

static void start(struct top *top, const char *const *words, const char *doing)
{
        char name[128];
        int r = top_action_start(&top->action, words);

        text_clean(name, sizeof(name), top->view.lines[top->chosen].instance->name);
        if (r == -EBUSY)
                say(top, "wait for the one before, then", words[1]);
        else
                say(top, r < 0 ? "cannot start vgpu for" : doing, name);
}

static void act(struct top *top, const char *verb, const char *doing)
{
        if (top->chosen < top->view.n_lines)
                start(top,
                      (const char *const[]){ "vgpu", verb,
                                             top->view.lines[top->chosen].instance->uuid, NULL },
                      doing);
}

/* From what it was given, or else from what it can count on. */
static void change_share(struct top *top, int by)
{
        const struct vgpu_usage_instance *instance;
        char percent[16];
        int share;

        if (top->chosen >= top->view.n_lines)
                return;
        instance = top->view.lines[top->chosen].instance;
        share = instance->share ? (int)instance->share : (int)(instance->entitled + 0.5);
        share += by;
        (void)snprintf(percent, sizeof(percent), "%d", share < 1 ? 1 : share > 100 ? 100 : share);
        start(top, (const char *const[]){ "vgpu", "share", instance->uuid, percent, NULL },
              "changing the share of");
}

static void sort_by(struct top *top, enum top_order order)
{
        top->order = order;
        if (top->snapshot)
                show(top, top->snapshot);
}

static void move(struct top *top, long by)
{
        long to = (long)top->chosen + by, last = (long)top->view.n_lines - 1;

        to = to > last ? last : to;
        top->chosen = to > 0 ? (size_t)to : 0;
        if (top->shows_graph)
                ask_turns(top);
}

static void press_letter(struct top *top, int letter)
{
        static const char orders[TOP_ORDERS] = { [TOP_BY_GPU] = 'u',
                                                 [TOP_BY_MEMORY] = 'm',
                                                 [TOP_BY_ENCODER] = 'e',
                                                 [TOP_BY_TIME] = 't',
                                                 [TOP_BY_NAME] = 'n' };

        for (int order = 0; order < TOP_ORDERS; order++)
                if (orders[order] == letter)
                        sort_by(top, (enum top_order)order);
        switch (letter) {
        case 'q':
                top->must_end = true;
                break;
        case 'h':
        case '?':
                top->shows_help = !top->shows_help;
                break;
        case 'g':
                top->shows_graph = !top->shows_graph;
                ask_turns(top);
                break;
        case 'p':
                top->has_programs = !top->has_programs;
                if (top->snapshot)
                        show(top, top->snapshot);
                break;
        case 's':
                act(top, "suspend", "suspending");
                break;
        case 'r':
                act(top, "resume", "resuming");
                break;
        case '+':
                change_share(top, SHARE_STEP);
                break;
        case '-':
                change_share(top, -SHARE_STEP);
                break;
        }
}

static void press(struct top *top, int key)
{
        long page = (long)top_screen_page(&top->view);

        if (!top->action.pid && !top->is_old)
                top->status[0] = '\0'; /* it has been read */
        switch (key) {
        case TOP_KEY_UP:
                move(top, -1);
                break;
        case TOP_KEY_DOWN:
                move(top, 1);
                break;
        case TOP_KEY_PAGE_UP:
                move(top, -page);
                break;
        case TOP_KEY_PAGE_DOWN:
                move(top, page);
                break;
        default:
                if (key > TOP_KEY_LETTER)
                        press_letter(top, key - TOP_KEY_LETTER);
        }
}

static void draw_view(struct top *top)
{
        uint8_t percents[TOP_HISTORY_SAMPLES];
        struct top_graph graph = { .percents = percents, .delay = top->delay };
        bool has_graph = top->shows_graph && top->snapshot && top->chosen < top->view.n_lines;
        const struct top_screen screen = {
                .view = top->snapshot ? &top->view : NULL,
                .order = top->order,
                .chosen = top->chosen,
                .first = &top->first,
                .is_old = top->is_old,
                .shows_help = top->shows_help,
                .graph = has_graph ? &graph : NULL,
                .status = top->status,
        };

        if (has_graph) {
                const struct vgpu_usage_instance *instance = top->view.lines[top->chosen].instance;

                top_history_get(&top->history, instance->uuid, percents);
                graph.entitled = instance->entitled;
                graph.turns = top->turns;
                graph.id = instance->id;
        }
        top_screen_draw(&screen);
}

static void draw(struct top *top)
{
        if (top->snapshot && top->width != top_screen_get_width())
                show(top, top->snapshot);
        draw_view(top);
}

static int64_t now_ms(void)
{
        return (int64_t)(clock_now(CLOCK_MONOTONIC) / 1000000);
}

/* Until a key, the end of a command, a signal (a new size is one), or the time for new numbers. */
static void wait_for_something(struct top *top, int64_t until_ms)
{
        struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                { .fd = top->action.pid ? top->action.output : -1,
                                  .events = POLLIN } };
        int64_t left_ms = until_ms - now_ms();
        const char *said;
        int key;

        if (poll(fds, 2, left_ms > 0 ? (int)left_ms : 0) < 0 && errno != EINTR)
                top->must_end = true;
        if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
                top->must_end = true; /* the terminal is gone */
        if (fds[1].revents && top_action_read(&top->action, &said) == 1) {
                ask(top); /* the next key is about what it has changed */
                say(top, "", said);
        }
        while ((key = top_screen_read()) != TOP_KEY_NONE)
                press(top, key);
}

static void watch(struct top *top)
{
        while (!top->must_end && !was_told_to_end) {
                int64_t next_ms = now_ms() + (int64_t)(1000 * top->delay);

                ask(top);
                do {
                        draw(top);
                        wait_for_something(top, next_ms);
                } while (!top->must_end && !was_told_to_end && now_ms() < next_ms);
        }
}

static int run_screen(struct top *top)
{
        const struct sigaction end = { .sa_handler = on_signal };

        (void)sigaction(SIGINT, &end, NULL);
        (void)sigaction(SIGTERM, &end, NULL);
        (void)sigaction(SIGHUP, &end, NULL);
        vgpu_client_set_timeout_ms(top->client, ANSWER_MS);
        if (top_screen_open() < 0)
                return say_failure(top->arguments, EXIT_CODE_FAILED, "Failed",
                                   "set TERM to what your terminal is, or use vgpu top --once",
                                   "this terminal cannot be used");
        watch(top);
        top_screen_close();
        top_action_leave(&top->action);
        top_view_deinit(&top->view);
        top_history_deinit(&top->history);
        (void)vgpu_time_sharing_log_free(top->turns);
        (void)vgpu_usage_snapshot_free(top->snapshot);
        return 0;
}

static int get_order(const struct arguments *arguments, enum top_order *order)
{
        const char *name = arguments_get(arguments, "sort");

        *order = name ? top_order_find(name) : TOP_BY_GPU;
        if (*order != TOP_ORDERS)
                return 0;
        return say_usage(arguments, "gpu, memory, encoder, time or name",
                         "--sort: vGPUs cannot be sorted by '%s'", name);
}

static int run_top(const struct arguments *arguments, struct vgpu_client *client)
{
        struct top top = { .arguments = arguments,
                           .client = client,
                           .has_programs = true,
                           .delay = DELAY_SECONDS };
        int r = get_order(arguments, &top.order);

        if (r == 0)
                r = arguments_get_seconds(arguments, "delay", &top.delay);
        if (r != 0)
                return r;
        if (top.delay < DELAY_MIN)
                top.delay = DELAY_MIN;
        if (arguments->is_json || arguments_get(arguments, "once") || !isatty(STDOUT_FILENO) ||
            !isatty(STDIN_FILENO))
                return print_once(arguments, client, top.order);
        return run_screen(&top);
}

static const struct option options[] = {
        { .name = "once", .help = "print one table as text; the default without a terminal" },
        { .name = "delay",
          .argument = "TIME",
          .help = "the time between two updates (default: 1)" },
        { .name = "sort",
          .argument = "KEY",
          .help = "gpu (the default), memory, encoder, time, name" },
        { .name = NULL },
};

const struct command command_top = {
        .name = "top",
        .usage = "[--once] [--delay TIME] [--sort KEY]",
        .summary = "watch what vGPUs and their programs do",
        .description =
                "Shows live what each vGPU may use of its GPU, and what the vGPU and its programs\n"
                "use. Keys suspend, resume and change shares; g shows a graph of the chosen vGPU's\n"
                "last minutes and the latest turns of its GPU, and h the keys.\n"
                "\n"
                "  GPU       its index; 2x: of two GPUs, which have a line each below it\n"
                "  ENTITL    percent of the GPU's time that the vGPU can count on\n"
                "  USE       percent of the GPU's time that it received\n"
                "  MEM, ENC, DEC, JPEG, OFA\n"
                "            percent of the time in which it kept the GPU's memory, or the GPU's\n"
                "            engines for video, pictures and optical flow, busy\n"
                "  bus       of a GPU: percent of the time in which its memory was read or written\n"
                "  MEMORY    frame buffer that its programs hold / its quota\n"
                "  GPU TIME  time that its programs have received since they began\n"
                "\n"
                "A narrow terminal shows fewer columns; a name that ends with + is longer.\n"
                "--once, and a pipe, show everything.\n",
        .examples = "vgpu top\n"
                    "vgpu top --once --sort memory\n",
        .options = options,
        .n_words_max = 0,
        .word = "",
        .run = run_top,
};
