/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_BURIAL_H
#define MANAGER_BURIAL_H

/*
 * Processes that have ended. What is left of one is cleared away at once, which costs writes to the store
 * and the ledger; of hundreds that end together a part at a time, so that others are answered in between.
 * Until its turn comes a process that has ended counts as one whose end the loop has not seen yet.
 */

#include <systemd/sd-event.h>

struct burial;
struct guest;
struct instance;

typedef void (*burial_fn)(struct guest *guest);

/* burial_new() - @bury frees the guest, or leaves it to an operation. */
int burial_new(struct burial **ret_burial, sd_event *event, burial_fn bury);

/* burial_free() - after all guests. Returns NULL. */
struct burial *burial_free(struct burial *burial);

/* burial_add() - @guest has ended, or become another program; it may be gone afterwards. */
void burial_add(struct burial *burial, struct guest *guest);

/* burial_finish() - bury those of @instance: it is about to be removed, or joined. */
void burial_finish(struct burial *burial, struct instance *instance);

#endif
