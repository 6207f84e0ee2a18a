/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTEXT_CLOSING_H
#define MANAGER_CONTEXT_CLOSING_H

/* While the driver restores a process, no gate takes memory of its devices: model/ceiling.h. */

#include <stdbool.h>
#include <stdint.h>

struct guest;
struct place;

/* context_wait() - in @us microseconds the process is looked at again. False: it is not. */
bool context_wait(struct guest *guest, uint64_t us);

/* context_waits_for_gates() - likewise, in a moment; false also: that was long enough. */
bool context_waits_for_gates(struct guest *guest);

/*
 * context_waits_for_those_who_ask() - before a restore: no gate begins to take memory until the driver has answered, and
 * those that were let through before, and are asking the driver, could get what the mover lets go. Gates of its own vGPU
 * are closed, and ask nothing before all are back. False: none asks any more; or that was long enough.
 */
bool context_waits_for_those_who_ask(struct guest *guest, const struct place *target);

/* context_limit_closing() - the driver is asked now: a call that takes long is waited for with the gates let on. */
void context_limit_closing(struct guest *guest);

/* context_open_ceilings() - the driver has answered, or was not asked; or it takes too long. */
void context_open_ceilings(struct guest *guest);

#endif
