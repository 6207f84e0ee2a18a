/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/document.h"
#include "cli/library-path.h"
#include "cli/manager.h"
#include "cli/say.h"

/* Quoted for the shell, whatever the value. */
static void print_export(const char *name, const char *value)
{
        printf("export %s='", name);
        for (; *value; value++)
                if (*value == '\'')
                        fputs("'\\''", stdout);
                else
                        putchar(*value);
        puts("'");
}

static int run_env(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;
        char library_path[LIBRARY_PATH_MAX];

        if (vgpu_manager_lookup(client, &manager) < 0)
                return say_error(arguments, client);
        if (!library_path_has_nvml(manager->nvml_path))
                return say_failure(arguments, EXIT_CODE_FAILED, "NoLibrary", LIBRARY_PATH_NVML_HINT,
                                   "there is no NVML library of OpenVGPU in %s",
                                   manager->nvml_path);
        if (!library_path_make(library_path, manager->nvml_path))
                return say_failure(arguments, EXIT_CODE_FAILED, "Failed", "",
                                   "LD_LIBRARY_PATH is too long");
        if (arguments->is_json)
                return document_print(arguments, json_pack("{s{ss ss}}", "environment",
                                                           "LD_LIBRARY_PATH", library_path,
                                                           "OPENVGPU_RUN", manager->run_directory));

        print_export("LD_LIBRARY_PATH", library_path);
        print_export("OPENVGPU_RUN", manager->run_directory);
        return 0;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_env = {
        .name = "env",
        .usage = "",
        .summary = "print settings that make nvidia-smi and other tools show vGPUs",
        .description =
                "Prints shell commands. After\n"
                "\n"
                "  eval \"$(vgpu env)\"\n"
                "\n"
                "nvidia-smi, nvtop and all other programs that this shell starts use the NVML\n"
                "library of OpenVGPU, which shows vGPUs: try 'nvidia-smi vgpu'.\n",
        .examples = "eval \"$(vgpu env)\"\n",
        .options = options,
        .run = run_env,
};
