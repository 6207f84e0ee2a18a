/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_TEXT_H
#define EXPORTER_TEXT_H

/*
 * Writes metrics as text: families of samples with labels, as OpenMetrics 1.0 or as Prometheus' older
 * format (0.0.4), whichever the reader asked for. The two differ in how a family is announced:
 *
 *     text_family(text, "openvgpu_x_seconds", TEXT_COUNTER, "seconds", "What it counts.");
 *     text_sample(text, labels, 1.5);
 *
 * is "# TYPE openvgpu_x_seconds counter" to one and "# TYPE openvgpu_x_seconds_total counter" to the
 * other, and a sample called openvgpu_x_seconds_total to both.
 *
 * Values of labels come from anybody: they are quoted, and what is no UTF-8 is replaced.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum text_type {
        TEXT_GAUGE,
        TEXT_COUNTER,
        TEXT_HISTOGRAM,
        TEXT_INFO, /* its sample is 1, and what counts is in its labels */
};

struct text {
        char *bytes;
        size_t size, room;
        bool is_open_metrics;
        bool has_failed; /* no memory */

        /* The family: announced before its first sample, if there is one. */
        const char *name, *unit, *help;
        enum text_type type;
        bool is_announced;
};

/* Labels as they stand between the braces; made once where many samples have the same. */
struct labels {
        char text[1024]; /* a pair that does not fit is left out; ours fit */
        size_t size;
};

/* labels_copy() - @to gets those of @from; not more than it needs. */
void labels_copy(struct labels *to, const struct labels *from);

/* labels_add() - of any text; labels_add_number() - of a number. @name is ours. */
void labels_add(struct labels *labels, const char *name, const char *value);
void labels_add_number(struct labels *labels, const char *name, uint64_t value);

/*
 * text_family() - begin a family: what follows are its samples
 * @name:  kept, as @unit is; without the ending that its type adds ("_total", "_info")
 * @unit:  what @name ends with, or NULL
 * @help:  a sentence of ours; kept
 */
void text_family(struct text *text, const char *name, enum text_type type, const char *unit,
                 const char *help);

/* text_sample() - of a gauge, a counter or an info; @labels may be NULL. */
void text_sample(struct text *text, const struct labels *labels, double value);
void text_sample_integer(struct text *text, const struct labels *labels, uint64_t value);

/* One of those that a histogram counts; only OpenMetrics knows it. */
struct text_exemplar {
        const struct labels *labels;
        double value, time; /* seconds since the epoch */
};

struct text_histogram {
        const double *bounds;
        const uint64_t *buckets; /* how many were at most the bound of the same number */
        size_t n_bounds;
        uint64_t count;
        double sum;
        const struct text_exemplar *exemplar; /* or NULL */
};

/* text_histogram() - all samples of one histogram. */
void text_histogram(struct text *text, const struct labels *labels,
                    const struct text_histogram *histogram);

/* text_end() - nothing follows. -ENOMEM: there was no room for all of it. */
int text_end(struct text *text);

void text_deinit(struct text *text);

static inline void text_deinitp(struct text *text)
{
        text_deinit(text);
}

#endif
