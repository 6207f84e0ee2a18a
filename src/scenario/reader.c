/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define WORDS_MAX 512

int reader_fail(struct reader *reader, const char *format, ...)
{
        va_list args;
        int n;

        if (reader->problem[0])
                return -EINVAL;
        n = snprintf(reader->problem, sizeof(reader->problem),
                     "%s: ", reader->place[0] ? reader->place : "the document");
        va_start(args, format);
        vsnprintf(reader->problem + n, sizeof(reader->problem) - (size_t)n, format, args);
        va_end(args);
        return -EINVAL;
}

/* Places: a longer one than there is room for is cut. */

void reader_set_place(struct reader *reader, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(reader->place, sizeof(reader->place), format, args);
        va_end(args);
}

static size_t enter(struct reader *reader, const char *name)
{
        size_t length = strlen(reader->place);

        snprintf(reader->place + length, sizeof(reader->place) - length, "%s%s", length ? "." : "",
                 name);
        return length;
}

static size_t enter_entry(struct reader *reader, size_t index)
{
        size_t length = strlen(reader->place);

        snprintf(reader->place + length, sizeof(reader->place) - length, "[%zu]", index);
        return length;
}

static void leave(struct reader *reader, size_t length)
{
        reader->place[length] = '\0';
}

/* What is allowed, as words. */

static void add_word(char *words, const char *word)
{
        size_t length = strlen(words);

        snprintf(words + length, WORDS_MAX - length, "%s%s", length ? ", " : "", word);
}

static int fail_unknown(struct reader *reader, const char *name, const struct field *fields)
{
        char words[WORDS_MAX] = "";

        for (; fields->name; fields++)
                add_word(words, fields->name);
        return reader_fail(reader, "there is no member '%.64s' here; allowed: %s", name, words);
}

static const char *type_name(const json_t *value)
{
        static const char *const names[] = {
                [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "text",
                [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
                [JSON_FALSE] = "false",      [JSON_NULL] = "null",
        };

        return names[json_typeof(value)];
}

/* The kinds. */

static int read_text(struct reader *reader, const json_t *value, const struct field *field,
                     char *to)
{
        if (!json_is_string(value))
                return reader_fail(reader, "must be text, not %s", type_name(value));
        if (json_string_length(value) >= field->size)
                return reader_fail(reader, "is too long; allowed: %zu bytes", field->size - 1);
        if (strlen(json_string_value(value)) != json_string_length(value))
                return reader_fail(reader, "has a NUL character in it");
        memcpy(to, json_string_value(value), json_string_length(value) + 1);
        return 0;
}

static int read_integer(struct reader *reader, const json_t *value, uint64_t min, uint64_t max,
                        uint64_t *ret_value)
{
        json_int_t number = json_integer_value(value);

        if (!json_is_integer(value))
                return reader_fail(reader, "must be a whole number, not %s",
                                   json_is_real(value) ? "a fraction" : type_name(value));
        if (number < 0 || (uint64_t)number < min || (uint64_t)number > max)
                return reader_fail(reader, "is %" JSON_INTEGER_FORMAT "; allowed: %llu to %llu",
                                   number, (unsigned long long)min, (unsigned long long)max);
        *ret_value = (uint64_t)number;
        return 0;
}

static int read_size(struct reader *reader, const json_t *value, uint64_t *to)
{
        if (json_is_integer(value))
                return read_integer(reader, value, 0, INT64_MAX, to);
        if (!json_is_string(value) || size_parse(to, json_string_value(value)) < 0)
                return reader_fail(reader, "is not a size; allowed: bytes, or text as \"40G\" or "
                                           "\"512 MiB\"");
        return 0;
}

static int read_seconds(struct reader *reader, const json_t *value, double *to)
{
        if (!json_is_number(value) || !(json_number_value(value) >= 0) ||
            json_number_value(value) > 1e9)
                return reader_fail(reader, "must be a number of seconds, 0 or more");
        *to = json_number_value(value);
        return 0;
}

static int read_switch(struct reader *reader, const json_t *value, uint32_t *to)
{
        if (!json_is_boolean(value))
                return reader_fail(reader, "must be true or false, not %s", type_name(value));
        *to = json_is_true(value);
        return 0;
}

int reader_choice(struct reader *reader, const json_t *value, const struct choice *choices,
                  uint32_t *ret_value)
{
        const char *word = json_string_value(value);
        char words[WORDS_MAX] = "";

        for (; choices->word; choices++) {
                if (word && strcmp(choices->word, word) == 0) {
                        *ret_value = choices->value;
                        return 0;
                }
                add_word(words, choices->word);
        }
        if (!word)
                return reader_fail(reader, "must be text, not %s; allowed: %s", type_name(value),
                                   words);
        return reader_fail(reader, "there is no '%.64s'; allowed: %s", word, words);
}

int reader_uuid(struct reader *reader, const json_t *value, char *to, size_t size)
{
        static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        const char *text = json_string_value(value);
        bool is_good = text && strlen(text) == strlen(shape) && strlen(text) < size;

        for (size_t i = 0; is_good && shape[i]; i++) {
                is_good = shape[i] == '-' ? text[i] == '-' : isxdigit((unsigned char)text[i]);
                to[i] = (char)tolower((unsigned char)text[i]);
                to[i + 1] = '\0';
        }
        if (!is_good)
                return reader_fail(reader, "is not a UUID; allowed: %s, x a hexadecimal digit",
                                   shape);
        return 0;
}

static int read_list(struct reader *reader, const json_t *value, field_read_fn read, void *to)
{
        const json_t *entry;
        size_t i;

        if (!json_is_array(value))
                return reader_fail(reader, "must be a list, not %s", type_name(value));
        json_array_foreach(value, i, entry)
        {
                size_t length = enter_entry(reader, i);
                int r = read(reader, entry, to);

                leave(reader, length);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_number(struct reader *reader, const json_t *value, const struct field *field,
                       uint32_t *to)
{
        uint64_t number = 0;
        int r = read_integer(reader, value, field->min, field->max ? field->max : UINT32_MAX,
                             &number);

        if (r == 0)
                *to = (uint32_t)number;
        return r;
}

static int read_field(struct reader *reader, const json_t *value, const struct field *field,
                      void *to)
{
        switch (field->kind) {
        case FIELD_TEXT:
                return read_text(reader, value, field, to);
        case FIELD_NUMBER:
                return read_number(reader, value, field, to);
        case FIELD_LARGE:
                return read_integer(reader, value, field->min, field->max ? field->max : INT64_MAX,
                                    to);
        case FIELD_SIZE:
                return read_size(reader, value, to);
        case FIELD_SECONDS:
                return read_seconds(reader, value, to);
        case FIELD_SWITCH:
                return read_switch(reader, value, to);
        case FIELD_CHOICE:
                return reader_choice(reader, value, field->choices, to);
        case FIELD_UUID:
                return reader_uuid(reader, value, to, field->size);
        case FIELD_LIST:
                return read_list(reader, value, field->read, to);
        case FIELD_OBJECT:
                if (!json_is_object(value))
                        return reader_fail(reader, "must be an object, not %s", type_name(value));
                return field->read(reader, value, to);
        case FIELD_OTHER:
                return field->read(reader, value, to);
        }
        return -EINVAL;
}

static const struct field *find_field(const struct field *fields, const char *name)
{
        for (; fields->name; fields++)
                if (strcmp(fields->name, name) == 0)
                        return fields;
        return NULL;
}

int reader_fields(struct reader *reader, const json_t *value, const struct field *fields, void *to)
{
        const struct field *field;
        const json_t *member;
        const char *name;

        if (!json_is_object(value))
                return reader_fail(reader, "must be an object, not %s", type_name(value));
        json_object_foreach((json_t *)(uintptr_t)value, name,
                            member) if (!find_field(fields, name)) return fail_unknown(reader, name,
                                                                                       fields);
        /* In the order of the table, so that one member may rely on another. */
        for (field = fields; field->name; field++) {
                size_t length = enter(reader, field->name);
                int r = 0;

                member = json_object_get(value, field->name);
                if (member)
                        r = read_field(reader, member, field, (char *)to + field->offset);
                else if (field->is_required)
                        r = reader_fail(reader, "is missing");
                leave(reader, length);
                if (r < 0)
                        return r;
        }
        return 0;
}

void *reader_grow(void **entries, size_t *n, size_t size)
{
        char *more = realloc(*entries, (*n + 1) * size);

        if (!more)
                return NULL;
        *entries = more;
        return memset(more + (*n)++ * size, 0, size);
}
