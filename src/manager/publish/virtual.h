/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_VIRTUAL_H
#define MANAGER_VIRTUAL_H

/*
 * Plays a scenario on the state page: what it says of the devices, once, and its vGPUs, with
 * everything that uses them, as time goes by. Nothing runs in them; vGPUs in which something does
 * can be made beside them, in what memory the scenario leaves of the devices.
 *
 * vGPU i has the slot i of the state page; its processes follow one another in theirs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "state/state-page.h"

struct manager;
struct scenario;
struct virtual_stage;

/* virtual_start() - put @manager's scenario on its state page; the time begins now. Errors: -ENOSPC. */
int virtual_start(struct virtual_stage **ret_stage, struct manager *manager,
                  struct state_page *state_page);
struct virtual_stage *virtual_free(struct virtual_stage *stage);

/* virtual_get_count() - how many of the first slots of each table are the scenario's. */
struct virtual_count;
const struct virtual_count *virtual_get_count(const struct virtual_stage *stage);

/* virtual_play() - how it looks now. */
void virtual_play(struct virtual_stage *stage);

/*
 * virtual_find() - the id of a scenario's vGPU, by id, UUID or name as text; 0: there is none. Also
 * without a scenario (@stage is NULL).
 */
uint32_t virtual_find(const struct virtual_stage *stage, const char *text);

void virtual_set_encoder_capacity(struct virtual_stage *stage, uint32_t id, uint32_t percent);

#endif
