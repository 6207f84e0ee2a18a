/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_VIRTUAL_SCHEDULER_H
#define MANAGER_VIRTUAL_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

struct scenario_scheduler;
struct virtual_stage;

/* virtual_put_schedulers() - at a site; an engine without one shares as best it can. */
void virtual_put_schedulers(struct virtual_stage *stage, uint32_t site,
                            const struct scenario_scheduler *schedulers, size_t n);

#endif
