/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SPILLING_H
#define MANAGER_SPILLING_H

/*
 * Memory of a suspended vGPU on its way from the pool to the spill.
 *
 * Until all of it is on the disk, and the store says so, the memory is in the pool as ever: whatever happens before
 * then costs nothing but the time. A vGPU that comes back meanwhile does not wait for it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"

struct guest;
struct instance;
struct manager;

/* spilling_open() - the spill, in the directory that the options name; without one nothing goes there. */
int spilling_open(struct manager *manager, struct failure *failure);

/* spilling_close() - end all copies and wait for that. */
void spilling_close(struct manager *manager);

/*
 * spilling_begin() - start to write the guest's memory to a file
 * @done follows once, when it is there or cannot be: then @error says why, and the log. Errors: not begun.
 */
typedef void (*spilling_done_fn)(struct manager *manager, int error);
int spilling_begin(struct guest *guest, spilling_done_fn done);

/* spilling_leave() - the guest ends or comes back: nobody needs the file. @done follows all the same. */
void spilling_leave(struct guest *guest);

/* spilling_is_idle() - is nothing on its way? */
bool spilling_is_idle(const struct manager *manager);

#endif
