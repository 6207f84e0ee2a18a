/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <openvgpu/device.h>
#include <openvgpu/placement.h>
#include <openvgpu/type.h>

#include "cli/host.h"
#include "cli/listing.h"

#define IDS_MAX TABLE_CELL_MAX

static const struct column columns[] = {
        { "DEVICE", true },    { "TYPE", true },      { "NAME", false }, { "SLOTS", true },
        { "POSSIBLE", false }, { "FREE NOW", false }, { NULL, false },
};

static char *join(char *text, const struct vgpu_placement_list *list)
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < list->n_placements; i++) {
                int n = snprintf(text + used, IDS_MAX - used, "%s%u", i > 0 ? "," : "",
                                 list->placements[i]);

                if (used + (size_t)n >= IDS_MAX) {
                        strcpy(text + IDS_MAX - 4, "..."); /* --json has them all */
                        break;
                }
                used += (size_t)n;
        }
        return *text ? text : strcpy(text, "none");
}

static json_t *make_array(const struct vgpu_placement_list *list)
{
        json_t *array = json_array();

        for (size_t i = 0; i < list->n_placements; i++)
                json_array_append_new(array, json_integer(list->placements[i]));
        return array;
}

static int add_type(struct vgpu_host *host, uint32_t device, uint32_t type,
                    enum vgpu_placement_mode mode, struct listing *listing)
{
        CLEANUP(freep) struct vgpu_placement_list *possible = NULL, *creatable = NULL;
        char possible_text[IDS_MAX], creatable_text[IDS_MAX];
        CLEANUP(freep) char *name = NULL;
        int r;

        r = vgpu_placement_lookup_possible(host, device, type, mode, &possible);
        if (r == 0)
                r = vgpu_placement_lookup_creatable(host, device, VGPU_WHOLE_DEVICE, type, mode,
                                                    &creatable);
        if (r == 0)
                r = vgpu_type_get_name(host, type, &name);
        if (r < 0)
                return r;
        table_add(&listing->table, "%u", device);
        table_add(&listing->table, "%u", type);
        table_add(&listing->table, "%s", name);
        table_add(&listing->table, "%u", possible->slots);
        table_add(&listing->table, "%s", join(possible_text, possible));
        table_add(&listing->table, "%s", join(creatable_text, creatable));
        json_array_append_new(
                listing->array,
                json_pack("{si si ss si ss so so}", "device", device, "type", type, "name", name,
                          "slots", possible->slots, "mode",
                          mode == VGPU_PLACEMENT_HETEROGENEOUS ? "heterogeneous" : "homogeneous",
                          "possible", make_array(possible), "creatable", make_array(creatable)));
        return 0;
}

/* In the mode that the device is in. */
static int add_device(struct vgpu_host *host, uint32_t device, void *userdata)
{
        CLEANUP(freep) struct vgpu_number_list *types = NULL;
        bool is_heterogeneous = true;
        int r;

        r = vgpu_device_lookup_types(host, device, &types);
        if (r == 0)
                r = vgpu_placement_get_heterogeneous(host, device, VGPU_WHOLE_DEVICE,
                                                     &is_heterogeneous);
        for (size_t i = 0; r == 0 && i < types->n_numbers; i++)
                r = add_type(host, device, types->numbers[i],
                             is_heterogeneous ? VGPU_PLACEMENT_HETEROGENEOUS
                                              : VGPU_PLACEMENT_HOMOGENEOUS,
                             userdata);
        return r;
}

static int run(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(listing_deinitp) struct listing listing;
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        int code;
        (void)client;

        listing_init(&listing, columns);
        code = host_new(arguments, &host);
        if (code != 0)
                return code;
        code = host_each_device(arguments, host, add_device, &listing);
        return listing_print(&listing, arguments, "placements", code);
}

static const struct option options[] = {
        HOST_OPTION_DEVICE,
        { .name = NULL },
};

const struct command command_placements = {
        .name = "placements",
        .usage = "[--device DEVICE]",
        .summary = "show where in a GPU vGPUs may begin",
        .description =
                "Lists the slots of the frame buffer where a vGPU of each type may begin, in\n"
                "the mode that the GPU is in (see 'vgpu heterogeneous').\n"
                "\n"
                "  SLOTS     how many a vGPU covers\n"
                "  POSSIBLE  where it may ever begin\n"
                "  FREE NOW  where one could start now\n",
        .options = options,
        .run = run,
};
