/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/say.h"

static int run_nvml(const struct arguments *arguments, struct vgpu_client *client)
{
        const char *similar;
        char hint[64];

        (void)client;
        if (arguments->n_words > 0) {
                similar = command_find_similar(arguments->words[0]);
                snprintf(hint, sizeof(hint),
                         similar ? "did you mean 'vgpu %s'?" : "see 'vgpu help nvml'", similar);
                return say_usage(arguments, hint, "unknown query '%s'", arguments->words[0]);
        }
        return say_usage(arguments, "'vgpu help nvml' lists the queries", "which query?");
}

static const struct option options[] = { { .name = NULL } };

const struct command command_nvml = {
        .name = "nvml",
        .usage = "QUERY [ARGUMENT]...",
        .summary = "ask NVML about types, licences, placements, ... of vGPUs",
        .description =
                "Asks NVML, the management library of NVIDIA's driver, and not vgpud. The queries work\n"
                "as well on a host with NVIDIA's own vGPU manager, where a vGPU is named by its UUID\n"
                "or its NVML id. 'vgpu types' and so on, without 'nvml', still work in this release.\n",
        .examples = "vgpu nvml types\n"
                    "vgpu help nvml types\n",
        .options = options,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "query",
        .run = run_nvml,
};
