/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/duration.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
        const char *unit;
        double seconds;
} units[] = { { "", 1 },     { "ms", 0.001 }, { "s", 1 },     { "m", 60 },
              { "min", 60 }, { "h", 3600 },   { "d", 86400 }, { "w", 7 * 86400 } };

int duration_parse(double *ret_seconds, const char *text)
{
        size_t length = strspn(text, "0123456789.");
        double number;
        char *end;

        number = strtod(text, &end);
        if (length == 0 || end != text + length || number <= 0)
                return -EINVAL;
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (strcmp(end, units[i].unit) == 0) {
                        *ret_seconds = number * units[i].seconds;
                        return 0;
                }
        return -EINVAL;
}

int duration_parse_or_never(double *ret_seconds, const char *text)
{
        if (strcmp(text, "never") != 0)
                return duration_parse(ret_seconds, text);
        *ret_seconds = 0;
        return 0;
}

char *duration_format(char text[DURATION_TEXT_MAX], double seconds)
{
        if (seconds < 0.1)
                snprintf(text, DURATION_TEXT_MAX, "%.3g ms", seconds * 1000);
        else if (seconds < 120)
                snprintf(text, DURATION_TEXT_MAX, "%.3g s", seconds);
        else if (seconds < 7200)
                snprintf(text, DURATION_TEXT_MAX, "%.3g min", seconds / 60);
        else
                snprintf(text, DURATION_TEXT_MAX, "%.3g h", seconds / 3600);
        return text;
}

int duration_parse_how(bool *ret_keeps_context, const char *text)
{
        if (strcmp(text, duration_get_how(true)) != 0 && strcmp(text, duration_get_how(false)) != 0)
                return -EINVAL;
        *ret_keeps_context = strcmp(text, duration_get_how(true)) == 0;
        return 0;
}

const char *duration_get_how(bool keeps_context)
{
        return keeps_context ? "keep-context" : "suspend";
}
