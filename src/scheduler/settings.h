/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_SETTINGS_H
#define SCHEDULER_SETTINGS_H

/*
 * How the time of a device is divided: NVIDIA's policies and defaults.
 *
 *     best effort   the driver divides the time, unless a vGPU has a share: then vGPUs with work
 *                   get time in proportion to their shares, and no time is left unused
 *     equal share   all vGPUs with work get the same time
 *     fixed share   each vGPU gets its part, also when no other wants the rest
 *
 * Under the last two policies, adaptive round robin (the default) takes turns in strict order and
 * remembers overruns. Without it, the vGPU that has had least comes next.
 */

#include <stdbool.h>
#include <stdint.h>

/* Defaults; up to so many vGPUs on the device the slower ones. */
#define SCHEDULER_FEW                  8u
#define SCHEDULER_FREQUENCY_FEW        480u
#define SCHEDULER_FREQUENCY_MANY       960u
#define SCHEDULER_TIME_SLICE_FEW       2000000u
#define SCHEDULER_TIME_SLICE_MANY      1000000u
#define SCHEDULER_AVERAGING_DEFAULT    33u
#define SCHEDULER_TIME_SLICE_OF_SHARES 10000000u /* best effort with shares; NVIDIA has no such */

enum scheduler_policy {
        SCHEDULER_BEST_EFFORT = 1,
        SCHEDULER_EQUAL_SHARE,
        SCHEDULER_FIXED_SHARE,
};

/* 0 in a number means its default. */
struct scheduler_settings {
        enum scheduler_policy policy;
        bool is_adaptive;
        uint32_t frequency;        /* Hz, adaptive: a slice is 1 s / frequency */
        uint32_t averaging_factor; /* adaptive */
        uint32_t time_slice; /* ns, not adaptive; best effort: of the turns that shares need */
};

/* scheduler_settings_complete() - put defaults for 0, where @n_vgpus are on the device. */
void scheduler_settings_complete(struct scheduler_settings *settings, uint32_t n_vgpus);

/* scheduler_settings_get_slice() - of complete ones, in ns. */
uint64_t scheduler_settings_get_slice(const struct scheduler_settings *settings);

#endif
