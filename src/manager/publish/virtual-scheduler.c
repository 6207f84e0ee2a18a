/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/virtual-scheduler.h"

#include "manager/publish/virtual-internal.h"
#include "manager/setting/settings.h"
#include "scenario/scenario.h"

void virtual_put_schedulers(struct virtual_stage *stage, uint32_t site,
                            const struct scenario_scheduler *schedulers, size_t n)
{
        struct state_scheduler scheduler = { .policy = STATE_POLICY_BEST_EFFORT,
                                             .arr = STATE_ARR_DISABLED };

        for (uint32_t engine = STATE_ENGINE_GRAPHICS; engine <= STATE_ENGINES; engine++)
                state_write_scheduler(stage->state_page, state_slot_of_scheduler(site, engine),
                                      &scheduler);
        for (size_t i = 0; i < n; i++) {
                const struct settings_scheduler wanted = {
                        .engine = schedulers[i].engine,
                        .policy = schedulers[i].policy,
                        .arr = schedulers[i].arr == SCENARIO_NOTHING ? STATE_ARR_DEFAULT
                               : schedulers[i].arr                   ? STATE_ARR_ENABLED
                                                                     : STATE_ARR_DISABLED,
                        .averaging_factor = schedulers[i].averaging_factor,
                        .frequency = schedulers[i].frequency,
                        .time_slice = schedulers[i].time_slice,
                };

                settings_fill_scheduler(&scheduler, &wanted, true);
                state_write_scheduler(stage->state_page,
                                      state_slot_of_scheduler(site, wanted.engine), &scheduler);
        }
}
