/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METER_OUTSIDE_H
#define MANAGER_METER_OUTSIDE_H

/*
 * Processes of `vgpu run` that use a device and have no gate: statically linked, started with another LD_PRELOAD and
 * LD_LIBRARY_PATH, or with a path to the driver. No quota holds for them. Their environment still says to which vGPU
 * they belong. Of each it is said once, in the log and as an event, and in `vgpu ls` while it is there; `vgpud --strict` ends it.
 */

#include <sys/types.h>

struct manager;
struct meter_outside;

int meter_outside_new(struct meter_outside **ret_outside, struct manager *manager);
struct meter_outside *meter_outside_free(struct meter_outside *outside);

/* meter_outside_see() - the process @pid is on a device. Gates join before that: one without is told of after a while. */
void meter_outside_see(struct meter_outside *outside, pid_t pid);

/* meter_outside_tick() - forget those that are not seen any more. */
void meter_outside_tick(struct meter_outside *outside);

#endif
