/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METER_H
#define MANAGER_METER_H

/*
 * The meter: how long each guest process has had the engines of its device. Utilization, accounting
 * and the ledger are all made of these numbers and of no others.
 *
 * Where they come from is said once for each device (docs/metering.md):
 *
 *     turns      the scheduler gives exclusive turns and measures them: meter_add_gpu_time(), or
 *                meter_add_turn() where only the vGPU that had the turn is known. Exact.
 *     engine     nothing is enforced, the device is simulated: its engine's own count. Exact.
 *     samples    nothing is enforced, the device is real: NVIDIA's samples. Estimated.
 *
 * Only GPU time, METER_SM, is the scheduler's; the other engines are always read from below.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. All calls are made by the manager's thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "meter/engine.h"

struct device;
struct guest;
struct instance;

/* What the manager keeps of each guest. */
struct meter_guest {
        uint64_t busy_ns[METER_ENGINES]; /* since it joined */
};

/* And of each vGPU. */
struct meter_instance {
        uint64_t turn_ns; /* of its turns, not yet divided among its guests */
};

/*
 * meter_set_turns() - from now on the GPU time on @device is what the scheduler adds (true), or
 * what can be seen from below (false, as it is without this call)
 */
void meter_set_turns(struct device *device, bool has_turns);

/* meter_add_gpu_time() - @guest had the device for @ns, until @at_ns. */
void meter_add_gpu_time(struct guest *guest, uint64_t ns, uint64_t at_ns);

/*
 * meter_add_turn() - some guests of @instance, nobody else, had the device for @ns, until @at_ns.
 * They share it as they were busy meanwhile, or evenly where that is not known.
 */
void meter_add_turn(struct instance *instance, uint64_t ns, uint64_t at_ns);

#endif
