/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* clock_now() - nanoseconds, of CLOCK_MONOTONIC for durations, of CLOCK_REALTIME since 1970. */
static inline uint64_t clock_now(clockid_t id)
{
        struct timespec now;

        (void)clock_gettime(id, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
