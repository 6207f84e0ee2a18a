/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <openvgpu/device.h>

#include "base/size.h"
#include "cli/document.h"
#include "cli/instance-devices.h"
#include "cli/say.h"
#include "cli/table.h"

static const struct column columns[] = {
        { "INDEX", true }, { "NAME", false }, { "MEMORY", true },  { "PROMISED", true },
        { "LEFT", true },  { "USED", true },  { "SWAPPED", true }, { "VGPUS", true },
        { "UUID", false }, { NULL, false },
};

static int print_table(const struct arguments *arguments, const struct vgpu_device_list *list)
{
        CLEANUP(table_deinitp) struct table table;

        table_init(&table, columns);
        for (size_t i = 0; i < list->n_devices; i++) {
                const struct vgpu_device *device = list->devices[i];
                char total[SIZE_TEXT_MAX], promised[SIZE_TEXT_MAX], used[SIZE_TEXT_MAX],
                        swapped[SIZE_TEXT_MAX], left[SIZE_TEXT_MAX];

                table_add(&table, "%u", device->index);
                table_add(&table, "%s", device->name);
                table_add(&table, "%s", size_format(total, device->memory_total));
                table_add(&table, "%s",
                          device->is_left_out ? "left out"
                                              : size_format(promised, device->memory_promised));
                table_add(&table, "%s", size_format(left, device->memory_left));
                table_add(&table, "%s", size_format(used, device->memory_used));
                table_add(&table, "%s", size_format(swapped, device->memory_swapped));
                table_add(&table, "%u", device->n_vgpus);
                table_add(&table, "%s", device->uuid);
        }
        if (table_print(&table) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        return 0;
}

static int run_devices(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;

        if (vgpu_device_lookup_all(client, &list) < 0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, document_from_devices(list));
        if (!arguments_get(arguments, "names"))
                return print_table(arguments, list);

        for (size_t i = 0; i < list->n_devices; i++)
                printf("%u\n", list->devices[i]->index);
        return 0;
}

static const struct option options[] = {
        { .name = "names", .help = "print only the indices, one per line, for scripts" },
        { .name = NULL },
};

const struct command command_devices = {
        .name = "devices",
        .usage = "[--names]",
        .summary = "list the GPUs and their free memory",
        .description =
                "Lists the GPUs that vgpud manages.\n"
                "\n"
                "  MEMORY    the memory of the GPU\n"
                "  PROMISED  the sum of the quotas of its vGPUs; more than MEMORY only with\n"
                "            'vgpud --overcommit'; left out: it has no vGPUs, 'vgpud --leave-out'\n"
                "  LEFT      what it can still promise to one vGPU more\n"
                "  USED      the memory that the programs in its vGPUs hold on it\n"
                "  SWAPPED   the memory of its vGPUs that are off it, in the pool or on disk\n",
        .examples = "vgpu devices\n",
        .options = options,
        .run = run_devices,
};
