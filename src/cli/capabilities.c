/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/device.h>

#include "cli/facts.h"
#include "cli/host.h"
#include "cli/listing.h"
#include "cli/say.h"

static const struct column columns[] = {
        { "OF", false },
        { "CAPABILITY", false },
        { "VALUE", true },
        { NULL, false },
};

/* Those of which the value is an amount, MB/s. */
static bool is_bandwidth(enum vgpu_device_capability capability)
{
        return capability == VGPU_DEVICE_READ_BANDWIDTH ||
               capability == VGPU_DEVICE_WRITE_BANDWIDTH;
}

static void add_value(struct listing *listing, json_t *object, const char *name,
                      struct vgpu_host *host, int r, bool is_amount, uint32_t value)
{
        char why[FACTS_WHY_MAX];

        table_add(&listing->table, "%s", name);
        if (r < 0)
                table_add(&listing->table, "(%s)", facts_why(why, host));
        else if (is_amount)
                table_add(&listing->table, "%u MB/s", value);
        else
                table_add(&listing->table, "%s", value ? "yes" : "no");
        json_object_set_new(object, name,
                            r < 0       ? json_null()
                            : is_amount ? json_integer(value)
                                        : json_boolean(value != 0));
}

static int add_device(struct vgpu_host *host, uint32_t device, void *userdata)
{
        CLEANUP(json_decrefp) json_t *object = json_object();
        struct listing *listing = userdata;
        enum vgpu_device_mode mode;
        int r;

        /* One that is no vGPU host has none of them. */
        r = vgpu_device_get_mode(host, device, &mode);
        if (r < 0 && vgpu_host_get_error(host)->kind != VGPU_ERROR_NOT_IN_DRIVER)
                return r;
        for (int i = 0; i < VGPU_DEVICE_CAPABILITY_COUNT; i++) {
                enum vgpu_device_capability capability = (enum vgpu_device_capability)i;
                uint32_t value = 0;

                r = vgpu_device_get_capability(host, device, capability, &value);
                table_add(&listing->table, "GPU %u", device);
                add_value(listing, object, vgpu_device_capability_get_name(capability), host, r,
                          is_bandwidth(capability), value);
        }
        json_array_append_new(listing->array,
                              json_pack("{si sO}", "device", device, "capabilities", object));
        return 0;
}

static void add_host(struct vgpu_host *host, struct listing *listing)
{
        CLEANUP(json_decrefp) json_t *object = json_object();

        for (int i = 0; i < VGPU_HOST_CAPABILITY_COUNT; i++) {
                enum vgpu_host_capability capability = (enum vgpu_host_capability)i;
                bool is_there = false;
                int r = vgpu_host_get_capability(host, capability, &is_there);

                table_add(&listing->table, "host");
                add_value(listing, object, vgpu_host_capability_get_name(capability), host, r,
                          false, is_there);
        }
        json_array_append_new(listing->array,
                              json_pack("{sn sO}", "device", "capabilities", object));
}

static int find_capability(const struct arguments *arguments, const char *name,
                           enum vgpu_device_capability *ret_capability)
{
        for (int i = 0; i < VGPU_DEVICE_CAPABILITY_COUNT; i++)
                if (strcmp(vgpu_device_capability_get_name((enum vgpu_device_capability)i), name) ==
                    0) {
                        *ret_capability = (enum vgpu_device_capability)i;
                        return 0;
                }
        return say_usage(arguments, "'vgpu nvml capabilities' lists them",
                         "there is no capability '%s'", name);
}

/* set NAME on|off --device DEVICE */
static int set(const struct arguments *arguments, struct vgpu_host *host)
{
        const char *word = arguments_get(arguments, "device");
        enum vgpu_device_capability capability = VGPU_DEVICE_MINI_QUARTER;
        uint32_t device;
        bool is_on = false;
        int code;

        if (strcmp(arguments->words[0], "set") != 0 || arguments->n_words != 3)
                return say_usage(arguments,
                                 "vgpu nvml capabilities set NAME on|off --device DEVICE",
                                 "'%s' is not understood here", arguments->words[0]);
        if (!word)
                return say_usage(arguments, "'vgpu devices' lists the GPUs",
                                 "--device DEVICE is missing");
        code = find_capability(arguments, arguments->words[1], &capability);
        if (code == 0)
                code = host_parse_switch(arguments, arguments->words[2], &is_on);
        if (code != 0)
                return code;
        if (vgpu_device_find(host, word, &device) < 0 ||
            vgpu_device_set_capability(host, device, capability, is_on) < 0)
                return host_say_error(arguments, host);
        return 0;
}

static int run_capabilities(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(listing_deinitp) struct listing listing;
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        const char *path;
        int code;
        (void)client;

        listing_init(&listing, columns);
        code = host_new(arguments, &host);
        if (code == 0 && arguments->n_words > 0)
                code = set(arguments, host);
        if (code == 0 && vgpu_host_get_library_path(host, &path) < 0)
                code = host_say_error(arguments, host);
        if (code != 0)
                return code;
        add_host(host, &listing);
        code = host_each_device(arguments, host, add_device, &listing);
        return listing_print(&listing, arguments, "capabilities", code);
}

static const struct option options[] = {
        HOST_OPTION_DEVICE,
        { .name = NULL },
};

const struct command command_capabilities = {
        .name = "nvml capabilities",
        .usage = "[set NAME on|off] [--device DEVICE]",
        .summary = "show what the driver and the GPUs can do with vGPUs",
        .description =
                "Shows what the driver and the GPUs can do with vGPUs. 'set' switches\n"
                "mini-quarter, media-engines or mig-timeslicing on a GPU, and needs root.\n"
                "\n"
                "A value in brackets says why the value is not known. With --json such a value\n"
                "is null, and 'device' is null for the driver's capabilities.\n",
        .examples = "vgpu nvml capabilities --device 0\n",
        .options = options,
        .n_words_max = 3,
        .word = "word set",
        .run = run_capabilities,
};
