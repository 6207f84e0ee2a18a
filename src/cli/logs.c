/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/event.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/document.h"
#include "cli/say.h"
#include "cli/usage.h"
#include "record/records.h"

#define FOLLOW_US 250000

#define UUID_MAX 64

DEFINE_CLEANUP(struct vgpu_event_list *, vgpu_event_list_free);

/* As text. */

static void print_event(const struct vgpu_event *event, bool has_name)
{
        time_t seconds = (time_t)event->time;
        char when[32] = "-", clean[512];
        struct tm local;

        if (localtime_r(&seconds, &local))
                (void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &local);
        printf("%s  ", when);
        if (has_name)
                printf("%-16s  ", text_clean(clean, sizeof(clean), event->vgpu));
        puts(text_clean(clean, sizeof(clean), event->message));
}

/* As JSON. */

static int print_document(const struct arguments *arguments, const struct vgpu_event_list *list)
{
        return document_print(arguments, record_make(&record_event_list, list));
}

/* With --follow, each event is a document on a line of its own. */
static int print_line(const struct arguments *arguments, const struct vgpu_event *event)
{
        CLEANUP(json_decrefp) json_t *document = record_make(&record_event, event);

        if (!document || json_dumpf(document, stdout, JSON_COMPACT) < 0)
                return document_print(arguments, NULL);
        putchar('\n');
        return 0;
}

/* The command. */

static int print(const struct arguments *arguments, const struct vgpu_event_list *list)
{
        int r = 0;

        if (arguments->is_json && !arguments_get(arguments, "follow"))
                return print_document(arguments, list);
        for (size_t i = 0; r == 0 && i < list->n_events; i++)
                if (arguments->is_json)
                        r = print_line(arguments, list->events[i]);
                else
                        print_event(list->events[i], arguments->n_words == 0);
        return r;
}

/* @uuid: of the vGPU, once an event has told it: a later vGPU of that name is another one. */
static int show(const struct arguments *arguments, struct vgpu_client *client,
                struct vgpu_event_options *options, char uuid[UUID_MAX])
{
        CLEANUP(vgpu_event_list_freep) struct vgpu_event_list *list = NULL;
        const struct vgpu_event *last;

        if (vgpu_event_lookup(client, options, &list) < 0)
                return say_error(arguments, client);
        if (list->n_events > 0) {
                last = list->events[list->n_events - 1];
                options->after = last->id;
                if (options->name) {
                        (void)snprintf(uuid, UUID_MAX, "%s", last->vgpu_uuid);
                        options->name = uuid;
                }
        }
        return print(arguments, list);
}

static int get_since(const struct arguments *arguments, double *ret_seconds)
{
        const char *text = arguments_get(arguments, "since");

        if (!text || usage_parse_time(ret_seconds, text, (double)time(NULL)) == 0)
                return 0;
        return say_usage(arguments, "2026-11-01, '2026-11-01 09:30', today, or 7d (ago)",
                         "--since: '%s' is no time", text);
}

static int run_logs(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_event_options options = VGPU_EVENT_OPTIONS_INIT;
        char uuid[UUID_MAX];
        int r = get_since(arguments, &options.since);

        options.name = arguments->n_words > 0 ? arguments->words[0] : NULL;
        if (r == 0)
                r = show(arguments, client, &options, uuid);
        while (r == 0 && arguments_get(arguments, "follow")) {
                if (fflush(stdout) != 0)
                        return EXIT_CODE_FAILED;
                (void)usleep(FOLLOW_US);
                r = show(arguments, client, &options, uuid);
        }
        return r;
}

static const struct option options[] = {
        { .name = "follow",
          .letter = 'f',
          .help = "print further events as they happen, until interrupted" },
        { .name = "since",
          .argument = "TIME",
          .help = "2026-11-01, '2026-11-01 09:30', today, 7d" },
        { .name = NULL },
};

const struct command command_logs = {
        .name = "logs",
        .usage = "[NAME] [-f] [--since TIME]",
        .summary = "show what happened to a vGPU",
        .description =
                "Shows when a vGPU was created, resized, renamed, suspended, resumed, moved and\n"
                "removed, what of this began and failed, and why, when programs began and ended in\n"
                "it, and that one asked for more memory than the quota; without a name, of all vGPUs.\n"
                "What was refused before it began, for lack of room for example, is no event. NAME\n"
                "may be the name or the UUID of a vGPU that is gone. Root sees the events of all\n"
                "vGPUs; other users see those of their own. vgpud keeps the latest 2,048 events of\n"
                "each user.\n",
        .examples = "vgpu logs train\n"
                    "vgpu logs --since today --json\n",
        .options = options,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run_logs,
};
