/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata in files. Each file begins with a line that says whether it is of a vGPU or of a device,
 * because the bytes themselves do not.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <openvgpu/device.h>
#include <openvgpu/metadata.h>

#include "cli/document.h"
#include "cli/facts.h"
#include "cli/host.h"
#include "cli/say.h"

#define FILE_MAX ((size_t)1 << 20)

static const char *const headers[] = {
        [VGPU_METADATA_INSTANCE] = "openvgpu-metadata 1 vgpu\n",
        [VGPU_METADATA_DEVICE] = "openvgpu-metadata 1 device\n",
};

static int lookup(const struct arguments *arguments, struct vgpu_client *client,
                  struct vgpu_host *host, struct vgpu_metadata **ret_metadata)
{
        const char *word = arguments_get(arguments, "device");
        uint32_t number;
        int code;

        if (word && arguments->n_words > 1)
                return say_usage(arguments, "", "either a vGPU or a --device, not both");
        if (!word && arguments->n_words != 2)
                return say_usage(arguments, "", "the name of the vGPU, or --device, is missing");
        if (word) {
                if (vgpu_device_find(host, word, &number) < 0 ||
                    vgpu_metadata_lookup_device(host, number, ret_metadata) < 0)
                        return host_say_error(arguments, host);
                return 0;
        }
        code = host_find_instance(arguments, client, host, arguments->words[1], &number, NULL);
        if (code == 0 && vgpu_metadata_lookup_instance(host, number, ret_metadata) < 0)
                code = host_say_error(arguments, host);
        return code;
}

static int write_to(const struct arguments *arguments, FILE *file, const char *path,
                    const struct vgpu_metadata *metadata)
{
        bool is_written = fputs(headers[metadata->kind], file) >= 0 &&
                          fwrite(metadata->bytes, 1, metadata->size, file) == metadata->size &&
                          fflush(file) == 0;

        if (is_written)
                return 0;
        clearerr(file); /* of standard output it would be said again at the end */
        return say_failure(arguments, EXIT_CODE_FAILED, "Failed", "", "cannot write %s: %s", path,
                           strerrordesc_np(errno));
}

static int write_file(const struct arguments *arguments, const char *path,
                      const struct vgpu_metadata *metadata)
{
        FILE *file = fopen(path, "we");
        int code;

        if (!file)
                return say_failure(arguments, EXIT_CODE_FAILED, "Failed", "", "cannot write %s: %s",
                                   path, strerrordesc_np(errno));
        code = write_to(arguments, file, path, metadata);
        if (fclose(file) != 0 && code == 0)
                code = say_failure(arguments, EXIT_CODE_FAILED, "Failed", "", "cannot write %s: %s",
                                   path, strerrordesc_np(errno));
        return code;
}

static json_t *describe(const struct vgpu_metadata *metadata)
{
        bool is_instance = metadata->kind == VGPU_METADATA_INSTANCE;

        return json_pack("{ss sI si si ss sb ss? si si si}", "of", is_instance ? "vgpu" : "device",
                         "size", (json_int_t)metadata->size, "version", metadata->version,
                         "revision", metadata->revision, "host_driver_version",
                         metadata->host_driver_version, "can_migrate", metadata->can_migrate,
                         "guest_driver_version",
                         metadata->is_guest_known ? metadata->guest_driver_version : NULL,
                         "guest_version", metadata->guest_version, "version_minimum",
                         metadata->version_minimum, "version_maximum", metadata->version_maximum);
}

static int export(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        CLEANUP(freep) struct vgpu_metadata *metadata = NULL;
        const char *path = arguments_get(arguments, "output");
        int code;

        if (!path && arguments->is_json)
                return say_usage(arguments, "add --output FILE",
                                 "--json and the metadata cannot share standard output");
        if (!path && isatty(STDOUT_FILENO))
                return say_usage(arguments, "add --output FILE, or redirect the output",
                                 "metadata is not fit for a terminal");
        code = host_new(arguments, &host);
        if (code == 0)
                code = lookup(arguments, client, host, &metadata);
        if (code != 0)
                return code;
        if (!path)
                return write_to(arguments, stdout, "standard output", metadata);
        code = write_file(arguments, path, metadata);
        if (code == 0 && arguments->is_json)
                code = document_print(arguments, describe(metadata));
        else if (code == 0)
                printf("exported %zu bytes to %s\n", metadata->size, path);
        return code;
}

static int read_file(const struct arguments *arguments, struct vgpu_host *host, const char *path,
                     enum vgpu_metadata_kind kind, struct vgpu_metadata **ret_metadata)
{
        CLEANUP(freep) char *bytes = malloc(FILE_MAX);
        size_t header = strlen(headers[kind]), size;
        FILE *file = fopen(path, "re");

        if (!file || !bytes) {
                int error = file ? ENOMEM : errno;

                if (file)
                        fclose(file);
                return say_failure(arguments, EXIT_CODE_NO_SUCH, "Failed", "", "cannot read %s: %s",
                                   path, strerrordesc_np(error));
        }
        size = fread(bytes, 1, FILE_MAX, file);
        fclose(file);
        if (size < header || memcmp(bytes, headers[kind], header) != 0)
                return say_usage(arguments, "make it with 'vgpu nvml metadata export'",
                                 "%s is not the metadata of a %s", path,
                                 kind == VGPU_METADATA_INSTANCE ? "vGPU" : "device");
        if (vgpu_metadata_new(host, kind, bytes + header, size - header, ret_metadata) < 0)
                return say_usage(arguments, "make it with 'vgpu nvml metadata export'", "%s: %s",
                                 path, vgpu_host_get_error(host)->message);
        return 0;
}

struct bit {
        uint32_t value;
        const char *name;
};

static const struct bit power_states[] = {
        { VGPU_POWER_LIVE, "live" },
        { VGPU_POWER_SLEEP, "sleep" },
        { VGPU_POWER_HIBERNATE, "hibernate" },
        { VGPU_POWER_COLD, "cold" },
};

static const struct bit limits[] = {
        { VGPU_LIMIT_HOST_DRIVER, "host driver" },
        { VGPU_LIMIT_GUEST_DRIVER, "guest driver" },
        { VGPU_LIMIT_DEVICE, "device" },
        { VGPU_LIMIT_OTHER, "other" },
};

static void add_bits(struct facts *facts, const char *key, const char *label,
                     const struct bit *bits, uint32_t mask, const char *none)
{
        json_t *array = json_array();
        char text[64] = "";

        for (size_t i = 0; i < 4; i++) {
                if (!(mask & bits[i].value))
                        continue;
                json_array_append_new(array, json_string(bits[i].name));
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                         *text ? ", " : "", bits[i].name);
        }
        facts_add(facts, key, label, array, "%s", *text ? text : none);
}

static int check(const struct arguments *arguments)
{
        CLEANUP(freep) struct vgpu_metadata *instance = NULL, *device = NULL;
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        CLEANUP(facts_deinitp) struct facts facts;
        CLEANUP(freep) struct vgpu_compatibility *answer = NULL;
        int code;

        facts_init(&facts, arguments);
        if (arguments->n_words != 3 || arguments_get(arguments, "device") ||
            arguments_get(arguments, "output"))
                return say_usage(arguments, "", "check takes the vGPU's file and the device's");
        code = host_new(arguments, &host);
        if (code == 0)
                code = read_file(arguments, host, arguments->words[1], VGPU_METADATA_INSTANCE,
                                 &instance);
        if (code == 0)
                code = read_file(arguments, host, arguments->words[2], VGPU_METADATA_DEVICE,
                                 &device);
        if (code != 0)
                return code;
        if (vgpu_metadata_check(host, instance, device, &answer) < 0)
                return host_say_error(arguments, host);

        facts_begin(&facts, NULL, "The vGPU and the device");
        add_bits(&facts, "can_move", "it can move", power_states, answer->power_states, "never");
        add_bits(&facts, "limited_by", "limited by", limits, answer->limits, "nothing");
        code = answer->power_states & VGPU_POWER_LIVE ? 0 : EXIT_CODE_STATE;
        if (arguments->is_json && document_print(arguments, facts_take(&facts)) != 0)
                code = EXIT_CODE_FAILED;
        return code;
}

static int run_metadata(const struct arguments *arguments, struct vgpu_client *client)
{
        if (strcmp(arguments->words[0], "export") == 0)
                return export(arguments, client);
        if (strcmp(arguments->words[0], "check") == 0)
                return check(arguments);
        return say_usage(arguments, "", "'%s' is neither export nor check", arguments->words[0]);
}

static const struct option options[] = {
        { .name = "device",
          .argument = "DEVICE",
          .help = "export the metadata of a GPU instead of a vGPU" },
        { .name = "output",
          .letter = 'o',
          .argument = "FILE",
          .help = "write the metadata to this file" },
        { .name = NULL },
};

const struct command command_metadata = {
        .name = "nvml metadata",
        .usage = "export NAME|--device DEVICE [-o FILE] | check VGPU-FILE DEVICE-FILE",
        .summary = "say whether a vGPU could move to a GPU of any host",
        .description =
                "export writes the metadata of a vGPU, or of a GPU to which the vGPU may move. You\n"
                "can carry the file to any host. check compares two such files and says in which\n"
                "states the vGPU can move to the GPU: running (live), asleep, hibernated or switched\n"
                "off (cold). The free memory of the GPU does not matter. \"Limited by other\" means\n"
                "that a program in the vGPU holds managed memory, memory of another process, or\n"
                "memory that is registered for RDMA (a dma-buf).\n"
                "\n"
                "Exit status of check: 0, the vGPU can move live; 7, it cannot.\n",
        .examples = "vgpu nvml metadata export train -o train.vgpu\n"
                    "vgpu nvml metadata export --device 1 -o there.device\n"
                    "vgpu nvml metadata check train.vgpu there.device\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = 3,
        .word = "word export or check",
        .run = run_metadata,
};
