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
#include "cli/duration.h"
#include "cli/instance-devices.h"
#include "cli/instance.h"
#include "cli/say.h"

struct application {
        const struct arguments *arguments;
        struct vgpu_client *client;
        json_t *results;
        bool is_dry; /* only say what would be done */
        int code;    /* of the first failure */
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

/* There are many: of which is it said? */
static void refuse(struct application *application, const struct declared *declared)
{
        struct vgpu_error error = *vgpu_client_get_error(application->client);
        char message[512];

        snprintf(message, sizeof(message), "vGPU %s (%s:%u): %s", declared->name, declared->file,
                 declared->line, error.message);
        error.message = message;
        fail(application, say_library_error(application->arguments, &error));
}

static void create(struct application *application, const struct declared *declared)
{
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        char size[SIZE_TEXT_MAX], devices[INSTANCE_DEVICES_MAX], line[256];

        options.name = declared->name;
        options.device = declared->device;
        options.n_devices = declared->n_devices;
        options.frame_buffer = declared->frame_buffer;
        options.share = declared->share;
        options.has_owner = declared->has_owner;
        options.owner = declared->owner;
        options.idle_after = declared->idle_after;
        options.idle_keeps_context = declared->idle_keeps_context;
        options.swap_class = declared->swap_class;
        options.pool_group = declared->pool_group;
        options.is_dry = application->is_dry;
        if (vgpu_instance_create(application->client, &options, &instance) < 0) {
                refuse(application, declared);
                return;
        }
        if (application->is_dry) {
                snprintf(line, sizeof(line), "would create %s: %s%s%s", declared->name,
                         size_format(size, declared->frame_buffer),
                         declared->device ? " on GPU " : "",
                         declared->device ? declared->device : "");
                tell(application, declared, "created", line);
                return;
        }
        snprintf(line, sizeof(line), "created %s: %s on %s %s", instance->name,
                 size_format(size, instance->frame_buffer),
                 instance->n_parts > 1 ? "each of GPUs" : "GPU",
                 instance_devices_format(devices, instance));
        tell(application, declared, "created", line);
}

/* Who made one of that name first gets nothing of it. Returns whether it is as declared. */
static bool check_owner(struct application *application, const struct declared *declared,
                        const struct vgpu_instance *instance)
{
        uid_t owner = declared->has_owner ? declared->owner : geteuid();

        if (instance->owner == owner)
                return true;
        fail(application,
             say_failure(application->arguments, EXIT_CODE_STATE, "Differs",
                         "it cannot change; to make it anew: vgpu rm it, then apply",
                         "vGPU %s belongs to user %u and not to user %u, which %s:%u says",
                         declared->name, instance->owner, owner, declared->file, declared->line));
        return false;
}

/* It says whose its memory in the pool is. */
static bool check_pool_group(struct application *application, const struct declared *declared,
                             const struct vgpu_instance *instance)
{
        if (!declared->pool_group || strcmp(instance->pool_group, declared->pool_group) == 0)
                return true;
        fail(application,
             say_failure(application->arguments, EXIT_CODE_STATE, "Differs",
                         "it cannot change; to make it anew: vgpu rm it, then apply",
                         "vGPU %s has the pool group '%s' and not '%s', which %s:%u says",
                         declared->name, instance->pool_group, declared->pool_group, declared->file,
                         declared->line));
        return false;
}

/* Appends ", its @what is @is and was @was" to @line. */
static void add_change(const struct application *application, char *line, size_t size,
                       const char *what, const char *is, const char *was)
{
        size_t n = strlen(line);

        snprintf(line + n, size - n, "%s its %s %s %s and %s %s", n > 0 ? "," : "", what,
                 application->is_dry ? "would be" : "is", is, application->is_dry ? "is" : "was",
                 was);
}

static int set_quota(struct application *application, const struct declared *declared,
                     const struct vgpu_instance *instance, char *changes, size_t size)
{
        char is[SIZE_TEXT_MAX], was[SIZE_TEXT_MAX];

        if (instance->frame_buffer == declared->frame_buffer)
                return 0;
        if (!application->is_dry && vgpu_instance_resize(application->client, declared->name,
                                                         declared->frame_buffer, NULL) < 0)
                return -1;
        add_change(application, changes, size, "quota", size_format(is, declared->frame_buffer),
                   size_format(was, instance->frame_buffer));
        return 0;
}

static int set_share(struct application *application, const struct declared *declared,
                     const struct vgpu_instance *instance, char *changes, size_t size)
{
        char is[16], was[16];

        if (!declared->has_share || instance->share == declared->share)
                return 0;
        if (!application->is_dry &&
            vgpu_time_sharing_set_share(application->client, declared->name, declared->share) < 0)
                return -1;
        snprintf(is, sizeof(is), "%u", declared->share);
        snprintf(was, sizeof(was), "%u", instance->share);
        add_change(application, changes, size, "share", is, was);
        return 0;
}

static void format_idle(char *text, size_t size, double after, bool keeps_context)
{
        char time[DURATION_TEXT_MAX];

        snprintf(text, size, "%s (%s)", after > 0 ? duration_format(time, after) : "never",
                 duration_get_how(keeps_context));
}

static int set_idle(struct application *application, const struct declared *declared,
                    const struct vgpu_instance *instance, char *changes, size_t size)
{
        bool keeps_context = declared->idle_keeps_context;
        char is[64], was[64];

        if (!declared->has_idle || (declared->idle_after == instance->idle_after &&
                                    keeps_context == instance->idle_keeps_context))
                return 0;
        if (!application->is_dry &&
            vgpu_instance_set_idle(application->client, declared->name, declared->idle_after,
                                   keeps_context, NULL) < 0)
                return -1;
        format_idle(is, sizeof(is), declared->idle_after, keeps_context);
        format_idle(was, sizeof(was), instance->idle_after, instance->idle_keeps_context);
        add_change(application, changes, size, "idle time", is, was);
        return 0;
}

static int set_class(struct application *application, const struct declared *declared,
                     const struct vgpu_instance *instance, char *changes, size_t size)
{
        if (!declared->swap_class || strcmp(declared->swap_class, instance->swap_class) == 0)
                return 0;
        if (!application->is_dry && vgpu_instance_set_class(application->client, declared->name,
                                                            declared->swap_class, NULL) < 0)
                return -1;
        add_change(application, changes, size, "class", declared->swap_class, instance->swap_class);
        return 0;
}

static void compare(struct application *application, const struct declared *declared,
                    const struct vgpu_instance *instance)
{
        static int (*const set[])(struct application *, const struct declared *,
                                  const struct vgpu_instance *, char *,
                                  size_t) = { set_quota, set_share, set_idle, set_class };
        char changes[384] = "", line[512];
        int r = 0;

        if (!check_owner(application, declared, instance) ||
            !check_pool_group(application, declared, instance))
                return;
        for (size_t i = 0; r == 0 && i < sizeof(set) / sizeof(set[0]); i++)
                r = set[i](application, declared, instance, changes, sizeof(changes));
        if (r < 0) {
                refuse(application, declared);
                return;
        }
        snprintf(line, sizeof(line),
                 !changes[0]           ? "%s is there"
                 : application->is_dry ? "%s:%s"
                                       : "changed %s:%s",
                 declared->name, changes);
        tell(application, declared, changes[0] ? "changed" : "unchanged", line);
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
        struct application application = { .arguments = arguments,
                                           .client = client,
                                           .is_dry = arguments_get(arguments, "dry-run") };
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

static const struct option options[] = {
        { .name = "dry-run", .help = "say what would be created and changed, and do nothing" },
        { .name = NULL },
};

const struct command command_apply = {
        .name = "apply",
        .usage = "[FILE]... [--dry-run]",
        .summary = "create the vGPUs that files declare",
        .description =
                "Creates each declared vGPU that does not exist. A file, or each NAME.conf in a\n"
                "folder, has one section for each vGPU, with its fb (or memory), device, devices,\n"
                "share, owner, idle-after, idle, class and pool-group:\n"
                "\n"
                "  [train]\n"
                "  fb = 40G\n"
                "  device = 0\n"
                "  share = 25\n"
                "  owner = alice\n"
                "  idle-after = 10m\n"
                "\n"
                "If a vGPU exists, the command sets all that the file says of it, and reports an\n"
                "owner that differs, because that cannot change. The device is where a vGPU is created;\n"
                "it may have moved since. The command never removes a vGPU.\n"
                "\n"
                "Without FILE, the command reads /etc/openvgpu/vgpu.d. The unit of vgpud runs it so\n"
                "at each start.\n",
        .examples = "sudo vgpu apply --dry-run\n"
                    "sudo vgpu apply\n",
        .options = options,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "file",
        .run = run_apply,
};
