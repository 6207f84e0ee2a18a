/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PINNING_H
#define MANAGER_PINNING_H

/*
 * The time that movers spend on pinning memory of the pool for what users load (ReplaceMemory).
 *
 * A user may have it pinned, let go of it and have it pinned again in a loop, and the movers work on slabs
 * in the order in which they are asked: everybody's suspends would wait behind his. So each user's time is
 * counted as a debt, which he pays by letting as much time pass. Who owes more than a moment's work
 * waits until he does not: in the long run a user has the movers for half of the time at most.
 */

#include <stdint.h>
#include <sys/types.h>

/* What one may owe and still begin: some GiB, so that who loads a few images one after another never waits. */
#define PINNING_CREDIT_NS 1000000000u

struct pinning;

int pinning_new(struct pinning **ret_pinning);
struct pinning *pinning_free(struct pinning *pinning);

/* pinning_begin() - movers work for @user until pinning_end(); it may begin several times. Errors: -ENOMEM. */
int pinning_begin(struct pinning *pinning, uid_t user, uint64_t now_ns);
void pinning_end(struct pinning *pinning, uid_t user, uint64_t now_ns);

/* pinning_get_wait() - so long, or longer, until @user may begin; 0: now. */
uint64_t pinning_get_wait(struct pinning *pinning, uid_t user, uint64_t now_ns);

#endif
