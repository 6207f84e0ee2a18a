/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_READING_H
#define MANAGER_READING_H

/*
 * Memory of a suspended vGPU on its way back from the spill before the vGPU comes back; of one process at a time.
 *
 * What has arrived is spare (spilled_keep()): the file is still where the memory is, so its room in the pool can be
 * taken at any time. Only while it is being read it cannot, so whoever needs room ends that first.
 */

#include <stdbool.h>

struct guest;
struct instance;
struct manager;

/*
 * reading_begin() - start to read the memory of @guest, which is in the spill, for its vGPU's own device
 * @done follows once, not before this returns. @instance is NULL if the process has ended. Errors: not begun.
 */
typedef void (*reading_done_fn)(struct manager *manager, struct instance *instance, int error);
int reading_begin(struct guest *guest, reading_done_fn done);

/* reading_is_busy() - is one on its way? reading_is_of() - of @instance? */
bool reading_is_busy(const struct manager *manager);
bool reading_is_of(const struct instance *instance);

/* reading_give_up() - nobody needs it. True: it ends soon, and @done follows; false: there is none. */
bool reading_give_up(struct manager *manager);

/* reading_leave() - the process ends. @done follows all the same. */
void reading_leave(struct guest *guest);

/* reading_close() - at the end of vgpud, when the spill copies nothing any more. */
void reading_close(struct manager *manager);

#endif
