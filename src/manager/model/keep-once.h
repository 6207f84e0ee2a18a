/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_KEEP_ONCE_H
#define MANAGER_KEEP_ONCE_H

#include <stdbool.h>

#include "manager/model/guest.h"

/*
 * keep_once() - for each block of the guest's reservation that the pool has already, that one is held
 * (model/equal-blocks.h)
 *
 * To be done when all is there, and before it is stamped. @must_verify: what the hashes say is compared byte by
 * byte before, some blocks in each turn of the event loop. False: it is done. True: @then follows, once.
 * @has_moved: the extents are others now. It never fails: what is not joined stays twice.
 */
typedef void (*kept_once_fn)(struct guest *guest, bool has_moved);
bool keep_once(struct guest *guest, bool must_verify, bool *ret_has_moved, kept_once_fn then);

/* keep_once_forget() - stop comparing, without @then; fine for a guest that does not. */
void keep_once_forget(struct guest *guest);

#endif
