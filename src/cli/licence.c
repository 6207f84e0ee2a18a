/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/licence.h>

#include "cli/facts.h"
#include "cli/host.h"

static const struct column columns[] = {
        { "VGPU", false },  { "ID", true },       { "DEVICE", true }, { "LICENSED", false },
        { "STATE", false }, { "EXPIRES", false }, { NULL, false },
};

static int add(struct vgpu_host *host, uint32_t device, uint32_t instance, const char *name,
               struct listing *listing)
{
        CLEANUP(freep) struct vgpu_licence *licence = NULL;
        const char *state, *expiry;
        char why[FACTS_WHY_MAX];
        bool is_licensed;
        int r;

        r = vgpu_licence_get_status(host, instance, &is_licensed);
        if (r < 0)
                return r;
        if (vgpu_licence_lookup(host, instance, &licence) < 0) {
                state = facts_why(why, host);
                expiry = "-";
        } else {
                state = vgpu_licence_state_get_name(licence->state);
                expiry = *licence->expiry_text ? licence->expiry_text
                                               : vgpu_licence_expiry_get_name(licence->expiry);
        }
        table_add(&listing->table, "%s", name);
        table_add(&listing->table, "%u", instance);
        table_add(&listing->table, "%u", device);
        table_add(&listing->table, "%s", is_licensed ? "yes" : "no");
        table_add(&listing->table, "%s", state);
        table_add(&listing->table, "%s", expiry);
        json_array_append_new(
                listing->array,
                json_pack("{ss sI si sb ss? ss? ss? sI}", "name", name, "id", (json_int_t)instance,
                          "device", device, "licensed", is_licensed, "state",
                          licence ? state : NULL, "expiry",
                          licence ? vgpu_licence_expiry_get_name(licence->expiry) : NULL, "expires",
                          licence && *licence->expiry_text ? expiry : NULL, "expires_seconds",
                          (json_int_t)(licence ? licence->expiry_seconds : 0)));
        return 0;
}

static int run_licence(const struct arguments *arguments, struct vgpu_client *client)
{
        return host_list_instances(arguments, client, columns, "licences", add);
}

static const struct option options[] = {
        HOST_OPTION_DEVICE,
        { .name = NULL },
};

const struct command command_licence = {
        .name = "nvml licence",
        .usage = "[NAME] [--device DEVICE]",
        .summary = "show the licences of the active vGPUs",
        .description = "Lists the licences of all active vGPUs, or of one vGPU.\n"
                       "\n"
                       "  STATE    licensed, or the kind of unlicensed; or why it is not known\n"
                       "  EXPIRES  the date, or permanent; or why there is no date\n",
        .examples = "vgpu nvml licence\n",
        .options = options,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run_licence,
};
