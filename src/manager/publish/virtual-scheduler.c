/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/virtual-scheduler.h"

#include "manager/publish/virtual-internal.h"
#include "manager/setting/settings.h"
#include "scenario/scenario.h"

void virtual_put_schedulers(struct virtual_stage *stage, uint32_t site,
                            const struct scenario_scheduler *schedulers, size_t n)
{
        struct board_scheduler scheduler = { .policy = BOARD_POLICY_BEST_EFFORT,
                                             .arr = BOARD_ARR_DISABLED };

        for (uint32_t engine = BOARD_ENGINE_GRAPHICS; engine <= BOARD_ENGINES; engine++)
                board_write_scheduler(stage->board, board_slot_of_scheduler(site, engine),
                                      &scheduler);
        for (size_t i = 0; i < n; i++) {
                const struct settings_scheduler wanted = {
                        .engine = schedulers[i].engine,
                        .policy = schedulers[i].policy,
                        .arr = schedulers[i].arr == SCENARIO_NOTHING ? BOARD_ARR_DEFAULT
                               : schedulers[i].arr                   ? BOARD_ARR_ENABLED
                                                                     : BOARD_ARR_DISABLED,
                        .averaging_factor = schedulers[i].averaging_factor,
                        .frequency = schedulers[i].frequency,
                        .time_slice = schedulers[i].time_slice,
                };

                settings_fill_scheduler(&scheduler, &wanted, true);
                board_write_scheduler(stage->board, board_slot_of_scheduler(site, wanted.engine),
                                      &scheduler);
        }
}
