/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/rate.h"

/* Nanoseconds times nanoseconds, and bytes times milliseconds, need more than 64 bits. */
__extension__ typedef unsigned __int128 wide;

uint32_t rate_percent(uint64_t busy_ns, uint64_t period_ns)
{
        wide percent;

        if (period_ns == 0)
                return 0;
        percent = ((wide)busy_ns * 100 + period_ns / 2) / period_ns;
        return percent < 100 ? (uint32_t)percent : 100;
}

uint64_t rate_estimate(uint32_t percent, uint64_t period_ns)
{
        return (uint64_t)((wide)period_ns * (percent < 100 ? percent : 100) / 100);
}

/*
 * Each part is what is due up to and including it, less what was given before: so the parts sum up
 * to the amount whatever is rounded.
 */
void rate_divide(uint64_t amount, const uint64_t *weights, size_t n, uint64_t *ret_parts)
{
        wide sum = 0, due = 0;
        uint64_t given = 0;

        for (size_t i = 0; i < n; i++)
                sum += weights[i];
        for (size_t i = 0; i < n; i++) {
                due += sum ? weights[i] : 1;
                ret_parts[i] = (uint64_t)((wide)amount * due / (sum ? sum : n)) - given;
                given += ret_parts[i];
        }
}

uint64_t rate_area_add(struct rate_area *area, uint64_t bytes, uint64_t ms)
{
        wide sum = (wide)bytes * ms + area->rest;

        area->rest = (uint64_t)(sum % RATE_AREA_UNIT);
        return (uint64_t)(sum / RATE_AREA_UNIT);
}
