/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/document.h"
#include "cli/instance.h"
#include "cli/say.h"

static int get_percent(const struct arguments *arguments, uint32_t *percent)
{
        const char *text = arguments->words[1];
        unsigned long number;
        char *end;

        if (strcmp(text, "none") == 0) {
                *percent = 0;
                return 0;
        }
        number = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || (*end && strcmp(end, "%") != 0) || number < 1 ||
            number > 100)
                return say_usage(arguments, "1 to 100, or 'none'", "'%s' is no share", text);
        *percent = (uint32_t)number;
        return 0;
}

/* A share is of the time that others on the same GPU want as well. */
static void warn_if_alone(const struct vgpu_instance *instance, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        size_t n = 0, n_elsewhere = 0;

        if (vgpu_instance_lookup_all(client, &list) < 0)
                return;
        for (size_t i = 0; i < list->n_instances; i++) {
                n += list->instances[i]->device == instance->device;
                n_elsewhere += list->instances[i]->device != instance->device;
        }
        if (n > 1)
                return;
        fprintf(stderr,
                "vgpu: share: no other vGPU is on GPU %u: the share changes nothing there\n",
                instance->device);
        if (n_elsewhere > 0)
                fprintf(stderr,
                        "hint: to share a GPU, create vGPUs on the same GPU: vgpu create NAME --fb SIZE --device %u\n",
                        instance->device);
}

static int run_share(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        uint32_t percent = 0;
        int r = get_percent(arguments, &percent);

        if (r != 0)
                return r;
        if (vgpu_time_sharing_set_share(client, arguments->words[0], percent) < 0 ||
            vgpu_instance_lookup(client, arguments->words[0], &instance) < 0)
                return say_error(arguments, client);
        if (percent && !arguments->is_json)
                warn_if_alone(instance, client);
        if (arguments->is_json)
                return document_print(arguments, document_from_instance(instance));
        if (percent)
                printf("%s: %u %% of the time of GPU %u\n", instance->name, percent,
                       instance->device);
        else
                printf("%s: no share\n", instance->name);
        return 0;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_share = {
        .name = "share",
        .usage = "NAME PERCENT",
        .summary = "give a vGPU a share of its GPU's time",
        .description =
                "Gives a vGPU a share of its GPU's time, from 1 to 100, or 'none'. Only root, the user\n"
                "of vgpud and its stewards may do this. The share applies at once, also while programs\n"
                "run, under the policies best-effort and fixed-share. 'vgpu scheduler show' says what\n"
                "each vGPU received.\n",
        .examples = "sudo vgpu share train 75\n"
                    "sudo vgpu share train none\n",
        .options = options,
        .n_words_min = 2,
        .n_words_max = 2,
        .word = "name or the percentage",
        .run = run_share,
};
