/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_VIRTUAL_H
#define MANAGER_VIRTUAL_H

/* What a scenario puts on the board: vGPUs in which nothing runs. */

#include <stdint.h>

struct manager;

/* virtual_find() - the id of a scenario's vGPU, by id, UUID or name as text; 0: there is none. */
uint32_t virtual_find(const struct manager *manager, const char *text);

void virtual_set_encoder_capacity(struct manager *manager, uint32_t id, uint32_t percent);

#endif
