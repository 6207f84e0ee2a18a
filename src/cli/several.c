/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/several.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/document.h"
#include "cli/instance.h"
#include "cli/operation.h"
#include "cli/say.h"

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);

/* So many operations at once: each has a connection, of which a user may have only so many. */
#define AT_ONCE 32

struct round {
        const struct arguments *arguments;
        struct vgpu_client *client;
        const struct several *several;
        struct vgpu_operation_options options;
        json_t *results; /* with --json; else NULL */
        int code;        /* of the first failure */
        bool has_no_manager;
};

static void keep(struct round *round, json_t *document)
{
        if (document && json_array_append_new(round->results, document) < 0)
                round->code = say_failure(round->arguments, EXIT_CODE_FAILED, "OutOfMemory", "",
                                          "out of memory");
}

static void note(struct round *round, int code)
{
        round->has_no_manager |= code == EXIT_CODE_NO_MANAGER;
        if (round->code == 0)
                round->code = code;
}

/* One after another. */

static void act_on_all(struct round *round, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n && !round->has_no_manager; i++) {
                struct arguments about = *round->arguments;
                json_t *document = NULL;

                about.vgpu = names[i];
                note(round, round->several->act(&about, round->client, names[i], &document));
                keep(round, document);
        }
}

/* With a progress bar. */
static int operate_on_one(const struct arguments *arguments, struct vgpu_client *client,
                          const struct several *several, const char *name, json_t **ret_document)
{
        CLEANUP(vgpu_operation_report_freep) struct vgpu_operation_report *report = NULL;
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        int r = operation_begin(arguments, name, &options);

        if (r != 0)
                return r;
        r = several->operation->run(arguments, client, name, &options, &report);
        operation_end();
        if (r < 0)
                return say_error(arguments, client);
        several->operation->tell(arguments, report, ret_document);
        return 0;
}

/* At the same time. */

struct task {
        const struct round *round;
        const char *name;
        struct vgpu_client *client; /* its own: one client waits for one call */
        struct vgpu_operation_report *report;
        pthread_t thread;
        bool has_thread;
        int error;
};

static void *run(void *userdata)
{
        struct task *task = userdata;
        const struct round *round = task->round;

        task->error = round->several->operation->run(round->arguments, task->client, task->name,
                                                     &round->options, &task->report);
        return NULL;
}

static void begin(struct task *task)
{
        task->error = vgpu_client_new(&task->client, NULL);
        if (task->error < 0)
                return;
        task->has_thread = pthread_create(&task->thread, NULL, run, task) == 0;
        if (!task->has_thread)
                (void)run(task);
}

static void tell_failure(struct round *round, const struct task *task)
{
        const struct vgpu_error *error = task->client ? vgpu_client_get_error(task->client) : NULL;
        struct arguments about = *round->arguments;

        about.vgpu = task->name;
        if (!error)
                note(round,
                     say_failure(&about, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory"));
        else if (say_get_code(error) != EXIT_CODE_NO_MANAGER)
                note(round, say_library_error(&about, error));
        else if (!round->has_no_manager) /* it is about none of them */
                note(round, say_library_error(round->arguments, error));
}

static void end(struct round *round, struct task *task)
{
        json_t *document = NULL;

        if (task->has_thread)
                (void)pthread_join(task->thread, NULL);
        if (task->error < 0)
                tell_failure(round, task);
        else
                round->several->operation->tell(round->arguments, task->report, &document);
        keep(round, document);
        task->report = vgpu_operation_report_free(task->report);
        task->client = vgpu_client_free(task->client);
}

static void operate_on_all(struct round *round, const char *const *names, size_t n)
{
        CLEANUP(freep) struct task *tasks = calloc(n, sizeof(*tasks));

        if (!tasks) {
                note(round, say_failure(round->arguments, EXIT_CODE_FAILED, "OutOfMemory", "",
                                        "out of memory"));
                return;
        }
        for (size_t i = 0; i < n + AT_ONCE; i++) {
                if (i >= AT_ONCE)
                        end(round, &tasks[i - AT_ONCE]);
                if (i < n) {
                        tasks[i] = (struct task){ .round = round, .name = names[i] };
                        begin(&tasks[i]);
                }
        }
}

/* Which. */

static bool is_own(const struct vgpu_instance *instance)
{
        return geteuid() == 0 || instance->owner == geteuid();
}

static void run_all(struct round *round, const char *const *names, size_t n)
{
        json_t *document = NULL;
        int code;

        if (!round->several->operation) {
                act_on_all(round, names, n);
                return;
        }
        if (n == 1) {
                note(round, operate_on_one(round->arguments, round->client, round->several,
                                           names[0], &document));
                keep(round, document);
                return;
        }
        code = operation_begin(round->arguments, NULL, &round->options);
        note(round, code);
        if (code != 0)
                return;
        operate_on_all(round, names, n);
        operation_end();
}

static int run_meant(struct round *round)
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        CLEANUP(freep) const char **names = NULL;
        size_t n = 0;

        if (vgpu_instance_lookup_all(round->client, &list) < 0)
                return say_error(round->arguments, round->client);
        names = calloc(list->n_instances + 1, sizeof(*names));
        if (!names)
                return say_failure(round->arguments, EXIT_CODE_FAILED, "OutOfMemory", "",
                                   "out of memory");
        for (size_t i = 0; i < list->n_instances; i++)
                if (is_own(list->instances[i]) && round->several->is_meant(list->instances[i]))
                        names[n++] = list->instances[i]->name;
        run_all(round, names, n);
        if (n == 0 && !round->arguments->is_json)
                puts(round->several->none);
        return 0;
}

/* Those that were named, each once: what is asked for twice cannot be done twice. */
static int run_named(struct round *round)
{
        const struct arguments *arguments = round->arguments;
        CLEANUP(freep) const char **names = calloc(arguments->n_words, sizeof(*names));
        size_t n = 0;

        if (!names)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        for (size_t i = 0; i < arguments->n_words; i++) {
                size_t k = 0;

                while (k < n && strcmp(names[k], arguments->words[i]) != 0)
                        k++;
                names[k] = arguments->words[i];
                n = k == n ? n + 1 : n;
        }
        run_all(round, names, n);
        return 0;
}

/* One name, as it always was. */
static int run_one(const struct arguments *arguments, struct vgpu_client *client,
                   const struct several *several)
{
        json_t *document = NULL;
        int code =
                several->operation
                        ? operate_on_one(arguments, client, several, arguments->words[0], &document)
                        : several->act(arguments, client, arguments->words[0], &document);

        return document ? document_print(arguments, document) : code;
}

int several_run(const struct arguments *arguments, struct vgpu_client *client,
                const struct several *several)
{
        bool is_all = several->is_meant && arguments_get(arguments, "all");
        struct round round = { .arguments = arguments,
                               .client = client,
                               .several = several,
                               .options = VGPU_OPERATION_OPTIONS_INIT };
        char see[64];
        int r;

        snprintf(see, sizeof(see), "see 'vgpu help %s'", arguments->command->name);
        if (is_all && arguments->n_words > 0)
                return say_usage(arguments, see, "--all and the name of a vGPU exclude each other");
        if (!is_all && arguments->n_words == 0)
                return say_usage(arguments, see, "the name of the vGPU is missing");
        if ((is_all || arguments->n_words > 1) && arguments_get(arguments, "group"))
                return say_usage(arguments, see,
                                 "--group finds the others by itself: name one vGPU of the group");
        if (!is_all && arguments->n_words == 1)
                return run_one(arguments, client, several);

        round.results = json_array();
        r = is_all ? run_meant(&round) : run_named(&round);
        if (r == 0 && arguments->is_json)
                r = document_print(arguments, json_pack("{sO}", "results", round.results));
        json_decref(round.results);
        return round.code != 0 ? round.code : r;
}
