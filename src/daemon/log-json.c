/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log-json.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* For the brace at the end. */
#define END_ROOM 2

struct line {
        char *text;
        size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
        size_t room = LOG_JSON_MAX - END_ROOM - line->n;
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(line->text + line->n, room, format, args);
        va_end(args);
        if (n < 0 || (size_t)n >= room) /* what does not fit is left out as a whole */
                line->text[line->n] = '\0';
        else
                line->n += (size_t)n;
}

/* Bytes of other languages are passed on; nothing that could end the line is. */
static void add_text(struct line *line, const char *text, size_t size)
{
        add(line, "\"");
        for (size_t i = 0; i < size; i++)
                if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
                        add(line, "\\u%04x", (unsigned char)text[i]);
                else
                        add(line, text[i] == '"' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
        add(line, "\"");
}

/* 0, 17, -3 and 0.250; but not 007, 1e5 or what begins like a number and is a UUID. */
static bool is_number(const char *text, size_t size)
{
        size_t i = size > 0 && text[0] == '-', first = i, n_points = 0;

        for (; i < size; i++)
                if (text[i] == '.' && i > first && i + 1 < size)
                        n_points++;
                else if (!isdigit((unsigned char)text[i]))
                        return false;
        if (first == size || n_points > 1)
                return false;
        return text[first] != '0' || first + 1 == size || text[first + 1] == '.';
}

/* The end of a value that begins at @text: a quote may be within one that is in quotes. */
static const char *find_end(const char *text, bool is_quoted)
{
        const char *end = text;

        if (!is_quoted)
                return text + strcspn(text, " ");
        while (*end && !(*end == '"' && (end[1] == ' ' || end[1] == '\0')))
                end++;
        return end;
}

/* Returns where the next field begins. */
static const char *add_field(struct line *line, const char *field)
{
        const char *equals = field + strcspn(field, "= "), *value = equals + 1, *end;
        bool is_quoted = *equals == '=' && *value == '"';

        if (*equals != '=') /* no field: a word of a value that should have been in quotes */
                return equals;
        value += is_quoted;
        end = find_end(value, is_quoted);
        add(line, ",");
        add_text(line, field, (size_t)(equals - field));
        add(line, ":");
        if (!is_quoted && is_number(value, (size_t)(end - value)))
                add(line, "%.*s", (int)(end - value), value);
        else
                add_text(line, value, (size_t)(end - value));
        return end + (is_quoted && *end == '"');
}

char *log_json_format(char text[LOG_JSON_MAX], unsigned long long time_ms, const char *level,
                      const char *event, const char *fields)
{
        struct line line = { .text = text };

        add(&line, "{\"time\":%llu.%03llu,\"level\":\"%s\",\"event\":", time_ms / 1000,
            time_ms % 1000, level);
        add_text(&line, event, strlen(event));
        for (fields += strspn(fields, " "); *fields; fields += strspn(fields, " "))
                fields = add_field(&line, fields);
        strcpy(line.text + line.n, "}");
        return text;
}
