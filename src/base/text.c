/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdint.h>
#include <string.h>

/* The shortest encoding is the only valid one: the least code point for each length. */
static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

static size_t sequence_length(unsigned char first)
{
        if (first < 0x80)
                return 1;
        if (first >= 0xc2 && first < 0xe0)
                return 2;
        if (first >= 0xe0 && first < 0xf0)
                return 3;
        return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

size_t text_measure(const char *text)
{
        static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
        size_t length = sequence_length((unsigned char)text[0]);
        uint32_t code;

        if (length == 0)
                return 0;
        code = (unsigned char)text[0] & mask[length];
        for (size_t i = 1; i < length; i++) {
                if (((unsigned char)text[i] & 0xc0) != 0x80)
                        return 0;
                code = code << 6 | ((unsigned char)text[i] & 0x3f);
        }
        if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
                return 0;
        return code < 0x20 || (code >= 0x7f && code < 0xa0) ? 0 : length;
}

char *text_clean(char *to, size_t room, const char *from)
{
        size_t used = 0;

        while (*from) {
                size_t length = text_measure(from);
                size_t needed = length ? length : 1;

                if (used + needed + 1 > room)
                        break;
                memcpy(to + used, length ? from : "?", needed);
                used += needed;
                from += needed;
        }
        to[used] = '\0';
        return to;
}

char *text_mend(char *text)
{
        for (char *at = text; *at;) {
                size_t length = text_measure(at);

                if (length == 0)
                        *at = '?';
                at += length ? length : 1;
        }
        return text;
}

size_t text_width(const char *text)
{
        size_t width = 0;

        for (; *text; text++)
                width += ((unsigned char)*text & 0xc0) != 0x80;
        return width;
}

#define DISTANCE_MAX 32

static size_t smallest(size_t a, size_t b, size_t c)
{
        size_t d = a < b ? a : b;

        return d < c ? d : c;
}

size_t text_distance(const char *a, const char *b)
{
        /* steps[i][j]: from the first i letters of a to the first j of b */
        size_t steps[DISTANCE_MAX][DISTANCE_MAX];
        size_t n = strlen(a), m = strlen(b);

        if (n >= DISTANCE_MAX || m >= DISTANCE_MAX)
                return SIZE_MAX;

        for (size_t i = 0; i <= n; i++)
                for (size_t j = 0; j <= m; j++) {
                        if (i == 0 || j == 0) {
                                steps[i][j] = i + j;
                                continue;
                        }
                        steps[i][j] = smallest(steps[i - 1][j] + 1, steps[i][j - 1] + 1,
                                               steps[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                            steps[i - 2][j - 2] + 1 < steps[i][j])
                                steps[i][j] = steps[i - 2][j - 2] + 1;
                }
        return steps[n][m];
}

bool text_is_closer(const char *name, const char *other, size_t *fewest)
{
        size_t distance = text_distance(name, other);

        if (distance >= *fewest || 2 * distance > strlen(name))
                return false;
        *fewest = distance;
        return true;
}
