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

/* clock_in() - @ms from now, of CLOCK_MONOTONIC: the deadline of pthread_cond_clockwait(). */
static inline struct timespec clock_in(uint32_t ms)
{
        uint64_t at_ns = clock_now(CLOCK_MONOTONIC) + ms * UINT64_C(1000000);

        return (struct timespec){ .tv_sec = (time_t)(at_ns / 1000000000u),
                                  .tv_nsec = (long)(at_ns % 1000000000u) };
}

#endif
