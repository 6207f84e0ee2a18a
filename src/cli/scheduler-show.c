/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <openvgpu/device.h>

#include "cli/document.h"
#include "cli/say.h"
#include "cli/scheduler.h"
#include "cli/table.h"

DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);

static const struct column columns[] = {
        { "VGPU", false },    { "SHARE", true }, { "ENTITLED", true },
        { "RECEIVED", true }, { "NOW", false },  { NULL, false },
};

static const char *now_of(const struct vgpu_time_sharing_vgpu *vgpu)
{
        if (vgpu->error[0])
                return vgpu->error;
        if (!vgpu->is_enforced)
                return "away";
        if (!vgpu->has_work)
                return "idle";
        return vgpu->waits ? "waits" : "runs";
}

static int print_vgpus(const struct arguments *arguments, const struct vgpu_time_sharing *turns)
{
        CLEANUP(table_deinitp) struct table table;

        table_init(&table, columns);
        if (turns->n_vgpus == 0)
                return 0;
        for (size_t i = 0; i < turns->n_vgpus; i++) {
                const struct vgpu_time_sharing_vgpu *vgpu = turns->vgpus[i];

                table_add(&table, "%s", vgpu->name);
                if (vgpu->share)
                        table_add(&table, "%u %%", vgpu->share);
                else
                        table_add(&table, "-");
                table_add(&table, "%.1f %%", vgpu->entitled_percent);
                table_add(&table, "%.2f s", vgpu->received_seconds);
                table_add(&table, "%s", now_of(vgpu));
        }
        printf("\n");
        if (table_print(&table) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        return 0;
}

static void print_state(const struct vgpu_time_sharing *turns)
{
        printf("GPU %u: %s, time slice %.2f ms", turns->device,
               vgpu_scheduler_policy_get_name((enum vgpu_scheduler_policy)turns->policy),
               (double)turns->timeslice_ns / 1e6);
        if (turns->has_arr)
                printf(" (%u a second), adaptive round robin over %u turns", turns->frequency_hz,
                       turns->average_factor);
        printf("\nturns: %s, because %s; %llu so far%s\n", turns->mode, turns->reason,
               (unsigned long long)turns->n_turns,
               turns->are_taken ? ", and going on" : ", none just now");
}

static int show(const struct arguments *arguments, struct vgpu_client *client, const char *device,
                json_t *documents, void *userdata)
{
        CLEANUP(vgpu_time_sharing_freep) struct vgpu_time_sharing *turns = NULL;
        bool *is_first = userdata;

        if (vgpu_time_sharing_lookup(client, device, &turns) < 0)
                return say_error(arguments, client);
        if (documents)
                return scheduler_add(arguments, documents, turns);
        if (!*is_first)
                printf("\n");
        *is_first = false;
        print_state(turns);
        return print_vgpus(arguments, turns);
}

int scheduler_add(const struct arguments *arguments, json_t *documents,
                  const struct vgpu_time_sharing *turns)
{
        if (json_array_append_new(documents, document_from_turns(turns)) == 0)
                return 0;
        return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
}

static int act_on_all(const struct arguments *arguments, struct vgpu_client *client,
                      scheduler_act *act, json_t *documents, void *userdata)
{
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;
        int code = 0;

        if (vgpu_device_lookup_all(client, &list) < 0)
                return say_error(arguments, client);
        for (size_t i = 0; code != EXIT_CODE_NO_MANAGER && i < list->n_devices; i++) {
                struct arguments about = *arguments;
                char index[16];
                int r;

                snprintf(index, sizeof(index), "%u", list->devices[i]->index);
                about.device = list->n_devices > 1 ? index : NULL;
                r = act(&about, client, index, documents, userdata);
                code = code != 0 ? code : r;
        }
        return code;
}

/* With --json: the members of one device, here the first one, and all of them in an array. */
int scheduler_each_device(const struct arguments *arguments, struct vgpu_client *client,
                          scheduler_act *act, void *userdata)
{
        CLEANUP(json_decrefp) json_t *documents = arguments->is_json ? json_array() : NULL;
        const char *device = arguments_get(arguments, "device");
        int code = device ? act(arguments, client, device, documents, userdata)
                          : act_on_all(arguments, client, act, documents, userdata);
        json_t *document;
        int r;

        if (json_array_size(documents) == 0)
                return code;
        if (device)
                return document_print(arguments, json_incref(json_array_get(documents, 0)));
        document = json_deep_copy(json_array_get(documents, 0));
        json_object_set(document, "devices", documents);
        r = document_print(arguments, document);
        return code != 0 ? code : r;
}

static int run_scheduler_show(const struct arguments *arguments, struct vgpu_client *client)
{
        bool is_first = true;

        return scheduler_each_device(arguments, client, show, &is_first);
}

static const struct option options[] = {
        { .name = "device",
          .argument = "DEVICE",
          .help = "index, UUID or beginning of a UUID (default: all GPUs)" },
        { .name = NULL },
};

const struct command command_scheduler = {
        .name = "scheduler",
        .usage = "[show | set | log] [--device DEVICE]",
        .summary = "show or set how the time of a GPU is divided",
        .description = "'vgpu scheduler' alone means 'vgpu scheduler show'.\n",
        .examples = "vgpu scheduler show\n"
                    "vgpu scheduler log --device 0\n",
        .options = options,
        .run = run_scheduler_show,
};

const struct command command_scheduler_show = {
        .name = "scheduler show",
        .usage = "[--device DEVICE]",
        .summary = "show how the time of a GPU is divided",
        .description =
                "Shows the policy of each GPU, how turns are enforced and why, and for each vGPU:\n"
                "\n"
                "  SHARE     the share from --share or 'vgpu share'\n"
                "  ENTITLED  the percentage of time that it gets when all vGPUs have work\n"
                "  RECEIVED  GPU time by its turns, or by the meter while no turns are taken\n"
                "  NOW       it runs, waits for its turn, is idle, or is away: suspended or moving\n",
        .examples = "vgpu scheduler show --device 0\n",
        .options = options,
        .run = run_scheduler_show,
};
