/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_CURVE_H
#define SCENARIO_CURVE_H

/*
 * A curve: a number over the seconds since the scenario began.
 *
 *     30                                          always that
 *     { "steps": [[0, 10], [5, 80]], "every": 8 } 10, from the fifth second on 80; again every 8 s
 *     { "line": [[0, 10], [5, 80]] }              the same points with straight lines between them
 *     { "wave": [10, 90], "period": 20 }          up and down between the two, beginning low
 */

#include "scenario/reader.h"

#define CURVE_POINTS_MAX 256

enum curve_kind { CURVE_CONSTANT = 0, CURVE_STEPS, CURVE_LINE, CURVE_WAVE };

struct curve_point {
        double at, value;
};

struct curve {
        enum curve_kind kind;
        double value;             /* CONSTANT */
        double low, high, period; /* WAVE */
        double every;             /* STEPS, LINE: 0: once; the last value stays */
        struct curve_point *points;
        size_t n_points;
        bool is_set, has_sizes;
};

/* curve_read() - a field_read_fn. Values must be 0 or above. */
int curve_read(struct reader *reader, const json_t *value, void *to);

/* curve_read_size() - the same; values are bytes, or text as "6000 MiB". */
int curve_read_size(struct reader *reader, const json_t *value, void *to);

/* curve_get() - at @seconds; 0 for one that was not set. */
double curve_get(const struct curve *curve, double seconds);

/* curve_max() - the greatest value that it ever has. */
double curve_max(const struct curve *curve);

void curve_deinit(struct curve *curve);

#endif
