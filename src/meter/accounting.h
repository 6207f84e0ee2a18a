/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_ACCOUNTING_H
#define METER_ACCOUNTING_H

/*
 * The accounting of one vGPU: a record for each process that runs or ran in it, with NVML's rules.
 *
 *  - There is room for ACCOUNTING_MAX records, of running and ended processes together. When the
 *    room is used up, the process that ended first loses its record. A running process never does.
 *  - A process that ends replaces the record of an earlier process with the same pid.
 *  - Clearing forgets the ended processes. Running processes continue to be counted.
 *
 * Records are in NVML's order: first the ended processes in the order of their ends, then the running
 * processes in the order of their starts. Pointers to records are valid until the next change.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "meter/engine.h"

#define ACCOUNTING_MAX      4000
#define ACCOUNTING_NAME_MAX 96

struct accounting_record {
        uint64_t serial; /* of the process; no other process ever gets it */
        uint32_t pid;
        bool is_running;
        uint64_t start_us; /* CLOCK_REALTIME */
        uint64_t life_ns;  /* so far, or in total; measured by a steady clock */
        uint64_t busy_ns[METER_ENGINES];
        uint64_t max_memory; /* bytes */
        uint64_t number;     /* the caller's own */
        uint64_t shown;      /* likewise */
        char name[ACCOUNTING_NAME_MAX];
};

struct accounting {
        struct accounting_record *records;
        size_t n, room;
        size_t n_ended; /* the first records are those of ended processes */
};

/* accounting_deinit() - free all records. A zeroed struct is empty, and may be passed too. */
void accounting_deinit(struct accounting *accounting);

/*
 * accounting_start() - add @record as that of a running process, new or known from a former manager
 * Errors: -ENOMEM; -ENOSPC, ACCOUNTING_MAX processes run.
 */
int accounting_start(struct accounting *accounting, const struct accounting_record *record);

/* accounting_find() - find the record of process @serial; NULL if it has been dropped. */
struct accounting_record *accounting_find(struct accounting *accounting, uint64_t serial);

/*
 * accounting_find_pid() - find a record by pid, as NVML does: ended processes are searched first, so
 * that a reused pid shows the former process until the new one has ended.
 */
const struct accounting_record *accounting_find_pid(const struct accounting *accounting,
                                                    uint32_t pid);

/* accounting_end() - mark process @serial as ended. Its record stays. */
void accounting_end(struct accounting *accounting, uint64_t serial);

/* accounting_add_ended() - add a process that ended before this manager began. Errors: -ENOMEM. */
int accounting_add_ended(struct accounting *accounting, const struct accounting_record *record);

/* accounting_clear() - forget all ended processes. Returns how many there were. */
size_t accounting_clear(struct accounting *accounting);

/* accounting_percent() - get the percentage of its life that a process kept @engine busy. */
uint32_t accounting_percent(const struct accounting_record *record, enum meter_engine engine);

/* accounting_time_ms() - get NVML's time: 0 while the process runs, then its life in ms, at least 1. */
uint64_t accounting_time_ms(const struct accounting_record *record);

#endif
