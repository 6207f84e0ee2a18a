/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/settings.h"

void scheduler_settings_complete(struct scheduler_settings *settings, uint32_t n_vgpus)
{
        bool are_few = n_vgpus <= SCHEDULER_FEW;

        if (settings->averaging_factor == 0)
                settings->averaging_factor = SCHEDULER_AVERAGING_DEFAULT;
        if (settings->policy == SCHEDULER_BEST_EFFORT) {
                settings->is_adaptive = true;
                if (settings->time_slice == 0)
                        settings->time_slice = SCHEDULER_TIME_SLICE_OF_SHARES;
                return;
        }
        if (settings->frequency == 0)
                settings->frequency = are_few ? SCHEDULER_FREQUENCY_FEW : SCHEDULER_FREQUENCY_MANY;
        if (settings->time_slice == 0)
                settings->time_slice =
                        are_few ? SCHEDULER_TIME_SLICE_FEW : SCHEDULER_TIME_SLICE_MANY;
}

uint64_t scheduler_settings_get_slice(const struct scheduler_settings *settings)
{
        if (settings->policy != SCHEDULER_BEST_EFFORT && settings->is_adaptive)
                return 1000000000u / settings->frequency;
        return settings->time_slice;
}
