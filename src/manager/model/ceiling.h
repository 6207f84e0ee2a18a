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
 * with a context to ask, nobody may take more.
 */

#include <stdbool.h>
#include <stdint.h>

struct device;
struct instance;

/*
 * ceiling_freeze() - before the driver is asked. Returns what the driver is being asked for just now, by all
 * but @except, which may be NULL, as far as that is to be believed (pending.h).
 */
uint64_t ceiling_freeze(struct device *device, const struct instance *except);

/* ceiling_get_pending() - the same by all, as of the last look. */
uint64_t ceiling_get_pending(const struct device *device);

/*
 * ceiling_settle() - after it: @free bytes, with the room's mark from before and what ceiling_freeze()
 * returned. Where nothing is promised any more nobody is limited.
 */
void ceiling_settle(struct device *device, uint64_t free, uint64_t mark, uint64_t pending);

/* ceiling_look() - have it divided anew soon, or lifted. */
void ceiling_look(struct device *device);

/* ceiling_cover() - a vGPU that is new may not take what was promised to others before it was there. */
void ceiling_cover(struct instance *instance);

/* ceiling_is_on() - are those who run on @device limited? */
bool ceiling_is_on(const struct device *device);

/* ceiling_deinit() - what the pages say ends by itself. */
void ceiling_deinit(struct device *device);

#endif
