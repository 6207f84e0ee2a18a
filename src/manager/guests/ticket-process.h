/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_TICKET_PROCESS_H
#define MANAGER_TICKET_PROCESS_H

/* Who a process is in tickets (wire/gate.h). */

#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

struct guest;

/* ticket_process_get_slot() - the slot that its tickets name: it keeps that when it joins again. */
uint32_t ticket_process_get_slot(const struct guest *guest);

/* ticket_process_get() - whom others know by the tickets of @guest. */
bool ticket_process_get(const struct guest *guest, struct gate_process *ret_process);

#endif
