/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KEEPER_ORPHANS_H
#define KEEPER_ORPHANS_H

/*
 * Processes that a manager held off their device when it went: their plans and descriptors
 * (wire/keeper.h), out of the manager's table and in one of their own until they are carried out.
 */

#include "base/fd-table.h"

#define ORPHANS_RETRY_MS 100

/* orphans_take() - all plans in @table, and the descriptors to carry them out with. */
void orphans_take(struct fd_table *orphans, struct fd_table *table);

/* orphans_let_on() - let all on their device; those for which that fails stay. */
void orphans_let_on(struct fd_table *orphans);

#endif
