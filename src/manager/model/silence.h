/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SILENCE_H
#define MANAGER_SILENCE_H

/*
 * Silence: a call of the driver on a process has not returned (mover/process-call.h). The driver is asked nothing more
 * about the process meanwhile, its operation fails, and whatever else goes on with the device goes on.
 * What was promised to a restore stays promised meanwhile, and beyond the end of its mover: restore-room.h.
 */

#include <stdbool.h>
#include <sys/types.h>

struct device;
struct failure;
struct guest;

/* silence_begin() - @call, by the mover of @device, has not returned. */
void silence_begin(struct guest *guest, struct device *device, const char *call);

/* silence_lasts() - is the driver not to be asked about @guest? */
bool silence_lasts(const struct guest *guest);

/* silence_refuse() - fill in @failure, which names the process and the call. Returns -ETIMEDOUT. */
int silence_refuse(const struct guest *guest, struct failure *failure);

/* silence_end() - nothing waits for it any more: it has ended, or another operation begins. Tells nobody. */
void silence_end(struct guest *guest);

/*
 * silence_returned() - the call on @pid by the mover of @device has returned; silence_lost() - the mover has
 * ended, and all its calls with it. Those who have subscribed are told: GUEST_ANSWERS.
 */
void silence_returned(struct device *device, pid_t pid);
void silence_lost(struct device *device);

/* silence_needs() - does the mover of @device still wait for a call? */
bool silence_needs(const struct device *device);

#endif
