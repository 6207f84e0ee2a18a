/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "base/size.h"
#include "base/text.h"
#include "cli/document.h"
#include "cli/manager.h"
#include "cli/say.h"

__attribute__((format(printf, 2, 3))) static void print_line(const char *name, const char *format,
                                                             ...)
{
        char text[1024], clean[1024];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        printf("%-14s %s\n", name, text_clean(clean, sizeof(clean), text));
}

static void print_pool(const struct vgpu_pool *pool)
{
        char used[SIZE_TEXT_MAX], limit[SIZE_TEXT_MAX], ready[SIZE_TEXT_MAX], slab[SIZE_TEXT_MAX],
                spare[SIZE_TEXT_MAX], saved[SIZE_TEXT_MAX], spilled[SIZE_TEXT_MAX],
                reserved[SIZE_TEXT_MAX];

        print_line("pool", "%s of %s used by vGPUs that are suspended, leaving or coming back",
                   size_format(used, pool->used), size_format(limit, pool->limit));
        print_line("", "%s pinned and ready, in slabs of %s", size_format(ready, pool->ready),
                   size_format(slab, pool->slab_size));
        if (pool->saved > 0)
                print_line("", "%s more without blocks that are kept once",
                           size_format(saved, pool->saved));
        if (pool->spare > 0)
                print_line("", "%s kept of resumed vGPUs while nobody needs the room",
                           size_format(spare, pool->spare));
        if (pool->spill_limit > 0)
                print_line("", "%s more of suspended vGPUs on disk, of %s",
                           size_format(spilled, pool->spilled),
                           size_format(limit, pool->spill_limit));
        else if (pool->spilled > 0)
                print_line("", "%s more of suspended vGPUs on disk",
                           size_format(spilled, pool->spilled));
        if (pool->reserved > 0)
                print_line("", "%s of the disk held for vGPUs of overcommitted GPUs",
                           size_format(reserved, pool->reserved));
        if (pool->spill_failure && pool->spill_failure[0])
                print_line("", "the disk fails, nothing more is promised on it: %s",
                           pool->spill_failure);
}

/* As soon as the log of vgpud warns of it. */
static void print_descriptors(const struct vgpu_manager *manager)
{
        uint64_t used = manager->descriptors_used, limit = manager->descriptors_limit;

        if (limit == 0)
                return;
        print_line("descriptors", "%llu of %llu used by vGPUs, processes and connections",
                   (unsigned long long)used, (unsigned long long)limit);
        if (used > limit / 4 * 3)
                print_line(
                        "",
                        "the limit is near: end some of them, or run vgpud with a higher limit (ulimit -Hn, LimitNOFILE=)");
}

static int run_info(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;

        if (vgpu_manager_lookup(client, &manager) < 0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, document_from_manager(manager));

        print_line("vgpu", "%s", vgpu_get_version());
        print_line("vgpud", "%s%s", manager->version,
                   manager->is_simulated ? ", with simulated GPUs" : "");
        if (manager->scenario[0])
                print_line("scenario", "%s", manager->scenario);
        print_line("CUDA driver", "%u.%u, %s", manager->cuda_driver_version / 1000,
                   manager->cuda_driver_version % 1000 / 10, manager->driver_path);
        print_line("gate", "%s", manager->gate_path);
        print_line("NVML", "%s", manager->nvml_path);
        print_line("run directory", "%s", manager->run_directory);
        print_pool(manager->pool);
        print_descriptors(manager);
        return 0;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_info = {
        .name = "info",
        .usage = "",
        .summary = "show the manager, the driver and the pool",
        .description =
                "Shows facts about vgpud, the driver and the pool, which is the host memory for\n"
                "suspended vGPUs. Warns when few descriptors are left for vGPUs and processes.\n",
        .examples = "vgpu info\n",
        .options = options,
        .run = run_info,
};
