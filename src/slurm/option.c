/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/option.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

static struct wanted wanted;

static int parse_share(const char *text)
{
        char *end;
        unsigned long share = strtoul(text, &end, 10);

        if (*text < '0' || *text > '9' || *end || share < 1 || share > 100)
                return -EINVAL;
        wanted.share = (uint32_t)share;
        return 0;
}

static int parse_class(const char *text)
{
        static const char *const classes[] = { "batch", "interactive" };

        for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
                if (strcmp(text, classes[i]) == 0) {
                        wanted.swap_class = classes[i];
                        return 0;
                }
        return -EINVAL;
}

/* What may follow the size. */
static const struct {
        const char *name;
        int (*parse)(const char *text);
} settings[] = {
        { "share=", parse_share },
        { "class=", parse_class },
};

static int parse_setting(const char *text)
{
        for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
                size_t length = strlen(settings[i].name);

                if (strncmp(text, settings[i].name, length) == 0)
                        return settings[i].parse(text + length);
        }
        return -EINVAL;
}

/* SIZE[:share=PERCENT][:class=CLASS] */
static int parse(const char *text)
{
        char copy[128], *rest = copy, *part;
        int r;

        if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
                return -EINVAL;
        wanted.share = 0; /* of the script around it */
        wanted.swap_class = NULL;
        part = strsep(&rest, ":");
        r = size_parse(&wanted.frame_buffer, part);
        if (r == 0 && wanted.frame_buffer == 0)
                r = -EINVAL;
        while (r == 0 && (part = strsep(&rest, ":")))
                r = parse_setting(part);
        return r;
}

/* What srun gets from the script around it: Slurm hands on the very text. */
static bool is_from_environment(const char *argument)
{
        return argument == getenv("SLURM_SPANK__SLURM_SPANK_OPTION_openvgpu_vgpu");
}

static int on_vgpu(int value, const char *argument, int is_remote)
{
        (void)value;
        if (!argument || parse(argument) < 0) {
                slurm_error("--vgpu: '%s' is not a size, as 20G, with what may follow: a share, as "
                            "20G:share=25, a class, as 20G:class=interactive (or batch)",
                            argument ? argument : "");
                return -1;
        }
        wanted.is_given = true;
        wanted.is_own = !is_remote && !is_from_environment(argument);
        return 0;
}

static int on_per_task(int value, const char *argument, int is_remote)
{
        (void)value, (void)argument, (void)is_remote;
        wanted.is_per_task = true;
        return 0;
}

/* Slurm's struct has no const. */
static char vgpu_name[] = "vgpu";
static char vgpu_argument[] = "SIZE[:share=PERCENT][:class=CLASS]";
static char vgpu_usage[] =
        "run each step in a vGPU with so much GPU memory, a share of its time, and a class";
static char per_task_name[] = "vgpu-per-task";
static char per_task_usage[] = "with --vgpu: each task has a vGPU of its own, of that size";

static struct spank_option options[] = {
        { .name = vgpu_name,
          .arginfo = vgpu_argument,
          .usage = vgpu_usage,
          .has_arg = 1,
          .cb = on_vgpu },
        { .name = per_task_name, .usage = per_task_usage, .cb = on_per_task },
};

bool option_register_all(spank_t spank)
{
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
                        return false;
        return true;
}

const struct wanted *option_get(void)
{
        return &wanted;
}
