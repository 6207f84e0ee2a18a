/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16384
#define NUMBER_MAX 32

/* U+FFFD, for what is no text. */
#define REPLACEMENT "\xef\xbf\xbd"

static const char *const type_names[] = {
        [TEXT_GAUGE] = "gauge",
        [TEXT_COUNTER] = "counter",
        [TEXT_HISTOGRAM] = "histogram",
        [TEXT_INFO] = "info",
};

static bool make_room(struct text *text, size_t n)
{
        size_t room = text->room ? text->room : FIRST_ROOM;
        char *bytes;

        if (text->has_failed || text->room - text->size >= n)
                return !text->has_failed;
        while (room - text->size < n)
                room *= 2;
        bytes = realloc(text->bytes, room);
        text->has_failed = !bytes;
        if (!bytes)
                return false;
        text->bytes = bytes;
        text->room = room;
        return true;
}

static void add_bytes(struct text *text, const char *bytes, size_t n)
{
        if (!make_room(text, n))
                return;
        memcpy(text->bytes + text->size, bytes, n);
        text->size += n;
}

static void add(struct text *text, const char *string)
{
        add_bytes(text, string, strlen(string));
}

/* Most numbers are whole, and there are very many of them. */
static size_t write_integer(char *to, uint64_t value)
{
        char digits[NUMBER_MAX], *end = digits + sizeof(digits), *at = end;

        do {
                *--at = (char)('0' + value % 10);
                value /= 10;
        } while (value > 0);
        memcpy(to, at, (size_t)(end - at));
        return (size_t)(end - at);
}

/* Labels. */

/* How many bytes the character at @from has; 0: it is no UTF-8. */
static size_t measure(const unsigned char *from)
{
        size_t n = from[0] < 0x80             ? 1
                   : (from[0] & 0xe0) == 0xc0 ? 2
                   : (from[0] & 0xf0) == 0xe0 ? 3
                   : (from[0] & 0xf8) == 0xf0 ? 4
                                              : 0;

        for (size_t i = 1; i < n; i++)
                if ((from[i] & 0xc0) != 0x80)
                        return 0;
        if ((n == 2 && from[0] < 0xc2) || (n == 3 && from[0] == 0xe0 && from[1] < 0xa0) ||
            (n == 3 && from[0] == 0xed && from[1] > 0x9f) ||
            (n == 4 && from[0] == 0xf0 && from[1] < 0x90) ||
            (n == 4 && (from[0] > 0xf4 || (from[0] == 0xf4 && from[1] > 0x8f))))
                return 0; /* longer than need be, half of a pair, or beyond the last */
        return n;
}

/* One character of a value, quoted. Returns how many bytes of @from it took. */
static size_t quote(const unsigned char *from, const char **ret_quoted, size_t *ret_size)
{
        size_t n = measure(from);

        *ret_quoted = (const char *)from;
        *ret_size = n;
        if (n == 1 && (*from == '\\' || *from == '"' || *from == '\n'))
                *ret_quoted = *from == '\\' ? "\\\\" : *from == '"' ? "\\\"" : "\\n";
        else if (n == 0)
                *ret_quoted = REPLACEMENT;
        if (*ret_quoted != (const char *)from)
                *ret_size = strlen(*ret_quoted);
        return n ? n : 1;
}

void labels_copy(struct labels *to, const struct labels *from)
{
        to->size = from->size;
        memcpy(to->text, from->text, from->size);
}

void labels_add(struct labels *labels, const char *name, const char *value)
{
        size_t size = labels->size, n, taken;
        const char *quoted;

        if (size + strlen(name) + sizeof(",=\"\"") > sizeof(labels->text))
                return;
        if (size > 0)
                labels->text[size++] = ',';
        size = (size_t)(stpcpy(labels->text + size, name) - labels->text);
        labels->text[size++] = '=';
        labels->text[size++] = '"';
        for (const char *at = value; *at; at += taken) {
                taken = quote((const unsigned char *)at, &quoted, &n);
                if (size + n + 1 > sizeof(labels->text))
                        return;
                memcpy(labels->text + size, quoted, n);
                size += n;
        }
        labels->text[size++] = '"';
        labels->size = size;
}

void labels_add_number(struct labels *labels, const char *name, uint64_t value)
{
        char digits[NUMBER_MAX];

        digits[write_integer(digits, value)] = '\0';
        labels_add(labels, name, digits);
}

/* Families. */

static const char *get_ending(enum text_type type)
{
        return type == TEXT_COUNTER ? "_total" : type == TEXT_INFO ? "_info" : "";
}

static void add_word(struct text *text, const char *word, const char *what)
{
        add(text, word);
        add(text, text->name);
        add(text, text->is_open_metrics ? "" : get_ending(text->type));
        add(text, " ");
        add(text, what);
        add(text, "\n");
}

void text_family(struct text *text, const char *name, enum text_type type, const char *unit,
                 const char *help)
{
        text->name = name;
        text->type = type;
        text->unit = unit;
        text->help = help;
        text->is_announced = false;
}

/* The older format knows neither info nor unit. */
static void announce(struct text *text)
{
        enum text_type type =
                text->type == TEXT_INFO && !text->is_open_metrics ? TEXT_GAUGE : text->type;

        if (text->is_announced)
                return;
        text->is_announced = true;
        add_word(text, "# HELP ", text->help);
        add_word(text, "# TYPE ", type_names[type]);
        if (text->unit && text->is_open_metrics)
                add_word(text, "# UNIT ", text->unit);
}

static void add_name(struct text *text, const char *ending, const struct labels *labels)
{
        announce(text);
        add(text, text->name);
        add(text, ending);
        if (!labels || labels->size == 0)
                return;
        add(text, "{");
        add_bytes(text, labels->text, labels->size);
        add(text, "}");
}

static size_t write_number(char *to, double value)
{
        if (isnan(value))
                return (size_t)snprintf(to, NUMBER_MAX, "NaN");
        if (isinf(value))
                return (size_t)snprintf(to, NUMBER_MAX, value > 0 ? "+Inf" : "-Inf");
        if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value)
                return write_integer(to, (uint64_t)value);
        return (size_t)snprintf(to, NUMBER_MAX, "%.15g", value);
}

static void add_value(struct text *text, double value)
{
        char number[NUMBER_MAX];
        size_t n = write_number(number, value);

        add(text, " ");
        add_bytes(text, number, n);
        add(text, "\n");
}

static void add_integer(struct text *text, uint64_t value)
{
        char number[NUMBER_MAX];
        size_t n = write_integer(number, value);

        add(text, " ");
        add_bytes(text, number, n);
        add(text, "\n");
}

void text_sample(struct text *text, const struct labels *labels, double value)
{
        add_name(text, get_ending(text->type), labels);
        add_value(text, value);
}

void text_sample_integer(struct text *text, const struct labels *labels, uint64_t value)
{
        add_name(text, get_ending(text->type), labels);
        add_integer(text, value);
}

/* OpenMetrics has one spelling of a bound: with a point. */
static void add_bound(struct labels *labels, double bound)
{
        char number[NUMBER_MAX + 2];
        size_t n = write_number(number, bound);

        number[n] = '\0';
        if (!strpbrk(number, ".enI"))
                strcpy(number + n, ".0");
        labels_add(labels, "le", number);
}

static void add_exemplar(struct text *text, const struct text_exemplar *exemplar)
{
        char number[NUMBER_MAX];

        add(text, " # {");
        add_bytes(text, exemplar->labels->text, exemplar->labels->size);
        add(text, "} ");
        add_bytes(text, number, write_number(number, exemplar->value));
        add(text, " ");
        add_bytes(text, number, write_number(number, exemplar->time));
}

/* In the bucket that it falls into. */
static bool has_exemplar(const struct text *text, const struct text_histogram *histogram, size_t i)
{
        const struct text_exemplar *exemplar = histogram->exemplar;

        return exemplar && text->is_open_metrics &&
               (i == 0 || exemplar->value > histogram->bounds[i - 1]) &&
               (i == histogram->n_bounds || exemplar->value <= histogram->bounds[i]);
}

static void add_bucket(struct text *text, const struct text_histogram *histogram, size_t i)
{
        char number[NUMBER_MAX];
        size_t n = write_integer(number, i < histogram->n_bounds ? histogram->buckets[i]
                                                                 : histogram->count);

        add(text, " ");
        add_bytes(text, number, n);
        if (has_exemplar(text, histogram, i))
                add_exemplar(text, histogram->exemplar);
        add(text, "\n");
}

void text_histogram(struct text *text, const struct labels *labels,
                    const struct text_histogram *histogram)
{
        for (size_t i = 0; i <= histogram->n_bounds; i++) {
                struct labels with_bound;

                with_bound.size = 0;
                if (labels)
                        labels_copy(&with_bound, labels);
                add_bound(&with_bound, i < histogram->n_bounds ? histogram->bounds[i] : INFINITY);
                add_name(text, "_bucket", &with_bound);
                add_bucket(text, histogram, i);
        }
        add_name(text, "_sum", labels);
        add_value(text, histogram->sum);
        add_name(text, "_count", labels);
        add_integer(text, histogram->count);
}

int text_end(struct text *text)
{
        if (text->is_open_metrics)
                add(text, "# EOF\n");
        return text->has_failed ? -ENOMEM : 0;
}

void text_deinit(struct text *text)
{
        free(text->bytes);
        *text = (struct text){ 0 };
}
