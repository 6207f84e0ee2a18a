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

/* A step smaller than this is the clock being slewed or read late. */
#define WALL_STEP_MS 2000

struct wall {
        uint64_t steady_ms, wall_ms; /* when last read; 0: never */
};

/*
 * wall_read() - what both clocks show now. Returns by how many ms the wall clock was set forward
 * (or back, negative) since the last reading; 0: it was not, or this is the first.
 */
int64_t wall_read(struct wall *wall, uint64_t steady_ms, uint64_t wall_ms);

/* wall_at() - what the wall clock would have shown at @steady_ms, had it not been set since. */
uint64_t wall_at(const struct wall *wall, uint64_t steady_ms);

/*
 * The time stamps of samples: what the wall clock shows, but they never go back, because who reads
 * samples asks for those later than the last that he has seen. While the clock that was set back is
 * behind them they go half as fast as time does, so that it comes up with them.
 */
struct wall_stamps {
        uint64_t steady_ms, stamp_ms; /* the last; 0: none */
};

/* wall_stamp() - of a sample that is taken at the time that @wall was read. */
uint64_t wall_stamp(struct wall_stamps *stamps, const struct wall *wall);

#endif
