/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/document.h"
#include "cli/say.h"
#include "cli/scheduler.h"

/* A switch takes about a millisecond of the manager's and the device's time. */
#define SHORT_SLICE_NS 4000000

static const struct arguments_range time_slice_range = {
        .unit = "ms", .min = 1, .max = 30, .scale = 1e6, .example = "milliseconds: --timeslice 5ms"
};
static const struct arguments_range frequency_range = {
        .unit = "", .min = 63, .max = 960, .scale = 1, .example = "turns a second: --frequency 200"
};
static const struct arguments_range factor_range = {
        .unit = "", .min = 1, .max = 60, .scale = 1, .example = "turns: --averaging-factor 33"
};

static int get_policy(const struct arguments *arguments, enum vgpu_scheduler_policy *policy)
{
        const char *text = arguments_get(arguments, "policy");

        if (!text)
                return say_usage(arguments, "--policy best-effort, equal-share or fixed-share",
                                 "--policy is missing");
        for (int i = VGPU_SCHEDULER_BEST_EFFORT; i <= VGPU_SCHEDULER_FIXED_SHARE; i++)
                if (strcmp(text, vgpu_scheduler_policy_get_name((enum vgpu_scheduler_policy)i)) ==
                    0) {
                        *policy = (enum vgpu_scheduler_policy)i;
                        return 0;
                }
        return say_usage(arguments, "best-effort, equal-share or fixed-share",
                         "there is no policy '%s'", text);
}

/* A time slice goes with adaptive round robin as a frequency, unless that cannot be so low or high. */
static int set_slice(const struct arguments *arguments, struct vgpu_time_sharing_settings *settings)
{
        uint32_t slice = 0;
        int r = arguments_get_number(arguments, "timeslice", &time_slice_range, &slice);

        if (r != 0 || slice == 0)
                return r;
        if (settings->frequency_hz)
                return say_usage(arguments, "the time slice is one second divided by the frequency",
                                 "--timeslice and --frequency say the same");
        if (settings->policy == VGPU_SCHEDULER_BEST_EFFORT || arguments_get(arguments, "no-arr") ||
            1e9 / slice < frequency_range.min || 1e9 / slice > frequency_range.max) {
                settings->timeslice_ns = slice;
                if (settings->policy != VGPU_SCHEDULER_BEST_EFFORT)
                        settings->arr = VGPU_SCHEDULER_ARR_DISABLED;
        } else {
                settings->frequency_hz = (uint32_t)(1e9 / slice + 0.5);
        }
        return 0;
}

static int get_settings(const struct arguments *arguments,
                        struct vgpu_time_sharing_settings *settings)
{
        int r = get_policy(arguments, &settings->policy);

        if (r == 0)
                r = arguments_get_number(arguments, "averaging-factor", &factor_range,
                                         &settings->average_factor);
        if (r == 0)
                r = arguments_get_number(arguments, "frequency", &frequency_range,
                                         &settings->frequency_hz);
        if (r == 0 && arguments_get(arguments, "no-arr"))
                settings->arr = VGPU_SCHEDULER_ARR_DISABLED;
        return r ? r : set_slice(arguments, settings);
}

static int run_scheduler_set(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_time_sharing_settings settings = VGPU_TIME_SHARING_SETTINGS_INIT;
        CLEANUP(vgpu_time_sharing_freep) struct vgpu_time_sharing *turns = NULL;
        const char *device = scheduler_device(arguments);
        int r = get_settings(arguments, &settings);

        if (r != 0)
                return r;
        if (vgpu_time_sharing_set(client, device, &settings) < 0 ||
            vgpu_time_sharing_lookup(client, device, &turns) < 0)
                return say_error(arguments, client);
        if (arguments->is_json)
                return document_print(arguments, document_from_turns(turns));
        printf("GPU %u: %s, time slice %.2f ms\n", turns->device,
               arguments_get(arguments, "policy"), (double)turns->timeslice_ns / 1e6);
        if (settings.policy != VGPU_SCHEDULER_BEST_EFFORT && turns->timeslice_ns < SHORT_SLICE_NS)
                printf("a switch takes about 1 ms: --timeslice 5ms and more lose less\n");
        return 0;
}

static const struct option options[] = {
        SCHEDULER_DEVICE_OPTION,
        { .name = "policy",
          .argument = "POLICY",
          .help = "best-effort, equal-share or fixed-share" },
        { .name = "timeslice", .argument = "TIME", .help = "length of a turn: 1ms to 30ms" },
        { .name = "frequency",
          .argument = "HZ",
          .help = "length of a turn as turns per second: 63 to 960" },
        { .name = "averaging-factor",
          .argument = "TURNS",
          .help = "spread an overrun over this many turns: 1 to 60" },
        { .name = "no-arr",
          .help = "no adaptive round robin: the vGPU that has had least is next" },
        { .name = NULL },
};

const struct command command_scheduler_set = {
        .name = "scheduler set",
        .usage = "--policy POLICY [--device DEVICE] [--timeslice TIME | --frequency HZ] "
                 "[--averaging-factor TURNS] [--no-arr]",
        .summary = "set how the time of a GPU is divided",
        .description =
                "Sets the policy of a GPU while no program runs in its vGPUs. The policy lasts until\n"
                "the driver is loaded again, as with NVIDIA's driver.\n"
                "\n"
                "  best-effort  the driver divides the time; if vGPUs have shares, the vGPUs with\n"
                "               work get time in proportion to their shares, and no time is unused\n"
                "  equal-share  all vGPUs with work get the same time\n"
                "  fixed-share  each vGPU gets its share and no more: the share of --share, or its\n"
                "               part of the memory\n",
        .examples = "sudo vgpu scheduler set --policy equal-share --device 1\n",
        .options = options,
        .run = run_scheduler_set,
};
