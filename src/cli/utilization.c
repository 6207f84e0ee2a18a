/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/utilization.h>

#include "cli/host.h"
#include "cli/listing.h"

static const struct column columns[] = {
        { "DEVICE", true }, { "VGPU", false },   { "ID", true },      { "SM", true },
        { "MEMORY", true }, { "ENCODER", true }, { "DECODER", true }, { "JPEG", true },
        { "OFA", true },    { NULL, false },
};

static const struct column process_columns[] = {
        { "DEVICE", true }, { "VGPU", false },   { "ID", true },       { "SM", true },
        { "MEMORY", true }, { "ENCODER", true }, { "DECODER", true },  { "JPEG", true },
        { "OFA", true },    { "PID", true },     { "PROGRAM", false }, { NULL, false },
};

struct reading {
        bool of_processes;
        const struct vgpu_instance_list *list; /* for the names; or NULL */
        struct listing listing;
};

static void add_percent(struct listing *listing, json_t *object, const char *key, uint32_t percent)
{
        bool is_known = percent != VGPU_UNKNOWN;

        if (is_known)
                table_add(&listing->table, "%u %%", percent);
        else
                table_add(&listing->table, "-");
        json_object_set_new(object, key, is_known ? json_integer(percent) : json_null());
}

static void add_sample(struct reading *reading, uint32_t device,
                       const struct vgpu_utilization *sample)
{
        const char *name = host_get_name(reading->list, sample->instance);
        struct listing *listing = &reading->listing;
        json_t *object =
                json_pack("{si ss sI sI}", "device", device, "name", name, "id",
                          (json_int_t)sample->instance, "time_us", (json_int_t)sample->time_us);

        table_add(&listing->table, "%u", device);
        table_add(&listing->table, "%s", name);
        table_add(&listing->table, "%u", sample->instance);
        add_percent(listing, object, "sm", sample->sm);
        add_percent(listing, object, "memory", sample->memory);
        add_percent(listing, object, "encoder", sample->encoder);
        add_percent(listing, object, "decoder", sample->decoder);
        add_percent(listing, object, "jpeg", sample->jpeg);
        add_percent(listing, object, "ofa", sample->ofa);
        if (reading->of_processes) {
                table_add(&listing->table, "%u", sample->pid);
                table_add(&listing->table, "%s", sample->name);
                json_object_set_new(object, "pid", json_integer(sample->pid));
                json_object_set_new(object, "program", json_string_nocheck(sample->name));
        }
        json_array_append_new(listing->array, object);
}

static int add_device(struct vgpu_host *host, uint32_t device, void *userdata)
{
        CLEANUP(freep) struct vgpu_utilization_list *samples = NULL;
        struct reading *reading = userdata;
        int r;

        r = reading->of_processes ? vgpu_utilization_lookup_processes(host, device, 0, &samples)
                                  : vgpu_utilization_lookup_instances(host, device, 0, &samples);
        for (size_t i = 0; r == 0 && i < samples->n_samples; i++)
                add_sample(reading, device, samples->samples[i]);
        return r;
}

static int run_utilization(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        struct reading reading = { .of_processes = arguments_get(arguments, "processes") };
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        int code;

        code = host_new(arguments, &host);
        if (code != 0)
                return code;
        if (vgpu_instance_lookup_all(client, &list) == 0)
                reading.list = list;
        listing_init(&reading.listing, reading.of_processes ? process_columns : columns);
        code = host_each_device(arguments, host, add_device, &reading);
        code = listing_print(&reading.listing, arguments, "utilization", code);
        listing_deinit(&reading.listing);
        return code;
}

static const struct option options[] = {
        HOST_OPTION_DEVICE,
        { .name = "processes", .help = "show each process instead of each vGPU" },
        { .name = NULL },
};

const struct command command_utilization = {
        .name = "nvml utilization",
        .usage = "[--processes] [--device DEVICE]",
        .summary = "show once how busy vGPUs keep their GPUs",
        .description =
                "Shows once how busy each active vGPU keeps its GPU's engines and memory bandwidth,\n"
                "in percent of the whole GPU. With --processes, shows this for each process, and\n"
                "leaves out processes that do nothing.\n",
        .examples = "vgpu nvml utilization --processes\n",
        .options = options,
        .run = run_utilization,
};
