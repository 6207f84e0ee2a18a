/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/curve.h"

#include <math.h>
#include <stdlib.h>

#include "base/size.h"

#define FORMS                                                                              \
        "a number, {\"steps\": [[SECONDS, VALUE], ...]}, {\"line\": [...]} or {\"wave\": " \
        "[LOW, HIGH], \"period\": SECONDS}"

static bool get_value(const struct curve *curve, const json_t *value, double *ret_value)
{
        uint64_t size;

        if (curve->has_sizes && json_is_string(value)) {
                if (size_parse(&size, json_string_value(value)) < 0)
                        return false;
                *ret_value = (double)size;
                return true;
        }
        *ret_value = json_number_value(value);
        return json_is_number(value) && *ret_value >= 0;
}

/* Two of them, as [A, B]. The first of a point is a time. */
static bool get_pair(const struct curve *curve, const json_t *value, bool is_point, double *ret_a,
                     double *ret_b)
{
        static const struct curve times = { 0 };

        return json_array_size(value) == 2 &&
               get_value(is_point ? &times : curve, json_array_get(value, 0), ret_a) &&
               get_value(curve, json_array_get(value, 1), ret_b);
}

static int read_point(struct reader *reader, const json_t *value, void *to)
{
        struct curve *curve = to;
        struct curve_point *point;
        double at, height;

        if (!get_pair(curve, value, true, &at, &height))
                return reader_fail(reader, "must be [SECONDS, VALUE], two numbers of 0 or more");
        if (curve->n_points == CURVE_POINTS_MAX)
                return reader_fail(reader, "there are too many points; allowed: %d",
                                   CURVE_POINTS_MAX);
        point = reader_grow((void **)&curve->points, &curve->n_points, sizeof(*point));
        if (!point)
                return reader_fail(reader, "out of memory");
        *point = (struct curve_point){ at, height };
        if (curve->n_points > 1 && point->at <= curve->points[curve->n_points - 2].at)
                return reader_fail(reader, "the seconds must grow from point to point");
        return 0;
}

static int read_wave(struct reader *reader, const json_t *value, void *to)
{
        struct curve *curve = to;

        if (!get_pair(curve, value, false, &curve->low, &curve->high))
                return reader_fail(reader, "must be [LOW, HIGH], two numbers of 0 or more");
        return 0;
}

static const struct field points_fields[] = {
        { .name = "steps", .kind = FIELD_LIST, .read = read_point },
        { .name = "line", .kind = FIELD_LIST, .read = read_point },
        { .name = "wave", .kind = FIELD_OTHER, .read = read_wave },
        { .name = "every", .kind = FIELD_SECONDS, .offset = offsetof(struct curve, every) },
        { .name = "period", .kind = FIELD_SECONDS, .offset = offsetof(struct curve, period) },
        { 0 },
};

static int read_form(struct reader *reader, const json_t *value, struct curve *curve)
{
        static const struct {
                const char *name;
                enum curve_kind kind;
        } forms[] = { { "steps", CURVE_STEPS }, { "line", CURVE_LINE }, { "wave", CURVE_WAVE } };
        int n = 0;

        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
                if (json_object_get(value, forms[i].name)) {
                        curve->kind = forms[i].kind;
                        n++;
                }
        if (n != 1)
                return reader_fail(reader, "must have one of steps, line and wave");
        return 0;
}

static int check(struct reader *reader, const struct curve *curve)
{
        if (curve->kind == CURVE_WAVE)
                return curve->period > 0 ? 0 : reader_fail(reader, "a wave needs a period above 0");
        if (curve->n_points == 0)
                return reader_fail(reader, "needs a point at least");
        if (curve->every > 0 && curve->points[curve->n_points - 1].at > curve->every)
                return reader_fail(reader, "has a point later than it repeats");
        return 0;
}

int curve_read(struct reader *reader, const json_t *value, void *to)
{
        struct curve *curve = to;
        int r;

        curve->is_set = true;
        if (get_value(curve, value, &curve->value))
                return 0;
        if (!json_is_object(value))
                return reader_fail(reader,
                                   "must be a number of 0 or more, or a curve; allowed: " FORMS);
        r = read_form(reader, value, curve);
        if (r == 0)
                r = reader_fields(reader, value, points_fields, curve);
        return r == 0 ? check(reader, curve) : r;
}

static double get_at_points(const struct curve *curve, double at)
{
        const struct curve_point *before = &curve->points[0], *after = NULL;

        for (size_t i = 0; i < curve->n_points; i++) {
                if (curve->points[i].at > at) {
                        after = &curve->points[i];
                        break;
                }
                before = &curve->points[i];
        }
        if (curve->kind == CURVE_STEPS || !after || after == before)
                return before->value;
        return before->value +
               (after->value - before->value) * (at - before->at) / (after->at - before->at);
}

int curve_read_size(struct reader *reader, const json_t *value, void *to)
{
        struct curve *curve = to;

        curve->has_sizes = true;
        return curve_read(reader, value, curve);
}

double curve_get(const struct curve *curve, double seconds)
{
        if (curve->kind == CURVE_CONSTANT)
                return curve->value;
        if (curve->kind == CURVE_WAVE)
                return curve->low + (curve->high - curve->low) *
                                            (1 - cos(2 * M_PI * seconds / curve->period)) / 2;
        return get_at_points(curve, curve->every > 0 ? fmod(seconds, curve->every) : seconds);
}

double curve_max(const struct curve *curve)
{
        double max = curve->kind == CURVE_WAVE ? fmax(curve->low, curve->high) : curve->value;

        for (size_t i = 0; i < curve->n_points; i++)
                max = fmax(max, curve->points[i].value);
        return max;
}

void curve_deinit(struct curve *curve)
{
        free(curve->points);
        curve->points = NULL;
}
