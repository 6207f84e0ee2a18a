/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PACE_H
#define DAEMON_PACE_H

/*
 * The pace of what is done again and again and costs the more the more there is: it takes no more than
 * a part of a core. A few vGPUs are looked at often, thousands more seldom.
 */

#include <stdint.h>

struct pace {
        uint64_t least_us, most_us; /* between two rounds */
        uint32_t part;              /* of the time: one in so many */
        uint64_t cost_ns;           /* of the last rounds: processor time */
        uint64_t begun_ns;
};

/* pace_begin(), pace_end() - around a round, in one thread. */
void pace_begin(struct pace *pace);
void pace_end(struct pace *pace);

/* pace_add() - a round has cost so much. For pace_end(), and for tests. */
void pace_add(struct pace *pace, uint64_t cost_ns);

/* pace_get_interval() - until the next round, in microseconds. */
uint64_t pace_get_interval(const struct pace *pace);

#endif
