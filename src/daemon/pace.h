/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PACE_H
#define DAEMON_PACE_H

/*
 * The pace of work that is repeated and whose cost grows with the number of vGPUs. The work takes at most
 * a part of one core: a few vGPUs are looked at often, thousands of them less often.
 */

#include <stdint.h>

struct pace {
        uint64_t least_us, most_us; /* between two rounds */
        uint32_t part;              /* N: the work takes at most 1/N of the time */
        uint64_t cost_ns;           /* processor time of the last rounds */
        uint64_t begun_ns;
};

/* pace_begin(), pace_end() - enclose one round, in one thread. */
void pace_begin(struct pace *pace);
void pace_end(struct pace *pace);

/* pace_add() - note what a round cost. For pace_end(), and for tests. */
void pace_add(struct pace *pace, uint64_t cost_ns);

/* pace_get_interval() - get the time until the next round, in microseconds. */
uint64_t pace_get_interval(const struct pace *pace);

#endif
