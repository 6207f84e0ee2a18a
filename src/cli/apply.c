/* SPDX-License-Identifier: Apache-2.0 */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openvgpu/time-sharing.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "cli/declared.h"
#include "cli/document.h"
#include "cli/instance.h"
#include "cli/say.h"

struct application {
        const struct arguments *arguments;
        struct vgpu_client *client;
        json_t *results;
        int code; /* of the first failure */
};

/* One line for a person, one member of the array for a script. */
static void tell(struct application *application, const struct declared *declared, const char *what,
                 const char *line)
{
        if (application->arguments->is_json)
                json_array_append_new(application->results,
                                      json_pack("{ss ss}", "name", declared->name, "result", what));
        else
                puts(line);
}

static void fail(struct application *application, int code)
{
        if (application->code == 0)
                application->code = code;
}

static void create(struct application *application, const struct declared *declared)
{
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        char size[SIZE_TEXT_MAX], line[256];

        options.name = declared->name;
        options.device = declared->device;
        options.frame_buffer = declared->frame_buffer;
        options.share = declared->share;
        options.has_owner = declared->has_owner;
        options.owner = declared->owner;
        if (vgpu_instance_create(application->client, &options, &instance) < 0) {
                fail(application, say_error(application->arguments, application->client));
                return;
        }
        snprintf(line, sizeof(line), "created %s: %s on GPU %u", instance->name,
                 size_format(size, instance->frame_buffer), instance->device);
        tell(application, declared, "created", line);
}

static void say_differs(struct application *application, const struct declared *declared,
                        const char *what)
{
        fail(application, say_failure(application->arguments, EXIT_CODE_STATE, "Differs",
                                      "it cannot change; to make it anew: vgpu rm it, then apply",
                                      "vGPU %s %s, which %s:%u says", declared->name, what,
                                      declared->file, declared->line));
}

/* What can never change. Returns whether it is as declared. */
static bool check_fixed(struct application *application, const struct declared *declared,
                        const struct vgpu_instance *instance)
{
        uid_t owner = declared->has_owner ? declared->owner : geteuid();
        char has[SIZE_TEXT_MAX], wanted[SIZE_TEXT_MAX], what[128];

        if (instance->frame_buffer != declared->frame_buffer) {
                snprintf(what, sizeof(what), "has %s and not the %s",
                         size_format(has, instance->frame_buffer),
                         size_format(wanted, declared->frame_buffer));
                say_differs(application, declared, what);
                return false;
        }
        if (instance->owner != owner) { /* who made one of that name first gets nothing of it */
                snprintf(what, sizeof(what), "belongs to user %u and not to user %u",
                         instance->owner, owner);
                say_differs(application, declared, what);
                return false;
        }
        return true;
}

static void compare(struct application *application, const struct declared *declared,
                    const struct vgpu_instance *instance)
{
        char line[256];

        if (!check_fixed(application, declared, instance))
                return;
        if (!declared->has_share || instance->share == declared->share) {
                snprintf(line, sizeof(line), "%s is there", declared->name);
                tell(application, declared, "unchanged", line);
                return;
        }
        if (vgpu_time_sharing_set_share(application->client, declared->name, declared->share) < 0) {
                fail(application, say_error(application->arguments, application->client));
                return;
        }
        snprintf(line, sizeof(line), "changed %s: its share is %u and was %u", declared->name,
                 declared->share, instance->share);
        tell(application, declared, "changed", line);
}

static int apply(struct application *application, const struct declared_list *list)
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *all = NULL;

        if (list->first && vgpu_instance_lookup_all(application->client, &all) < 0)
                return say_error(application->arguments, application->client);
        for (const struct declared *declared = list->first; declared; declared = declared->next) {
                const struct vgpu_instance *instance = NULL;

                for (size_t i = 0; i < all->n_instances && !instance; i++)
                        if (strcmp(all->instances[i]->name, declared->name) == 0)
                                instance = all->instances[i];
                if (instance)
                        compare(application, declared, instance);
                else
                        create(application, declared);
        }
        return application->code;
}

/* All files are read before anything is made: one that is wrong makes nothing. */
static int read_all(struct declared_list *list, const struct arguments *arguments)
{
        int code = 0;

        if (arguments->n_words == 0 && access(DECLARED_FOLDER, F_OK) == 0)
                return declared_list_read(list, DECLARED_FOLDER);
        for (size_t i = 0; i < arguments->n_words; i++) {
                int r = declared_list_read(list, arguments->words[i]);

                code = code != 0 ? code : r;
        }
        return code;
}

static int run_apply(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(declared_list_deinit) struct declared_list list;
        struct application application = { .arguments = arguments, .client = client };
        int code;

        declared_list_init(&list, arguments);
        code = read_all(&list, arguments);
        if (code != 0)
                return code;
        if (!list.first && !arguments->is_json)
                printf("no vGPU is declared%s\n",
                       arguments->n_words == 0 ? " in " DECLARED_FOLDER : "");
        application.results = json_array();
        code = apply(&application, &list);
        if (arguments->is_json) {
                int r = document_print(arguments, json_pack("{sO}", "vgpus", application.results));

                code = code != 0 ? code : r;
        }
        json_decref(application.results);
        return code;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_apply = {
        .name = "apply",
        .usage = "[FILE]...",
        .summary = "create the vGPUs that files declare",
        .description =
                "Creates each declared vGPU that does not exist. A file, or each NAME.conf in a\n"
                "folder, has one section for each vGPU, with its fb, device, share and owner:\n"
                "\n"
                "  [train]\n"
                "  fb = 40G\n"
                "  device = 0\n"
                "  share = 25\n"
                "  owner = alice\n"
                "\n"
                "If a vGPU exists, the command sets its share, and reports a quota or an owner that\n"
                "differs, because neither can change. The device is where a vGPU is created; it may\n"
                "have moved since. The command never removes a vGPU.\n"
                "\n"
                "Without FILE, the command reads /etc/openvgpu/vgpu.d. The unit of vgpud runs it so\n"
                "at each start.\n",
        .examples = "sudo vgpu apply\n",
        .options = options,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "file",
        .run = run_apply,
};
