/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/device.h>
#include <openvgpu/gpu-instance.h>
#include <openvgpu/type.h>

#include "base/size.h"
#include "cli/facts.h"
#include "cli/host.h"
#include "cli/listing.h"

static const struct column columns[] = {
        { "DEVICE", true }, { "TYPE", true },       { "NAME", false },   { "FRAME BUFFER", true },
        { "MAX", true },    { "PER VM", true },     { "PROFILE", true }, { "HEADS", true },
        { "CLASS", false }, { "CREATABLE", false }, { NULL, false },
};

struct types {
        const struct arguments *arguments;
        bool only_creatable;
        struct listing listing;
};

static bool has(const struct vgpu_number_list *list, uint32_t number)
{
        for (size_t i = 0; list && i < list->n_numbers; i++)
                if (list->numbers[i] == number)
                        return true;
        return false;
}

/* Where MIG is on, it is the GPU instances that have room or not. */
static bool is_creatable(struct vgpu_host *host, uint32_t device, uint32_t type,
                         const struct vgpu_number_list *creatable)
{
        CLEANUP(freep) struct vgpu_gpu_instance_list *parts = NULL;

        if (has(creatable, type))
                return true;
        if (vgpu_gpu_instance_lookup_all(host, device, &parts) < 0)
                return false;
        for (size_t i = 0; i < parts->n_gpu_instances; i++) {
                CLEANUP(freep) struct vgpu_number_list *types = NULL;

                if (vgpu_device_lookup_creatable_types(host, device, parts->gpu_instances[i]->id,
                                                       &types) == 0 &&
                    has(types, type))
                        return true;
        }
        return false;
}

static void add_capabilities(struct facts *facts, struct vgpu_host *host, uint32_t type)
{
        facts_begin(facts, "capabilities", NULL);
        for (int i = 0; i < VGPU_TYPE_CAPABILITY_COUNT; i++) {
                bool flag = false;
                int r = vgpu_type_get_capability(host, type, (enum vgpu_type_capability)i, &flag);

                facts_add_flag(facts, vgpu_type_capability_get_name((enum vgpu_type_capability)i),
                               NULL, host, r, flag);
        }
}

/* All that is known of it: only --json has room for that. */
static json_t *describe(const struct arguments *arguments, struct vgpu_host *host, uint32_t device,
                        uint32_t type, bool creatable)
{
        CLEANUP(facts_deinitp) struct facts facts;
        CLEANUP(freep) char *name = NULL, *class_ = NULL, *licence = NULL;
        uint32_t a = 0, b = 0;
        uint64_t bytes = 0;
        int r;

        facts_init(&facts, arguments);
        facts_add(&facts, "device", NULL, json_integer(device), "%s", "");
        facts_add(&facts, "id", NULL, json_integer(type), "%s", "");
        r = vgpu_type_get_name(host, type, &name);
        facts_add_text(&facts, "name", NULL, host, r, name);
        r = vgpu_type_get_class(host, type, &class_);
        facts_add_text(&facts, "class", NULL, host, r, class_);
        r = vgpu_type_get_licence(host, type, &licence);
        facts_add_text(&facts, "licence", NULL, host, r, licence);
        r = vgpu_type_get_frame_buffer(host, type, &bytes);
        facts_add_bytes(&facts, "frame_buffer", NULL, host, r, bytes);
        r = vgpu_type_get_max_instances(host, device, type, &a);
        facts_add_number(&facts, "max_instances", NULL, host, r, a, "");
        r = vgpu_type_get_max_instances_per_vm(host, type, &a);
        facts_add_number(&facts, "max_instances_per_vm", NULL, host, r, a, "");
        r = vgpu_type_get_max_instances_per_gpu_instance(host, type, &a);
        facts_add_number(&facts, "max_instances_per_gpu_instance", NULL, host, r, a, "");
        r = vgpu_type_get_profile_id(host, type, &a);
        facts_add_number(&facts, "profile", NULL, host, r, a, "");
        r = vgpu_type_get_heads(host, type, &a);
        facts_add_number(&facts, "heads", NULL, host, r, a, "");
        r = vgpu_type_get_resolution(host, type, 0, &a, &b);
        facts_add_number(&facts, "width", NULL, host, r, a, "");
        facts_add_number(&facts, "height", NULL, host, r, b, "");
        r = vgpu_type_get_frame_rate_limit(host, type, &a);
        facts_add_number(&facts, "frame_rate_limit", NULL, host, r, a, "");
        r = vgpu_type_get_device_id(host, type, &a, &b);
        facts_add_number(&facts, "device_id", NULL, host, r, a, "");
        facts_add_number(&facts, "subsystem_id", NULL, host, r, b, "");
        r = vgpu_type_get_bar1(host, type, &bytes);
        facts_add_bytes(&facts, "bar1", NULL, host, r, bytes);
        r = vgpu_type_get_gsp_heap(host, type, &bytes);
        facts_add_bytes(&facts, "gsp_heap", NULL, host, r, bytes);
        r = vgpu_type_get_reservation(host, type, &bytes);
        facts_add_bytes(&facts, "reservation", NULL, host, r, bytes);
        facts_add(&facts, "creatable", NULL, json_boolean(creatable), "%s", "");
        add_capabilities(&facts, host, type);
        return facts_take(&facts);
}

/* A number that may not be known. */
static void add_number(struct table *table, int r, uint32_t number)
{
        if (r < 0 || number == VGPU_UNKNOWN)
                table_add(table, "-");
        else
                table_add(table, "%u", number);
}

static void add_row(struct table *table, struct vgpu_host *host, uint32_t device, uint32_t type,
                    bool creatable)
{
        CLEANUP(freep) char *name = NULL, *class_ = NULL;
        char size[SIZE_TEXT_MAX];
        uint64_t bytes = 0;
        uint32_t number = 0;
        int r;

        table_add(table, "%u", device);
        table_add(table, "%u", type);
        table_add(table, "%s", vgpu_type_get_name(host, type, &name) < 0 ? "-" : name);
        r = vgpu_type_get_frame_buffer(host, type, &bytes);
        table_add(table, "%s", r < 0 ? "-" : size_format(size, bytes));
        r = vgpu_type_get_max_instances(host, device, type, &number);
        add_number(table, r, number);
        r = vgpu_type_get_max_instances_per_vm(host, type, &number);
        add_number(table, r, number);
        r = vgpu_type_get_profile_id(host, type, &number);
        add_number(table, r, number);
        r = vgpu_type_get_heads(host, type, &number);
        add_number(table, r, number);
        table_add(table, "%s", vgpu_type_get_class(host, type, &class_) < 0 ? "-" : class_);
        table_add(table, "%s", creatable ? "yes" : "no");
}

static int add_device(struct vgpu_host *host, uint32_t device, void *userdata)
{
        CLEANUP(freep) struct vgpu_number_list *types = NULL, *creatable = NULL;
        struct types *wanted = userdata;
        int r;

        r = vgpu_device_lookup_types(host, device, &types);
        if (r == 0)
                r = vgpu_device_lookup_creatable_types(host, device, VGPU_WHOLE_DEVICE, &creatable);
        for (size_t i = 0; r == 0 && i < types->n_numbers; i++) {
                uint32_t type = types->numbers[i];
                bool can = is_creatable(host, device, type, creatable);

                if (wanted->only_creatable && !can)
                        continue;
                if (wanted->arguments->is_json)
                        json_array_append_new(wanted->listing.array,
                                              describe(wanted->arguments, host, device, type, can));
                else
                        add_row(&wanted->listing.table, host, device, type, can);
        }
        return r;
}

static int run_types(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        struct types types = { .arguments = arguments,
                               .only_creatable = arguments_get(arguments, "creatable") };
        int code;
        (void)client;

        code = host_new(arguments, &host);
        if (code != 0)
                return code;
        listing_init(&types.listing, columns);
        code = host_each_device(arguments, host, add_device, &types);
        code = listing_print(&types.listing, arguments, "types", code);
        listing_deinit(&types.listing);
        return code;
}

static const struct option options[] = {
        HOST_OPTION_DEVICE,
        { .name = "creatable", .help = "list only the types of which a vGPU could start now" },
        { .name = NULL },
};

const struct command command_types = {
        .name = "nvml types",
        .usage = "[--device DEVICE] [--creatable]",
        .summary = "list the vGPU types of the GPUs",
        .description = "Lists the types into which GPUs can be cut, as NVML knows them.\n"
                       "\n"
                       "  FRAME BUFFER  the frame buffer of each vGPU\n"
                       "  MAX           how many vGPUs fit on the GPU\n"
                       "  PER VM        how many vGPUs one virtual machine may own\n"
                       "  PROFILE       the profile of the GPU instances (MIG) that back the type\n"
                       "  CREATABLE     whether a vGPU could start now\n"
                       "\n"
                       "--json prints everything that is known about the types.\n",
        .examples = "vgpu nvml types --device 0\n"
                    "vgpu nvml types --device 0 --creatable\n",
        .options = options,
        .run = run_types,
};
