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

struct places {
        uint32_t gpu_instance;
        struct listing listing;
};

/* Of a GPU instance, NVML tells only what is free. */
static int add_type(struct vgpu_host *host, uint32_t device, uint32_t type,
                    enum vgpu_placement_mode mode, struct places *places)
{
        bool is_whole = places->gpu_instance == VGPU_WHOLE_DEVICE;
        struct listing *listing = &places->listing;
        CLEANUP(freep) struct vgpu_placement_list *possible = NULL, *creatable = NULL;
        char possible_text[IDS_MAX], creatable_text[IDS_MAX];
        CLEANUP(freep) char *name = NULL;
        int r = 0;

        if (is_whole)
                r = vgpu_placement_lookup_possible(host, device, type, mode, &possible);
        if (r == 0)
                r = vgpu_placement_lookup_creatable(host, device, places->gpu_instance, type, mode,
                                                    &creatable);
        if (r == 0)
                r = vgpu_type_get_name(host, type, &name);
        if (r < 0)
                return r;
        table_add(&listing->table, "%u", device);
        table_add(&listing->table, "%u", type);
        table_add(&listing->table, "%s", name);
        table_add(&listing->table, "%u", creatable->slots);
        table_add(&listing->table, "%s", is_whole ? join(possible_text, possible) : "-");
        table_add(&listing->table, "%s", join(creatable_text, creatable));
        json_array_append_new(
                listing->array,
                json_pack("{si si ss si ss so so}", "device", device, "type", type, "name", name,
                          "slots", creatable->slots, "mode",
                          mode == VGPU_PLACEMENT_HETEROGENEOUS ? "heterogeneous" : "homogeneous",
                          "possible", is_whole ? make_array(possible) : json_null(), "creatable",
                          make_array(creatable)));
        return 0;
}

/* In the mode that the device is in. */
static int add_device(struct vgpu_host *host, uint32_t device, void *userdata)
{
        CLEANUP(freep) struct vgpu_number_list *types = NULL;
        struct places *places = userdata;
        bool is_heterogeneous = true;
        int r;

        if (places->gpu_instance == VGPU_WHOLE_DEVICE)
                r = vgpu_device_lookup_types(host, device, &types);
        else
                r = vgpu_device_lookup_creatable_types(host, device, places->gpu_instance, &types);
        if (r == 0)
                r = vgpu_placement_get_heterogeneous(host, device, places->gpu_instance,
                                                     &is_heterogeneous);
        for (size_t i = 0; r == 0 && i < types->n_numbers; i++)
                r = add_type(host, device, types->numbers[i],
                             is_heterogeneous ? VGPU_PLACEMENT_HETEROGENEOUS
                                              : VGPU_PLACEMENT_HOMOGENEOUS,
                             places);
        return r;
}

static int run_placements(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        struct places places;
        int code;
        (void)client;

        code = host_get_gpu_instance(arguments, &places.gpu_instance);
        if (code == 0)
                code = host_new(arguments, &host);
        if (code != 0)
                return code;
        listing_init(&places.listing, columns);
        code = host_each_device(arguments, host, add_device, &places);
        code = listing_print(&places.listing, arguments, "placements", code);
        listing_deinit(&places.listing);
        return code;
}

static const struct option options[] = {
        HOST_OPTION_DEVICE,
        HOST_OPTION_GPU_INSTANCE,
        { .name = NULL },
};

const struct command command_placements = {
        .name = "nvml placements",
        .usage = "[--device DEVICE [--gpu-instance ID]]",
        .summary = "show where in a GPU's memory vGPUs may begin",
        .description =
                "Lists the slots of the frame buffer where a vGPU of each type may begin, in the\n"
                "current mode of the GPU (see 'vgpu nvml heterogeneous').\n"
                "\n"
                "  SLOTS     how many slots a vGPU covers\n"
                "  POSSIBLE  the slots where a vGPU may begin\n"
                "  FREE NOW  the slots where a vGPU could begin now\n"
                "\n"
                "For a GPU instance (MIG), only the free slots are known.\n",
        .examples = "vgpu nvml placements --device 0\n",
        .options = options,
        .run = run_placements,
};
