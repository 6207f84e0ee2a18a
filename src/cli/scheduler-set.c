/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/duration.h"
#include "cli/say.h"
#include "cli/scheduler.h"

/* A switch takes about a millisecond of the manager's and the device's time. */
#define SHORT_SLICE_NS 4000000

#define SLICE_MIN_NS 1000000
#define SLICE_MAX_NS 30000000

static const struct arguments_range frequency_range = {
        .unit = "Hz", .min = 63, .max = 960, .example = "turns a second: --frequency 200"
};
static const struct arguments_range factor_range = {
        .unit = "", .min = 1, .max = 60, .example = "turns: --averaging-factor 33"
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

static int get_slice(const struct arguments *arguments, uint32_t *ret_ns)
{
        char given[DURATION_TEXT_MAX];
        double seconds = 0;
        int r = arguments_get_seconds(arguments, "timeslice", &seconds);

        if (r != 0 || seconds == 0)
                return r;
        if (seconds * 1e9 < SLICE_MIN_NS || seconds * 1e9 > SLICE_MAX_NS)
                return say_usage(arguments, "for example --timeslice 5ms",
                                 "--timeslice must be 1ms to 30ms, not %s",
                                 duration_format(given, seconds));
        *ret_ns = (uint32_t)(seconds * 1e9 + 0.5);
        return 0;
}

/* A time slice goes with adaptive round robin as a frequency, unless that cannot be so low or high. */
static int set_slice(const struct arguments *arguments, struct vgpu_time_sharing_settings *settings)
{
        uint32_t slice = 0;
        int r = get_slice(arguments, &slice);

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

/* Only of a slice that was asked for: the default is what NVIDIA's scheduler has. */
static bool is_slice_short(const struct arguments *arguments, const struct vgpu_time_sharing *turns)
{
        return (arguments_get(arguments, "timeslice") || arguments_get(arguments, "frequency")) &&
               turns->policy != VGPU_SCHEDULER_BEST_EFFORT && turns->timeslice_ns < SHORT_SLICE_NS;
}

static int set_device(const struct arguments *arguments, struct vgpu_client *client,
                      const char *device, json_t *documents, void *userdata)
{
        const struct vgpu_time_sharing_settings *settings = userdata;
        CLEANUP(vgpu_time_sharing_freep) struct vgpu_time_sharing *turns = NULL;

        if (vgpu_time_sharing_set(client, device, settings) < 0 ||
            vgpu_time_sharing_lookup(client, device, &turns) < 0)
                return say_error(arguments, client);
        if (documents)
                return scheduler_add(arguments, documents, turns);
        printf("GPU %u: %s, time slice %.2f ms\n", turns->device,
               arguments_get(arguments, "policy"), (double)turns->timeslice_ns / 1e6);
        if (is_slice_short(arguments, turns))
                printf("a switch takes about 1 ms: --timeslice 5ms and more lose less\n");
        return 0;
}

static int run_scheduler_set(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_time_sharing_settings settings = VGPU_TIME_SHARING_SETTINGS_INIT;
        int r = get_settings(arguments, &settings);

        return r != 0 ? r : scheduler_each_device(arguments, client, set_device, &settings);
}

static const struct option options[] = {
        { .name = "device",
          .argument = "DEVICE",
          .help = "index, UUID or beginning of a UUID (default: all GPUs)" },
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
                "Sets the policy of a GPU, or of all GPUs, while no program runs in its vGPUs. The\n"
                "policy lasts until the driver is loaded again, as with NVIDIA's driver. A GPU that\n"
                "refuses stops none of the others.\n"
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
