/* SPDX-License-Identifier: Apache-2.0 */
/* From a struct to JSON: as jansson's values, and as text. */
#include <stdint.h>
#include <string.h>

#include "record/record.h"
#include "record/writer.h"

static const char *get_word(const struct record_words *words, unsigned int value)
{
        return words->word[value < words->n ? value : 0];
}

/* Of a member that is a pointer to anything. */
static const void *get_pointer(const void *member)
{
        const void *value;

        memcpy(&value, member, sizeof(value));
        return value;
}

static size_t get_count(const struct record_field *field, const void *object)
{
        return *(const size_t *)((const char *)object + field->count_offset);
}

/* Of a list that is not there too: it is left out. */
static bool is_left_out(const struct record_field *field, const void *member)
{
        switch (field->type) {
        case RECORD_SECONDS:
                return *(const double *)member < 0;
        case RECORD_LIST:
        case RECORD_PART:
                return !get_pointer(member);
        default:
                return false;
        }
}

static json_t *make_list(const struct record *record, const void *const *items, size_t n)
{
        CLEANUP(json_decrefp) json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(array, record_make(record, items[i])) < 0)
                        return NULL;
        return json_incref(array);
}

static json_t *make_value(const struct record_field *field, const void *object)
{
        const void *member = (const char *)object + field->offset;

        switch (field->type) {
        case RECORD_TEXT:
                return json_string(*(const char *const *)member);
        case RECORD_U64:
                return json_integer((json_int_t) * (const uint64_t *)member);
        case RECORD_U32:
                return json_integer(*(const uint32_t *)member);
        case RECORD_I32:
                return json_integer(*(const int32_t *)member);
        case RECORD_SECONDS:
                return json_real(*(const double *)member);
        case RECORD_TIME:
                return json_integer(*(const int64_t *)member);
        case RECORD_BOOL:
                return json_boolean(*(const bool *)member);
        case RECORD_WORD:
                return json_string(get_word(field->words, *(const unsigned int *)member));
        case RECORD_PART:
                return record_make(field->record, get_pointer(member));
        case RECORD_LIST:
                break;
        }
        return make_list(field->record, get_pointer(member), get_count(field, object));
}

json_t *record_make(const struct record *record, const void *object)
{
        CLEANUP(json_decrefp) json_t *json = json_object();

        for (size_t i = 0; i < record->n_fields; i++) {
                const struct record_field *field = &record->fields[i];
                json_t *value;
                int r;

                if (is_left_out(field, (const char *)object + field->offset))
                        continue;
                value = make_value(field, object);
                r = *field->name ? json_object_set_new(json, field->name, value)
                                 : json_object_update_new(json, value);
                if (r < 0)
                        return NULL;
        }
        return json_incref(json);
}

static void write_list(const struct record_field *field, const void *object, struct writer *writer)
{
        const void *const *items = get_pointer((const char *)object + field->offset);
        size_t n = get_count(field, object);

        writer_begin_array(writer, field->name);
        for (size_t i = 0; i < n; i++) {
                writer_begin_object(writer, NULL);
                record_write(field->record, items[i], writer);
                writer_end_object(writer);
        }
        writer_end_array(writer);
}

static void write_part(const struct record_field *field, const void *object, struct writer *writer)
{
        const void *part = get_pointer((const char *)object + field->offset);

        if (*field->name)
                writer_begin_object(writer, field->name);
        record_write(field->record, part, writer);
        if (*field->name)
                writer_end_object(writer);
}

static void write_field(const struct record_field *field, const void *object, struct writer *writer)
{
        const void *member = (const char *)object + field->offset;

        switch (field->type) {
        case RECORD_TEXT:
                return writer_text(writer, field->name, *(const char *const *)member);
        case RECORD_U64:
                return writer_integer(writer, field->name, (int64_t) * (const uint64_t *)member);
        case RECORD_U32:
                return writer_integer(writer, field->name, *(const uint32_t *)member);
        case RECORD_I32:
                return writer_integer(writer, field->name, *(const int32_t *)member);
        case RECORD_SECONDS:
                return writer_real(writer, field->name, *(const double *)member);
        case RECORD_TIME:
                return writer_real(writer, field->name, (double)*(const int64_t *)member);
        case RECORD_BOOL:
                return writer_boolean(writer, field->name, *(const bool *)member);
        case RECORD_WORD:
                return writer_text(writer, field->name,
                                   get_word(field->words, *(const unsigned int *)member));
        case RECORD_PART:
                return write_part(field, object, writer);
        case RECORD_LIST:
                return write_list(field, object, writer);
        }
}

void record_write(const struct record *record, const void *object, struct writer *writer)
{
        for (size_t i = 0; i < record->n_fields; i++)
                if (!is_left_out(&record->fields[i],
                                 (const char *)object + record->fields[i].offset))
                        write_field(&record->fields[i], object, writer);
}
