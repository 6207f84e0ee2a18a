/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/size.h"
#include "cli/document.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/usage.h"

static const struct column columns[] = {
        { "PID", true },         { "PROGRAM", false }, { "STATE", false }, { "STARTED", false },
        { "TIME", true },        { "GPU TIME", true }, { "GPU", true },    { "MEM", true },
        { "PEAK MEMORY", true }, { NULL, false },
};

static void add(struct table *table, const struct vgpu_usage_account *account)
{
        char text[USAGE_DURATION_MAX], size[SIZE_TEXT_MAX], when[USAGE_TIME_MAX];

        table_add(table, "%d", account->pid);
        table_add(table, "%s", account->name);
        table_add(table, "%s", account->is_running ? "running" : "ended");
        table_add(table, "%s", usage_format_time(when, account->started));
        table_add(table, "%s", usage_format_duration(text, account->life));
        table_add(table, "%s", usage_format_duration(text, account->seconds->gpu));
        table_add(table, "%u%%", account->gpu_utilization);
        table_add(table, "%u%%", account->memory_utilization);
        table_add(table, "%s", size_format(size, account->memory_peak));
}

static int clear(const struct arguments *arguments, struct vgpu_client *client)
{
        uint32_t cleared;

        if (vgpu_usage_clear_accounts(client, arguments->words[0], &cleared) < 0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, json_pack("{si}", "cleared", (int)cleared));
        printf("forgot %u process%s of %s that ended\n", cleared, cleared == 1 ? "" : "es",
               arguments->words[0]);
        return 0;
}

static int run_accounting(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_usage_account_list_freep) struct vgpu_usage_account_list *list = NULL;
        CLEANUP(table_deinitp) struct table table;

        table_init(&table, columns);
        if (arguments_get(arguments, "clear"))
                return clear(arguments, client);
        if (vgpu_usage_lookup_accounts(client, arguments->words[0], &list) < 0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, usage_document_accounts(list));
        for (size_t i = 0; i < list->n_accounts; i++)
                add(&table, list->accounts[i]);
        if (table_print(&table) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        return 0;
}

static const struct option options[] = {
        { .name = "clear", .help = "forget ended programs; for root. Bills do not change" },
        { .name = NULL },
};

const struct command command_accounting = {
        .name = "accounting",
        .usage = "NAME [--clear]",
        .summary = "show what each program in a vGPU has used, also ended ones",
        .description =
                "Lists the running and ended programs of a vGPU. You must own the vGPU or be root.\n"
                "Ended programs come first, in the order of their ends, at most 4000.\n"
                "\n"
                "  TIME          time since the program began, or from its begin to its end\n"
                "  GPU TIME      time in which its kernels ran\n"
                "  GPU, MEM      percent of TIME in which it kept the GPU, or the GPU's memory, busy\n"
                "  PEAK MEMORY   the most that it held of the vGPU's frame buffer\n",
        .examples = "vgpu accounting train\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run_accounting,
};
