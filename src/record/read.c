/* SPDX-License-Identifier: Apache-2.0 */
/* From JSON to a struct. What vgpud answers is not trusted: each value is checked. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "record/memory.h"
#include "record/record.h"

static bool read_integer(const json_t *json, json_int_t least, json_int_t most,
                         json_int_t *ret_value)
{
        json_int_t value = json_integer_value(json);

        if (!json_is_integer(json) || value < least || value > most)
                return false;
        *ret_value = value;
        return true;
}

static bool read_u64(void *member, const json_t *json)
{
        json_int_t value;

        if (!read_integer(json, 0, INT64_MAX, &value))
                return false;
        *(uint64_t *)member = (uint64_t)value;
        return true;
}

static bool read_u32(void *member, const json_t *json)
{
        json_int_t value;

        if (!read_integer(json, 0, UINT32_MAX, &value))
                return false;
        *(uint32_t *)member = (uint32_t)value;
        return true;
}

static bool read_i32(void *member, const json_t *json)
{
        json_int_t value;

        if (!read_integer(json, INT32_MIN, INT32_MAX, &value))
                return false;
        *(int32_t *)member = (int32_t)value;
        return true;
}

/* Within 2^53 both forms of a number are exact; no time is near it. */
static bool read_seconds(void *member, const json_t *json)
{
        double value = json_number_value(json);

        if (!json_is_number(json) || value < 0 || value > 0x1p53)
                return false;
        *(double *)member = value;
        return true;
}

static bool read_time(void *member, const json_t *json)
{
        double value;

        if (!read_seconds(&value, json))
                return false;
        *(int64_t *)member = (int64_t)value;
        return true;
}

static bool read_bool(void *member, const json_t *json)
{
        if (!json_is_boolean(json))
                return false;
        *(bool *)member = json_is_true(json);
        return true;
}

static bool read_text(void *member, const json_t *json)
{
        if (!json_is_string(json))
                return false;
        *(const char **)member = json_string_value(json);
        return true;
}

static bool (*const readers[])(void *, const json_t *) = {
        [RECORD_TEXT] = read_text, [RECORD_U64] = read_u64,         [RECORD_U32] = read_u32,
        [RECORD_I32] = read_i32,   [RECORD_SECONDS] = read_seconds, [RECORD_TIME] = read_time,
        [RECORD_BOOL] = read_bool,
};

static int read_word(const struct record_words *words, const json_t *json, unsigned int *ret_value)
{
        if (!json_is_string(json))
                return -EBADMSG;
        *ret_value = 0;
        for (size_t i = 0; i < words->n; i++)
                if (strcmp(words->word[i], json_string_value(json)) == 0)
                        *ret_value = (unsigned int)i;
        return 0;
}

/* Into a member that is a pointer to something else. */
static void set_pointer(void *member, const void *value)
{
        memcpy(member, &value, sizeof(value));
}

static int read_part(const struct record_field *field, const json_t *json, void *object,
                     struct record_memory *memory, const char **ret_bad)
{
        void *part = record_memory_get(memory, 1, field->record->size);

        if (!part)
                return -ENOMEM;
        set_pointer((char *)object + field->offset, part);
        return record_read(field->record, json, part, memory, ret_bad);
}

static int read_list(const struct record_field *field, const json_t *json, void *object,
                     struct record_memory *memory, const char **ret_bad)
{
        size_t n = json_array_size(json), size = field->record->size;
        const void **pointers = record_memory_get(memory, n + 1, sizeof(*pointers));
        char *items = record_memory_get(memory, n + 1, size);
        int r = 0;

        if (!pointers || !items)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < n; i++) {
                pointers[i] = items + i * size;
                r = record_read(field->record, json_array_get(json, i), items + i * size, memory,
                                ret_bad);
        }
        set_pointer((char *)object + field->offset, pointers);
        *(size_t *)((char *)object + field->count_offset) = n;
        return r;
}

/* The object came zeroed, so only a text needs something in place of its value. */
static int read_nothing(const struct record_field *field, void *member)
{
        if (field->type == RECORD_TEXT)
                *(const char **)member = "";
        return 0;
}

static int read_field(const struct record_field *field, const json_t *json, void *object,
                      struct record_memory *memory, const char **ret_bad)
{
        const json_t *value = json_object_get(json, field->name);
        void *member = (char *)object + field->offset;

        if (!*field->name)
                return read_part(field, json, object, memory, ret_bad);
        if (field->is_optional && (!value || json_is_null(value)))
                return read_nothing(field, member);
        *ret_bad = field->name;
        switch (field->type) {
        case RECORD_WORD:
                return read_word(field->words, value, member);
        case RECORD_PART:
                return json_is_object(value) ? read_part(field, value, object, memory, ret_bad)
                                             : -EBADMSG;
        case RECORD_LIST:
                return json_is_array(value) ? read_list(field, value, object, memory, ret_bad)
                                            : -EBADMSG;
        default:
                return readers[field->type](member, value) ? 0 : -EBADMSG;
        }
}

int record_read(const struct record *record, const json_t *json, void *object,
                struct record_memory *memory, const char **ret_bad)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < record->n_fields; i++)
                r = read_field(&record->fields[i], json, object, memory, ret_bad);
        return r;
}
