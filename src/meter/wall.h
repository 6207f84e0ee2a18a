/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_WALL_H
#define METER_WALL_H

/*
 * Finds the wall-clock time of a span of steady time.
 *
 * CLOCK_MONOTONIC measures how long something took, so a step of CLOCK_REALTIME changes no amount.
 * Only the position of a span on the wall clock depends on CLOCK_REALTIME: a span ends at what the
 * clock shows now, and begins as much earlier as it was long. A step forward therefore invents no
 * usage for hours that never were; after a step back the same minutes fill twice.
 */

#include <stdint.h>

/* Below this, the difference is not a step: the clock is being slewed, or was read late. */
#define WALL_STEP_MS 2000

struct wall {
        uint64_t steady_ms, wall_ms; /* when last read; 0: never */
};

/*
 * wall_read() - note what both clocks show now. Returns by how many ms somebody set the wall clock
 * forward since the last reading, or, negative, back; 0: nobody did, or this is the first reading.
 */
int64_t wall_read(struct wall *wall, uint64_t steady_ms, uint64_t wall_ms);

/* wall_at() - get what the wall clock would have shown at @steady_ms if nobody had set it since. */
uint64_t wall_at(const struct wall *wall, uint64_t steady_ms);

/*
 * The time stamps of samples: the time of the wall clock, except that stamps never go back. A reader of
 * samples asks for samples later than the last one that it saw. After somebody has set the clock back,
 * stamps advance at half the speed of time until the clock has caught up.
 */
struct wall_stamps {
        uint64_t steady_ms, stamp_ms; /* the last; 0: none */
};

/* wall_stamp() - get the stamp of a sample that was taken when @wall was read. */
uint64_t wall_stamp(struct wall_stamps *stamps, const struct wall *wall);

#endif
