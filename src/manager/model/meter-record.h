/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METER_RECORD_H
#define MANAGER_METER_RECORD_H

/* What the meter (meter.h) keeps in devices, vGPUs and guests. Times are ns of CLOCK_MONOTONIC. */

#include <stdbool.h>
#include <stdint.h>

#include "meter/accounting.h"
#include "meter/rate.h"
#include "state/device.h"
#include "wire/gate.h"

/* Engines that a source counts by itself: METER_SM and METER_MEMORY. */
#define METER_SEEN 2

enum meter_source_kind { METER_SOURCE_NONE, METER_SOURCE_ENGINE, METER_SOURCE_SAMPLES };

/* Of each device, */
struct meter_device {
        bool has_turns;                  /* its GPU time is what the scheduler measures */
        bool has_samples;                /* NVIDIA's library tells who uses it */
        bool is_lost;                    /* it says that the device fell off the bus */
        uint32_t percent[METER_ENGINES]; /* of the last period */
};

/* of each vGPU, */
struct meter_instance {
        uint64_t since_ns;               /* until then it is settled; 0: it is not metered */
        uint64_t entered_ns;             /* when it was created, or loaded */
        bool is_held;                    /* its quota was set aside at that time */
        struct rate_area quota;          /* of a part, what is too small for the ledger yet */
        uint32_t percent[METER_ENGINES]; /* of the last period, of all its devices together */
};

/* of what each has of a device, */
struct meter_part {
        /*
         * The schedule adds to it what some guests of this vGPU, and nobody else, had of the device.
         * They share it as they were busy meanwhile, or evenly where that is not known.
         */
        uint64_t turn_ns;
        uint32_t device;                 /* index, when it was settled last */
        uint64_t busy_ns;                /* GPU time since this manager began; never less */
        uint32_t percent[METER_ENGINES]; /* of the last period */
        struct accounting accounting;    /* of the device's use; the same processes in each part */
        bool must_republish;             /* its accounts on the state page */
};

/* of what each guest has of a part, */
struct meter_guest_part {
        uint64_t new_ns[METER_ENGINES];     /* since it was settled */
        uint64_t weight_ns;                 /* busy since then as seen from below: divides turns */
        uint64_t busy_ns[METER_ENGINES];    /* in its life */
        uint64_t sampled_ns[METER_ENGINES]; /* settled since the last sample */
        uint32_t percent[METER_ENGINES];    /* of the last period */
        uint32_t told_percent[METER_ENGINES]; /* by a source that tells percents, */
        uint64_t told_until_ns;               /* which hold until then */
        uint64_t context_bytes;               /* of the device, beside what is charged */
        uint64_t charged_bytes;               /* when that was read */
        bool is_steady;                       /* the reading before said the same */
        uint64_t max_memory;
        struct rate_area used;
        bool was_idle; /* in the last sample, and the state page says so */
};

/* and of each guest. */
struct meter_guest {
        struct accounting_record record; /* of all devices together; serial 0: it is not metered */
        uint64_t joined_ns;              /* its life began then */
        uint64_t since_ns;               /* until then it is settled */
        uint32_t percent[METER_ENGINES]; /* of the last period, of all devices together */
        uint64_t seen_ns[STATE_DEVICES_MAX][METER_SEEN]; /* by device, of the source's own counts */
        uint64_t written_ns;                             /* to the ledger */
        bool is_changed;                                 /* since then */
        struct meter_guest_part part[GATE_DEVICES_MAX];
};

#endif
