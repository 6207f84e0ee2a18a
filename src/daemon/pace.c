/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pace.h"

#include <time.h>

#include "base/clock.h"

/* Processor time, not time: that others keep the machine busy makes nothing more seldom. */
static uint64_t get_processor_time(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pace_begin(struct pace *pace)
{
        pace->begun_ns = get_processor_time();
}

void pace_end(struct pace *pace)
{
        pace_add(pace, get_processor_time() - pace->begun_ns);
}

/* The mean, of which the last is a quarter: one round that was costly makes no pause. */
void pace_add(struct pace *pace, uint64_t cost_ns)
{
        pace->cost_ns = pace->cost_ns / 4 * 3 + cost_ns / 4;
}

uint64_t pace_get_interval(const struct pace *pace)
{
        uint64_t us = pace->cost_ns * pace->part / NS_PER_US;

        if (us < pace->least_us)
                return pace->least_us;
        return us < pace->most_us ? us : pace->most_us;
}
