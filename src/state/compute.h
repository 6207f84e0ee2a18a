/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_COMPUTE_H
#define STATE_COMPUTE_H

/*
 * How a GPU instance is cut into compute instances. This is the only place that says it: the manager
 * asks here before it makes one, NVML's library for its profiles.
 *
 * A profile is so many slices of multiprocessors; its number (NVML_COMPUTE_INSTANCE_PROFILE_*) is its id
 * too. Instances begin at multiples of the power of two that holds them. All engines are shared.
 */

#include <stdbool.h>
#include <stdint.h>

#include "state/device.h"

#define STATE_COMPUTE_PROFILES 5

/* state_compute_slices() - of a profile; 0: there is none of that number. */
static inline uint32_t state_compute_slices(uint32_t profile)
{
        static const uint32_t slices[STATE_COMPUTE_PROFILES] = { 1, 2, 3, 4, 7 };

        return profile < STATE_COMPUTE_PROFILES ? slices[profile] : 0;
}

/* state_compute_starts() - as bits, where one can begin in a GPU instance of @whole slices; 0: nowhere. */
static inline uint32_t state_compute_starts(uint32_t profile, uint32_t whole)
{
        uint32_t slices = state_compute_slices(profile), step = 1, starts = 0;

        while (step < slices)
                step *= 2;
        for (uint32_t start = 0; slices && start + slices <= whole; start += step)
                starts |= 1u << start;
        return starts;
}

/* state_compute_free_starts() - those that leave the slices @taken (bits) alone. */
static inline uint32_t state_compute_free_starts(uint32_t profile, uint32_t whole, uint32_t taken)
{
        uint32_t starts = state_compute_starts(profile, whole), free_starts = 0;
        uint32_t slices = (1u << state_compute_slices(profile)) - 1;

        for (uint32_t start = 0; starts >> start; start++)
                if (starts >> start & 1 && !(taken & slices << start))
                        free_starts |= 1u << start;
        return free_starts;
}

#endif
