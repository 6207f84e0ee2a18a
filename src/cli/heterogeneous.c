/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/device.h>
#include <openvgpu/placement.h>

#include "cli/host.h"
#include "cli/listing.h"

static const struct column columns[] = {
        { "DEVICE", true },
        { "NAME", false },
        { "HETEROGENEOUS", false },
        { NULL, false },
};

struct change {
        bool is_wanted, is_on;
        uint32_t gpu_instance;
        struct listing listing;
};

static int add_device(struct vgpu_host *host, uint32_t device, void *userdata)
{
        CLEANUP(freep) char *name = NULL;
        struct change *change = userdata;
        bool is_on;
        int r = 0;

        if (change->is_wanted)
                r = vgpu_placement_set_heterogeneous(host, device, change->gpu_instance,
                                                     change->is_on);
        if (r == 0)
                r = vgpu_placement_get_heterogeneous(host, device, change->gpu_instance, &is_on);
        if (r == 0)
                r = vgpu_device_get_name(host, device, &name);
        if (r < 0)
                return r;
        table_add(&change->listing.table, "%u", device);
        table_add(&change->listing.table, "%s", name);
        table_add(&change->listing.table, "%s", is_on ? "on" : "off");
        json_array_append_new(
                change->listing.array,
                json_pack("{si ss sb}", "device", device, "name", name, "heterogeneous", is_on));
        return 0;
}

static int run_heterogeneous(const struct arguments *arguments, struct vgpu_client *client)
{
        struct change change = { .is_wanted = arguments->n_words > 0 };
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        int code = host_get_gpu_instance(arguments, &change.gpu_instance);
        (void)client;

        if (code == 0 && change.is_wanted)
                code = host_parse_switch(arguments, arguments->words[0], &change.is_on);
        if (code == 0)
                code = host_new(arguments, &host);
        if (code != 0)
                return code;
        listing_init(&change.listing, columns);
        code = host_each_device(arguments, host, add_device, &change);
        code = listing_print(&change.listing, arguments, "devices", code);
        listing_deinit(&change.listing);
        return code;
}

static const struct option options[] = {
        HOST_OPTION_DEVICE,
        HOST_OPTION_GPU_INSTANCE,
        { .name = NULL },
};

const struct command command_heterogeneous = {
        .name = "nvml heterogeneous",
        .usage = "[on|off] [--device DEVICE [--gpu-instance ID]]",
        .summary = "show or switch whether vGPU sizes mix on a GPU",
        .description =
                "Shows whether vGPUs of different sizes may share a GPU. on and off switch this\n"
                "for one GPU, for all GPUs, or for one GPU instance (MIG). Switching needs root,\n"
                "and no vGPU may be on the GPU. The setting lasts until the driver is loaded again.\n",
        .examples = "vgpu nvml heterogeneous\n"
                    "sudo vgpu nvml heterogeneous on --device 1\n",
        .options = options,
        .n_words_max = 1,
        .word = "mode",
        .run = run_heterogeneous,
};
