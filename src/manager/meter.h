/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METER_H
#define MANAGER_METER_H

/*
 * The meter: how long each guest process has had the engines of its device. Utilization, accounting
 * and the ledger are all made of these numbers and of no others.
 *
 * Where they come from is said once for each device (docs/metering.md):
 *
 *     turns      the scheduler gives exclusive turns and measures them: meter_add_turn(). Exact.
 *     engine     nothing is enforced, the device is simulated: its engine's own count. Exact.
 *     samples    nothing is enforced, the device is real: NVIDIA's samples. Estimated.
 *
 * Only GPU time, METER_SM, is the scheduler's; the other engines are always read from below.
 *
 * Four times a second while processes are in vGPUs it takes a sample of everything; else once a
 * second; never while there is no vGPU.
 *
 * It learns of vGPUs and processes as an observer.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. All calls are made by the manager's thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"
#include "meter/accounting.h"
#include "meter/rate.h"

struct device;
struct guest;
struct instance;
struct ledger_thread;
struct manager;
struct meter;

enum meter_source_kind { METER_SOURCE_NONE, METER_SOURCE_ENGINE, METER_SOURCE_SAMPLES };

/* What the manager keeps of each device, */
struct meter_device {
        bool has_turns;                  /* its GPU time is what the scheduler measures */
        bool has_samples;                /* NVIDIA's library tells who uses it */
        bool is_lost;                    /* it says that the device fell off the bus */
        uint32_t percent[METER_ENGINES]; /* of the last period */
};

/* of each vGPU, */
struct meter_instance {
        uint64_t turn_ns;                /* of its turns, not yet divided among its guests */
        uint64_t since_ns;               /* until then it is settled; 0: it is not metered */
        bool is_held;                    /* its quota was set aside at that time, */
        uint32_t device;                 /* on this one */
        struct rate_area quota;          /* what is too small for the ledger yet */
        uint32_t percent[METER_ENGINES]; /* of the last period */
        struct accounting accounting;
        bool must_republish; /* its accounts on the board */
};

/* and of each guest. */
struct meter_guest {
        struct accounting_record record;    /* serial 0: it is not metered */
        uint64_t joined_ns;                 /* its life began then */
        uint64_t since_ns;                  /* until then it is settled */
        uint64_t new_ns[METER_ENGINES];     /* that came since */
        uint64_t weight_ns;                 /* busy since then as seen from below: divides turns */
        uint64_t seen_ns[METER_ENGINES];    /* of the source's own counts */
        uint64_t sampled_ns[METER_ENGINES]; /* settled since the last sample */
        uint32_t percent[METER_ENGINES];    /* of the last period */
        uint32_t told_percent[METER_ENGINES]; /* by a source that tells percents, */
        uint64_t told_until_ns;               /* which hold until then */
        uint64_t context_bytes;               /* of the device, beside what is charged */
        struct rate_area used;
        uint64_t written_ns; /* to the ledger */
        bool is_changed;     /* since then */
        bool was_idle;       /* in the last sample, and the board says so */
};

/* meter_new() - with the ledger in the state directory; one that cannot be opened is only logged. */
int meter_new(struct meter **ret_meter, struct manager *manager);

/* meter_start() - what a former manager left is loaded: begin to sample. */
void meter_start(struct meter *meter);

/* meter_free() - all that is metered so far is written. Returns NULL. */
struct meter *meter_free(struct meter *meter);

/*
 * meter_set_turns() - from now on the GPU time on @device is what the scheduler adds (true), or
 * what can be seen from below (false, as it is without this call)
 */
void meter_set_turns(struct device *device, bool has_turns);

/*
 * meter_add_turn() - some guests of @instance, nobody else, had the device for @ns.
 * They share it as they were busy meanwhile, or evenly where that is not known.
 */
void meter_add_turn(struct instance *instance, uint64_t ns);

/* meter_sync() - settle everything up to now, so that what is shown is not a quarter second old. */
void meter_sync(struct meter *meter);

/* meter_clear_accounting() - forget the processes of @instance that ended. Returns how many. */
size_t meter_clear_accounting(struct instance *instance);

/* meter_write() - what is settled shall be in the ledger soon. */
void meter_write(struct meter *meter);

/* meter_get_ledger() - NULL: there is none. */
struct ledger_thread *meter_get_ledger(struct meter *meter);

/*
 * meter_get_entitled() - percent of its device that @instance may count on as things are: @n_running vGPUs
 * of the device have processes.
 */
double meter_get_entitled(const struct instance *instance, uint32_t n_running);

/* meter_get_source() - what is seen of @device from below. */
enum meter_source_kind meter_get_source(const struct device *device);

#endif
