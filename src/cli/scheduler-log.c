/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/document.h"
#include "cli/say.h"
#include "cli/scheduler.h"

/* The log has 200 entries: with turns of a millisecond that is a fifth of a second. */
#define FOLLOW_US 100000

static void print_time(uint64_t ns)
{
        time_t seconds = (time_t)(ns / 1000000000u);
        struct tm local;
        char text[16];

        localtime_r(&seconds, &local);
        strftime(text, sizeof(text), "%H:%M:%S", &local);
        printf("%s.%06u", text, (unsigned int)(ns / 1000 % 1000000));
}

static void print_header(void)
{
        printf("%-15s  %-16s %8s %8s %10s %9s %6s\n", "END", "VGPU", "RUN ms", "TARGET", "TOTAL s",
               "OVER s", "WEIGHT");
}

static void print_entries(const struct vgpu_time_sharing_log *log)
{
        char name[64];

        for (size_t i = 0; i < log->n_entries; i++) {
                const struct vgpu_time_sharing_entry *entry = log->entries[i];

                print_time(entry->timestamp_ns);
                printf("  %-16s %8.3f %8.3f %10.3f %9.3f %6.2f\n",
                       text_clean(name, sizeof(name), entry->name), (double)entry->run_ns / 1e6,
                       (double)entry->target_ns / 1e6, (double)entry->run_total_ns / 1e9,
                       (double)entry->preempted_ns / 1e9, entry->weight / 1e4);
        }
}

/* With --json, each look at the log is a document on a line of its own. */
static int show(const struct arguments *arguments, struct vgpu_client *client, uint64_t *from,
                bool is_first)
{
        CLEANUP(vgpu_time_sharing_log_freep) struct vgpu_time_sharing_log *log = NULL;

        if (vgpu_time_sharing_lookup_log(client, scheduler_device(arguments), *from, &log) < 0)
                return say_error(arguments, client);
        if (*from > 0 && log->n_entries > 0 && log->entries[0]->number > *from)
                fprintf(stderr, "vgpu: %llu of the turns were missed\n",
                        (unsigned long long)(log->entries[0]->number - *from));
        *from = log->next;
        if (arguments->is_json)
                return log->n_entries || !arguments_get(arguments, "follow")
                               ? document_print(arguments, document_from_turns_log(log))
                               : 0;
        if (is_first)
                print_header();
        print_entries(log);
        return 0;
}

static int run_scheduler_log(const struct arguments *arguments, struct vgpu_client *client)
{
        uint64_t from = 0;
        int r;

        r = show(arguments, client, &from, true);
        while (r == 0 && arguments_get(arguments, "follow")) {
                if (fflush(stdout) != 0)
                        return EXIT_CODE_FAILED;
                usleep(FOLLOW_US);
                r = show(arguments, client, &from, false);
        }
        return r;
}

static const struct option options[] = {
        SCHEDULER_DEVICE_OPTION,
        { .name = "follow",
          .letter = 'f',
          .help = "print further turns as they end, until interrupted" },
        { .name = NULL },
};

const struct command command_scheduler_log = {
        .name = "scheduler log",
        .usage = "[--follow] [--device DEVICE]",
        .summary = "show the last turns of a GPU",
        .description =
                "Shows the last 200 turns of a GPU. For each turn: when it ended, the vGPU, how long\n"
                "it ran and was meant to run, how long this vGPU has run in all and how much of this\n"
                "was too long, and the percentage of time to which the vGPU was entitled then.\n",
        .examples = "vgpu scheduler log\n"
                    "vgpu scheduler log --device 0 --json\n",
        .options = options,
        .run = run_scheduler_log,
};
