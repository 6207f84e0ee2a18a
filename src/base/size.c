/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
        char letter;
        uint64_t bytes;
} units[] = { { 'T', TIB }, { 'G', GIB }, { 'M', MIB }, { 'K', KIB } };

static int unit_parse(uint64_t *ret_unit, const char *text)
{
        if (*text == '\0' || strcasecmp(text, "B") == 0) {
                *ret_unit = 1;
                return 0;
        }
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
                if (strncasecmp(text, &units[i].letter, 1) != 0)
                        continue;
                if (text[1] != '\0' && strcasecmp(text + 1, "B") != 0 &&
                    strcasecmp(text + 1, "iB") != 0)
                        return -EINVAL;
                *ret_unit = units[i].bytes;
                return 0;
        }
        return -EINVAL;
}

int size_parse(uint64_t *ret_bytes, const char *text)
{
        size_t digits = strspn(text, "0123456789.");
        uint64_t unit;
        double number;
        char *end;
        int r;

        if (digits == 0 || text[0] == '.' || text[digits - 1] == '.')
                return -EINVAL;

        errno = 0;
        number = strtod(text, &end);
        if (errno != 0 || end != text + digits)
                return -EINVAL;

        r = unit_parse(&unit, end + strspn(end, " "));
        if (r < 0)
                return r;
        if (unit == 1) { /* exact: a double has only 53 bits */
                unsigned long long bytes;

                if (memchr(text, '.', digits))
                        return -EINVAL;
                errno = 0;
                bytes = strtoull(text, NULL, 10);
                if (errno != 0)
                        return -ERANGE;
                *ret_bytes = bytes;
                return 0;
        }
        number *= (double)unit;
        if (number >= 0x1p64)
                return -ERANGE;
        *ret_bytes = (uint64_t)number;
        return 0;
}

bool size_lacks_unit(const char *text)
{
        size_t digits = strspn(text, "0123456789");

        return digits > 0 && text[digits] == '\0' && strtoull(text, NULL, 10) < MIB &&
               strspn(text, "0") < digits;
}

char *size_format(char *text, uint64_t bytes)
{
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
                if (bytes < units[i].bytes)
                        continue;
                snprintf(text, SIZE_TEXT_MAX, bytes % units[i].bytes ? "%.1f %ciB" : "%.0f %ciB",
                         (double)bytes / (double)units[i].bytes, units[i].letter);
                return text;
        }
        snprintf(text, SIZE_TEXT_MAX, "%u B", (unsigned int)bytes);
        return text;
}
