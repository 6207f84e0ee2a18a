/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTEXT_MOMENT_H
#define MANAGER_CONTEXT_MOMENT_H

/* A call of the driver on a context, in the store before it is made and behind it: contexts.h. */

#include "manager/model/context.h"

struct guest;

/*
 * context_enter() - takes the moment down: the driver's state alone does not say on which device. A full disk does not
 * keep us from undoing what need not be taken down. Fails the operation.
 */
int context_enter(struct guest *guest, enum guest_context state, const struct place *target);

/* context_step_back() - the call has not been made, or did nothing: so there is nothing to undo. */
void context_step_back(struct guest *guest);

/* context_settle() - the driver has told its state. */
void context_settle(struct guest *guest, enum guest_context state, struct place place);

#endif
