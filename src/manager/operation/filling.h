/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_FILLING_H
#define MANAGER_FILLING_H

/*
 * Parts of a guest's memory are filled from the pool while it comes early (arrival.h), by jobs of the target's mover.
 *
 * More than one at a time: while one is copied, the mover imports and maps the next, and lets go of the one before.
 * So the device always has something to copy, as long as there is memory to copy to.
 */

#include <stdbool.h>
#include <stddef.h>

struct guest;
struct operation;

/* filling_may_begin() - is there a place for one more, and is the pool ready for those that there are? */
bool filling_may_begin(const struct guest *guest);

/*
 * filling_begin() - allocations @first to @first + @n - 1, which the guest has created
 * @then: what is under way has changed; not before this returns. A failure is the operation's.
 */
void filling_begin(struct guest *guest, size_t first, size_t n, void (*then)(struct guest *guest));

/* filling_is_copying() - is any of its memory not there yet? filling_is_busy() - or has the mover some still? */
bool filling_is_copying(const struct guest *guest);
bool filling_is_busy(const struct guest *guest);

/* filling_forget_failed() - and say from which allocation on not all may be there; @n_begun if all are. */
size_t filling_forget_failed(struct guest *guest, size_t n_begun);

/* filling_end() - parts of @operation: the mover holds nothing more of it. */
void filling_end(struct operation *operation);

#endif
