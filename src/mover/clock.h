/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_CLOCK_H
#define MOVER_CLOCK_H

#include <stdint.h>
#include <time.h>

/* clock_ns() - CLOCK_MONOTONIC, for durations. */
static inline uint64_t clock_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
