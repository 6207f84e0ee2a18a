/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "cli/document.h"
#include "cli/facts.h"
#include "cli/host.h"
#include "cli/say.h"

#define VERSION_TEXT_MAX 32

static char *format(char *text, uint32_t version)
{
        snprintf(text, VERSION_TEXT_MAX, "%u.%u", version >> 16, version & 0xffff);
        return text;
}

static bool parse_part(const char **text, uint32_t *ret_number)
{
        char *end;
        unsigned long number;

        if (**text < '0' || **text > '9')
                return false;
        number = strtoul(*text, &end, 10);
        *text = end;
        *ret_number = (uint32_t)number;
        return number <= 0xffff;
}

/* "24.1" or "0x180001". */
static int parse(const struct arguments *arguments, const char *text, uint32_t *ret_version)
{
        uint32_t major = 0, minor = 0;
        const char *rest = text;
        char *end;

        if (strncmp(text, "0x", 2) == 0) {
                errno = 0;
                *ret_version = (uint32_t)strtoul(text + 2, &end, 16);
                if (errno == 0 && *end == '\0' && end != text + 2 && strlen(text) <= 10)
                        return 0;
        } else if (parse_part(&rest, &major) && *rest++ == '.' && parse_part(&rest, &minor) &&
                   *rest == '\0') {
                *ret_version = major << 16 | minor;
                return 0;
        }
        return say_usage(arguments, "write it as 24.1 or 0x180001", "'%s' is not a vGPU version",
                         text);
}

/* The library knows that it was wrong, and not what would be right. */
static int say_refused(const struct arguments *arguments, struct vgpu_host *host)
{
        const struct vgpu_error *error = vgpu_host_get_error(host);
        char minimum[VERSION_TEXT_MAX], maximum[VERSION_TEXT_MAX];
        CLEANUP(freep) struct vgpu_host_versions *versions = NULL;

        if (error->kind != VGPU_ERROR_INVALID_PARAMETER ||
            vgpu_host_lookup_versions(host, &versions) < 0)
                return host_say_error(arguments, host);
        return say_usage(arguments, "give two versions within it, the lower one first",
                         "%s to %s is not within what this host supports: %s to %s",
                         arguments->words[1], arguments->words[2],
                         format(minimum, versions->supported_minimum),
                         format(maximum, versions->supported_maximum));
}

static int set(const struct arguments *arguments, struct vgpu_host *host)
{
        uint32_t minimum = 0, maximum = 0;
        int code;

        if (strcmp(arguments->words[0], "set") != 0 || arguments->n_words != 3)
                return say_usage(arguments, "vgpu nvml version-range set MIN MAX",
                                 "'%s' is not understood here", arguments->words[0]);
        code = parse(arguments, arguments->words[1], &minimum);
        if (code == 0)
                code = parse(arguments, arguments->words[2], &maximum);
        if (code != 0)
                return code;
        return vgpu_host_set_version_range(host, minimum, maximum) < 0
                       ? say_refused(arguments, host)
                       : 0;
}

static void add(struct facts *facts, const char *key, uint32_t from, uint32_t to)
{
        char minimum[VERSION_TEXT_MAX], maximum[VERSION_TEXT_MAX];

        facts_add(facts, key, key,
                  json_pack("{ss ss}", "minimum", format(minimum, from), "maximum",
                            format(maximum, to)),
                  "%s to %s", minimum, maximum);
}

static int run_version_range(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        CLEANUP(facts_deinitp) struct facts facts;
        CLEANUP(freep) struct vgpu_host_versions *versions = NULL;
        int code;
        (void)client;

        facts_init(&facts, arguments);
        code = host_new(arguments, &host);
        if (code == 0 && arguments->n_words > 0)
                code = set(arguments, host);
        if (code != 0)
                return code;
        if (vgpu_host_lookup_versions(host, &versions) < 0)
                return host_say_error(arguments, host);
        facts_begin(&facts, NULL, "vGPU versions");
        add(&facts, "supported", versions->supported_minimum, versions->supported_maximum);
        add(&facts, "offered", versions->current_minimum, versions->current_maximum);
        return arguments->is_json ? document_print(arguments, facts_take(&facts)) : 0;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_version_range = {
        .name = "nvml version-range",
        .usage = "[set MIN MAX]",
        .summary = "show or narrow the vGPU versions for guests",
        .description =
                "Shows which vGPU versions this host supports, and which versions it offers to\n"
                "guests. 'set' makes the host offer only the versions from MIN to MAX, so that vGPUs\n"
                "can move to older hosts. This needs root and no running vGPU, and lasts until the\n"
                "driver is loaded again. A version is written as 24.1 or 0x180001.\n",
        .examples = "vgpu nvml version-range\n",
        .options = options,
        .n_words_max = 3,
        .word = "word set",
        .run = run_version_range,
};
