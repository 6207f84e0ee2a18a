/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GUEST_LIFE_H
#define MANAGER_GUEST_LIFE_H

/* How a guest process comes into its vGPU and leaves it. */

#include <stdint.h>
#include <sys/types.h>

#include "daemon/failure.h"

struct guest;
struct instance;

/*
 * guest_new() - in @instance's list; it dies with its process. Errors: -ESRCH.
 *
 * guest_charge() - charge its user with it. Errors: -EDQUOT.
 */
int guest_new(struct guest **ret_guest, struct instance *instance, pid_t pid, uid_t uid,
              uint64_t start_time);
int guest_charge(struct guest *guest, struct failure *failure);

/*
 * guest_leave() - it counts as dead from now on, though its process may live: it is hung up on, who waits
 * for its answer has -ESRCH, and guest_free() remains to be called.
 */
void guest_leave(struct guest *guest);

/*
 * guest_succeed() - @former has left: its process has become another program by exec(), which may join. Where the vGPU
 * cannot be used now, the program waits for it from now on, so that a suspended vGPU stays suspended.
 */
void guest_succeed(const struct guest *former);

/* guest_free() - gives its slot back, drops what is stored and kept of it. Returns NULL. */
struct guest *guest_free(struct guest *guest);

/* guest_unload() - frees it in memory only, as the next manager shall find all of it. */
struct guest *guest_unload(struct guest *guest);

/* guest_admit() - give it a slot and remember it; then it may be welcomed. Errors: -ENOSPC. */
int guest_admit(struct guest *guest);

/* guest_claim_slot() - it has had @slot since before this manager started. Errors: -EBUSY. */
int guest_claim_slot(struct guest *guest, uint32_t slot);

#endif
