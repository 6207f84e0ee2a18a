/* SPDX-License-Identifier: Apache-2.0 */
/* What container engines are told of the vGPUs: the file that vgpud keeps with --cdi, made once more. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "cdi/specification.h"
#include "cli/document.h"
#include "cli/instance.h"
#include "cli/manager.h"
#include "cli/say.h"

static int write_or_print(const struct arguments *arguments, const json_t *specification)
{
        const char *path = arguments_get(arguments, "output");
        int r;

        if (!path) {
                r = json_dumpf(specification, stdout, JSON_INDENT(2));
                putchar('\n');
                return r < 0 ? EXIT_CODE_FAILED : 0;
        }
        r = cdi_specification_write(specification, path);
        return r < 0 ? say_failure(arguments, EXIT_CODE_FAILED, "Failed", "", "cannot write %s: %s",
                                   path, strerrordesc_np(-r))
                     : 0;
}

static bool has(const struct vgpu_manager *manager, const char *door)
{
        char path[PATHS_MAX];

        return paths_join(path, manager->run_directory, door) == 0 && access(path, F_OK) == 0;
}

static int make(const struct vgpu_manager *manager, const struct vgpu_instance_list *list,
                json_t **ret_specification)
{
        const struct cdi_host host = { .run_directory = manager->run_directory,
                                       .gate_path = manager->gate_path,
                                       .nvml_path = manager->nvml_path,
                                       .driver_path = manager->driver_path,
                                       .is_simulated = manager->is_simulated };
        CLEANUP(freep) struct cdi_vgpu *vgpus = calloc(list->n_instances + 1, sizeof(*vgpus));
        size_t n = 0;

        if (!vgpus)
                return -ENOMEM;
        if (has(manager, CDI_DOORS "/" CDI_NEW))
                vgpus[n++] = (struct cdi_vgpu){ CDI_NEW, CDI_NEW };
        for (size_t i = 0; i < list->n_instances; i++)
                vgpus[n++] =
                        (struct cdi_vgpu){ list->instances[i]->name, list->instances[i]->uuid };
        return cdi_specification_new(ret_specification, &host, vgpus, n);
}

static int run_cdi(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;
        CLEANUP(json_decrefp) json_t *specification = NULL;
        int r;

        if (vgpu_manager_lookup(client, &manager) < 0 ||
            vgpu_instance_lookup_all(client, &list) < 0)
                return say_error(arguments, client);
        if (!has(manager, CDI_DOORS)) /* nothing that a container could be given */
                return say_failure(arguments, EXIT_CODE_STATE, "WrongState",
                                   "start it with --cdi /var/run/cdi/openvgpu.json",
                                   "vgpud was not started for containers");
        r = make(manager, list, &specification);
        if (r < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "Failed", "",
                                   "the description of the vGPUs: %s", strerrordesc_np(-r));
        return write_or_print(arguments, specification);
}

static const struct option options[] = {
        { .name = "output", .argument = "FILE", .help = "write it there instead", .letter = 'o' },
        { .name = NULL },
};

const struct command command_cdi = {
        .name = "cdi",
        .usage = "[--output FILE]",
        .summary = "print what container engines need to know of the vGPUs",
        .description =
                "Prints all vGPUs as devices of the Container Device Interface, which podman,\n"
                "docker and containerd read: openvgpu.org/vgpu=NAME. A vgpud that was started with\n"
                "--cdi FILE keeps FILE like that by itself; without --cdi no container gets a\n"
                "vGPU.\n",
        .examples = "vgpu cdi --output openvgpu.json\n",
        .options = options,
        .run = run_cdi,
};
