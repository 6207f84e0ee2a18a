/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_STAY_H
#define SCHEDULER_STAY_H

/*
 * How long a vGPU stays on its device: when it leaves by itself, and which leave early for one that
 * wants to come in. Arithmetic only: the caller has the clock and does what comes out.
 *
 * A vGPU leaves when it has had no work for the time that its owner set. Before that it may leave for
 * another vGPU that has work and finds no room, the least recently used first. Neither happens within
 * its guaranteed stay, which is a multiple of what its last swap (out and in again) took: so swapping takes
 * no more than a part of the time, whatever the programs do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who leaves early has had no work for this part of its time, and for so long: not between two kernels. */
#define STAY_EARLY_PART 10
#define STAY_EARLY_MIN  100000000ull

#define STAY_NEVER UINT64_MAX

/* All times are in nanoseconds, of one clock. */
struct stay {
        uint64_t after;      /* without work, then it leaves; 0: it never leaves by itself */
        uint64_t last_work;  /* when it had work last */
        uint64_t since;      /* when it came to the device */
        uint64_t guaranteed; /* from then on: stay_get_guaranteed() */
        uint64_t not_before; /* after a failure: when to try again */
        uint64_t bytes;      /* that the device has to promise when it has left */
        bool is_held;        /* what it holds there cannot leave */
        bool is_chosen;      /* by stay_choose() */
};

/* stay_get_guaranteed() - after a swap that took @cost, if swapping may take @percent of the time, 1 to 100. */
uint64_t stay_get_guaranteed(uint64_t cost, uint32_t percent);

/* stay_get_end() - when it leaves if no work comes; STAY_NEVER. */
uint64_t stay_get_end(const struct stay *stay);

/* stay_get_early_end() - from when on it may leave for another one; STAY_NEVER. */
uint64_t stay_get_early_end(const struct stay *stay);

/*
 * stay_choose() - who leaves at @now so that @bytes become free? Sets is_chosen in each of @stays, whose
 * order it changes. False: all that may leave are not enough, and nobody is chosen.
 */
bool stay_choose(struct stay **stays, size_t n, uint64_t bytes, uint64_t now);

#endif
