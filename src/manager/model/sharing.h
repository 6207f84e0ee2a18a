/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SHARING_H
#define MANAGER_SHARING_H

/*
 * Which processes have memory of which others. Processes that share memory can only be taken off their
 * devices together: who has imported some must let go of it first, and it comes back only after the
 * process that made it has made it again.
 */

#include <stdbool.h>

#include "daemon/failure.h"

struct gate_process;
struct guest;

/* sharing_add() - @user has memory that @maker has made. Errors: -ENOMEM. */
int sharing_add(struct guest *user, struct guest *maker);

/*
 * sharing_part() - @maker, whose tickets bear @process, is no guest any more, but lives: its users wait for it.
 * Only its users know what they have of it, and they do not tell again when it is back.
 */
void sharing_part(struct guest *maker, const struct gate_process *process);

/* sharing_await() - @user has memory of @process, which is no guest now. Errors: -ENOMEM. */
int sharing_await(struct guest *user, const struct gate_process *process);

/* sharing_awaits() - is @process one that @user waits for? sharing_meet() - it is @maker. */
bool sharing_awaits(const struct guest *user, const struct gate_process *process);
void sharing_meet(struct guest *user, struct guest *maker, const struct gate_process *process);

/* sharing_forget() - @user has no memory of others. */
void sharing_forget(struct guest *user);

/* sharing_end() - @guest is no guest any more. */
void sharing_end(struct guest *guest);

/* sharing_is_any() - does @guest share memory with another, also with one that it waits for? */
bool sharing_is_any(const struct guest *guest);

/*
 * sharing_each_partner() - calls @each for those that share memory with @guest, until it answers otherwise
 * than 0, which is then the result.
 */
int sharing_each_partner(struct guest *guest, int (*each)(struct guest *partner, void *userdata),
                         void *userdata);

#endif
