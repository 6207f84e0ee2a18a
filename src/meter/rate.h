/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_RATE_H
#define METER_RATE_H

/* Turns counts of nanoseconds into rates for people, and back, without losing a count. */

#include <stddef.h>
#include <stdint.h>

/* rate_percent() - get @busy_ns as percent of @period_ns, rounded, at most 100; 0 if the period is empty. */
uint32_t rate_percent(uint64_t busy_ns, uint64_t period_ns);

/*
 * rate_estimate() - get the nanoseconds that are @percent of @period_ns
 *
 * The inverse of rate_percent(), for sources that report only percentages.
 */
uint64_t rate_estimate(uint32_t percent, uint64_t period_ns);

/*
 * rate_divide() - divide @amount in proportion to @weights, or evenly if all weights are 0
 * @weights:    @n numbers whose sum is less than 2^64
 * @ret_parts:  @n numbers whose sum is exactly @amount
 */
void rate_divide(uint64_t amount, const uint64_t *weights, size_t n, uint64_t *ret_parts);

/* Memory held for a time. An amount below one unit waits here until it has grown to one. */
struct rate_area {
        uint64_t rest; /* bytes * ms */
};

#define RATE_AREA_UNIT (1024u * 1024u) /* bytes * ms */

/* rate_area_add() - add @bytes held for @ms. Returns the whole MiB * ms that have accrued. */
uint64_t rate_area_add(struct rate_area *area, uint64_t bytes, uint64_t ms);

#endif
