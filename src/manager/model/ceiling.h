/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CEILING_H
#define MANAGER_CEILING_H

/*
 * Ceilings: while somebody was promised room on a device, those who run there may
 * not take it (state/instance-page.h). What is left beside all promises is divided
 * among them: first to those who wait for it, the rest in equal parts. So each may
 * go on allocating within its part, without asking anybody.
 *
 * Each division begins with a look: nobody may take more until the driver has said
 * how much is free. It is repeated twice a second as long as there are promises. While there is no mover
 * with a context to ask, nobody may take more. A division that others have come before is of no use: in the
 * meantime gates may have given back what they take again now. So the look is begun anew.
 *
 * While a restore is under way no gate takes anything (ceiling_close()): from before its hold is let go until the
 * driver has answered, or for 1.5 s of its call: what is promised is under the ceilings all the same. A gate waits 3 s for
 * its ceiling. So after a second without a pause the gates come first.
 */

#include <stdbool.h>
#include <stdint.h>

#include "manager/model/ceiling-record.h"

struct device;
struct instance;

/* ceiling_freeze() - before the driver is asked how much is free; @ret_look is for ceiling_settle(). */
void ceiling_freeze(struct device *device, struct ceiling_look *ret_look);

/* ceiling_get_pending() - what the driver was being asked for by all, at the last look. */
uint64_t ceiling_get_pending(const struct device *device);

/*
 * ceiling_get_promised() - to vGPUs that wait for room on @device, whether it is there yet or not. Each has it once it is
 * answered, and there.
 */
int64_t ceiling_get_promised(const struct device *device);

/*
 * ceiling_is_known() - have the gates been told, and is what they were asking the driver for before that of what was free?
 * Else they could get what a mover lends the driver for a checkpoint. False: it is looked at again.
 */
bool ceiling_is_known(struct device *device);

/*
 * ceiling_settle() - after it: it has said @free bytes; @held: what the mover holds of promises that are owed again. Where
 * nothing is promised any more no gate is limited.
 */
void ceiling_settle(struct device *device, uint64_t free, uint64_t held,
                    const struct ceiling_look *look);

/* ceiling_may_close() - or is it the gates' turn? */
bool ceiling_may_close(const struct device *device);

/* ceiling_close() - no gate begins to take memory of @device, until as many ceiling_open(). */
void ceiling_close(struct device *device);
void ceiling_open(struct device *device);

/*
 * ceiling_get_asked() - of what is closed: what the driver is still being asked for, by all but @except, as far as
 * that is to be believed (pending.h).
 */
uint64_t ceiling_get_asked(struct device *device, const struct instance *except);

/* ceiling_look() - have it divided anew soon, or lifted. */
void ceiling_look(struct device *device);

/* ceiling_cover() - a vGPU that is new, or there again, may not take what was promised to others before. */
void ceiling_cover(struct instance *instance);

/* ceiling_is_on() - are those who run on @device limited? */
bool ceiling_is_on(const struct device *device);

/* ceiling_deinit() - what the pages say ends by itself. */
void ceiling_deinit(struct device *device);

#endif
