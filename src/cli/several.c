/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/several.h"

#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/document.h"
#include "cli/instance.h"
#include "cli/say.h"

struct round {
        const struct arguments *arguments;
        struct vgpu_client *client;
        const struct several *several;
        json_t *results; /* with --json; else NULL */
        int code;        /* of the first failure */
};

/* One vGPU. Returns whether the next one is worth a try. */
static bool take(struct round *round, const char *name)
{
        json_t *document = NULL;
        int code = round->several->act(round->arguments, round->client, name, &document);

        if (document && json_array_append_new(round->results, document) < 0)
                code = say_failure(round->arguments, EXIT_CODE_FAILED, "OutOfMemory", "",
                                   "out of memory");
        if (round->code == 0)
                round->code = code;
        return code != EXIT_CODE_NO_MANAGER;
}

static bool is_own(const struct vgpu_instance *instance)
{
        return geteuid() == 0 || instance->owner == geteuid();
}

static int take_all(struct round *round)
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        size_t n = 0;

        if (vgpu_instance_lookup_all(round->client, &list) < 0)
                return say_error(round->arguments, round->client);
        for (size_t i = 0; i < list->n_instances; i++) {
                const struct vgpu_instance *instance = list->instances[i];

                if (!is_own(instance) || !round->several->is_meant(instance))
                        continue;
                n++;
                if (!take(round, instance->name))
                        break;
        }
        if (n == 0 && !round->arguments->is_json)
                puts(round->several->none);
        return 0;
}

/* One name, as it always was. */
static int run_one(const struct arguments *arguments, struct vgpu_client *client,
                   const struct several *several)
{
        json_t *document = NULL;
        int code = several->act(arguments, client, arguments->words[0], &document);

        return document ? document_print(arguments, document) : code;
}

static int run_round(struct round *round, bool is_all)
{
        const struct arguments *arguments = round->arguments;
        int r = is_all ? take_all(round) : 0;

        if (r != 0)
                return r;
        for (size_t i = 0; i < arguments->n_words; i++)
                if (!take(round, arguments->words[i]))
                        break;
        if (arguments->is_json)
                r = document_print(arguments, json_pack("{sO}", "results", round->results));
        return round->code != 0 ? round->code : r;
}

int several_run(const struct arguments *arguments, struct vgpu_client *client,
                const struct several *several)
{
        bool is_all = several->is_meant && arguments_get(arguments, "all");
        struct round round = { .arguments = arguments, .client = client, .several = several };
        char see[64];
        int r;

        snprintf(see, sizeof(see), "see 'vgpu help %s'", arguments->command->name);
        if (is_all && arguments->n_words > 0)
                return say_usage(arguments, see, "--all and the name of a vGPU exclude each other");
        if (!is_all && arguments->n_words == 0)
                return say_usage(arguments, see, "the name of the vGPU is missing");
        if (!is_all && arguments->n_words == 1)
                return run_one(arguments, client, several);

        round.results = json_array();
        r = run_round(&round, is_all);
        json_decref(round.results);
        return r;
}
