/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_RATE_H
#define METER_RATE_H

/* Turns counts of nanoseconds into rates for people, and back, without losing a count. */

#include <stddef.h>
#include <stdint.h>

/* rate_percent() - of @period_ns, to the nearest, at most 100; 0 of an empty period. */
uint32_t rate_percent(uint64_t busy_ns, uint64_t period_ns);

/*
 * rate_estimate() - nanoseconds of @period_ns at @percent
 *
 * The way back, for sources that only tell percents.
 */
uint64_t rate_estimate(uint32_t percent, uint64_t period_ns);

/*
 * rate_divide() - divide @amount as @weights are to each other, evenly when all are 0
 * @weights:    their sum is less than 2^64
 * @ret_parts:  as many; their sum is @amount exactly
 */
void rate_divide(uint64_t amount, const uint64_t *weights, size_t n, uint64_t *ret_parts);

/* Memory held for a time. What is less than a unit stays in here until it has become one. */
struct rate_area {
        uint64_t rest; /* bytes * ms */
};

#define RATE_AREA_UNIT (1024u * 1024u) /* bytes * ms */

/* rate_area_add() - @bytes were held for @ms. Returns the whole MiB * ms that came together. */
uint64_t rate_area_add(struct rate_area *area, uint64_t bytes, uint64_t ms);

#endif
