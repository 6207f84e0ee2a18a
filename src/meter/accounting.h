/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_ACCOUNTING_H
#define METER_ACCOUNTING_H

/*
 * The accounting of one vGPU: a record for each process that runs or ran in it, with NVML's rules.
 *
 *  - There is room for ACCOUNTING_MAX records, of those that run and of those that ended together.
 *    When it is used up the record that ended first makes room; one that runs never does.
 *  - A process that ends replaces the record of one that ended before with the same pid.
 *  - Clearing forgets those that ended; what runs goes on being counted.
 *
 * Records are in NVML's order: those that ended, in the order of their ends, then those that run, in
 * the order of their starts. Pointers to records are valid until the next change.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "meter/engine.h"

#define ACCOUNTING_MAX      4000
#define ACCOUNTING_NAME_MAX 96

struct accounting_record {
        uint64_t serial; /* of the process; never used again for another one */
        uint32_t pid;
        bool is_running;
        uint64_t start_us; /* CLOCK_REALTIME */
        uint64_t life_ns;  /* so far, or in all; of a steady clock */
        uint64_t busy_ns[METER_ENGINES];
        uint64_t max_memory; /* bytes */
        uint64_t number;     /* the caller's own */
        uint64_t shown;      /* likewise */
        char name[ACCOUNTING_NAME_MAX];
};

struct accounting {
        struct accounting_record *records;
        size_t n, room;
        size_t n_ended; /* the first of them */
};

/* accounting_deinit() - a zeroed struct is an empty one, and may be deinitialized too. */
void accounting_deinit(struct accounting *accounting);

/*
 * accounting_start() - a process begins, or is known from before and runs on: @record->is_running
 * Errors: -ENOMEM; -ENOSPC, so many run.
 */
int accounting_start(struct accounting *accounting, const struct accounting_record *record);

/* accounting_find() - the record of process @serial; NULL: there is none any more. */
struct accounting_record *accounting_find(struct accounting *accounting, uint64_t serial);

/*
 * accounting_find_pid() - as NVML does, among those that ended first: a number that was given to
 * another process shows the one that ended until that other one has.
 */
const struct accounting_record *accounting_find_pid(const struct accounting *accounting,
                                                    uint32_t pid);

/* accounting_end() - process @serial has ended; its record stays. */
void accounting_end(struct accounting *accounting, uint64_t serial);

/* accounting_add_ended() - one that ended before we began. Errors: -ENOMEM. */
int accounting_add_ended(struct accounting *accounting, const struct accounting_record *record);

/* accounting_clear() - forget those that ended. Returns how many. */
size_t accounting_clear(struct accounting *accounting);

/* Percent of its life that the process kept @engine busy, 0 to 100. */
uint32_t accounting_percent(const struct accounting_record *record, enum meter_engine engine);

/* NVML's time: 0 while it runs, then its life in ms, at least 1. */
uint64_t accounting_time_ms(const struct accounting_record *record);

#endif
