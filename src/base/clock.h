/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)
#define US_PER_S  UINT64_C(1000000)
#define MS_PER_S  UINT64_C(1000)

#define MS_PER_MINUTE (60 * MS_PER_S)

/* clock_now() - nanoseconds, of CLOCK_MONOTONIC for durations, of CLOCK_REALTIME since 1970. */
static inline uint64_t clock_now(clockid_t id)
{
        struct timespec now;

        (void)clock_gettime(id, &now);
        return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* clock_timespec() - @ns as the kernel takes them. */
static inline struct timespec clock_timespec(uint64_t ns)
{
        return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
                                  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* clock_in() - @ms from now, of CLOCK_MONOTONIC: the deadline of pthread_cond_clockwait(). */
static inline struct timespec clock_in(uint32_t ms)
{
        return clock_timespec(clock_now(CLOCK_MONOTONIC) + ms * NS_PER_MS);
}

#endif
