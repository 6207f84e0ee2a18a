/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json.h"

#include <stdint.h>
#include <string.h>

static bool decode_integer(json_int_t *ret_value, const json_t *json, json_int_t least,
                           json_int_t most)
{
        json_int_t value = json_integer_value(json);

        if (!json_is_integer(json) || value < least || value > most)
                return false;
        *ret_value = value;
        return true;
}

/* An integer in a wider type is copied into the narrower one that the struct has. */
static bool decode_integer_as(void *member, const json_t *json, enum json_field_type type)
{
        json_int_t value;

        switch (type) {
        case JSON_FIELD_U64:
                if (!decode_integer(&value, json, 0, INT64_MAX))
                        return false;
                memcpy(member, &(uint64_t){ (uint64_t)value }, sizeof(uint64_t));
                return true;
        case JSON_FIELD_U32:
                if (!decode_integer(&value, json, 0, UINT32_MAX))
                        return false;
                memcpy(member, &(uint32_t){ (uint32_t)value }, sizeof(uint32_t));
                return true;
        default:
                if (!decode_integer(&value, json, INT32_MIN, INT32_MAX))
                        return false;
                memcpy(member, &(int32_t){ (int32_t)value }, sizeof(int32_t));
                return true;
        }
}

static bool decode_number_as(void *member, const json_t *json, enum json_field_type type)
{
        double value = json_number_value(json);

        /* Within 2^53 both forms of a number are exact; no time is near it. */
        if (!json_is_number(json) || value < 0 || value > 0x1p53)
                return false;
        if (type == JSON_FIELD_TIME)
                memcpy(member, &(int64_t){ (int64_t)value }, sizeof(int64_t));
        else
                memcpy(member, &value, sizeof(value));
        return true;
}

static bool decode_member(void *member, const json_t *json, enum json_field_type type)
{
        switch (type) {
        case JSON_FIELD_TEXT:
                if (!json_is_string(json))
                        return false;
                memcpy(member, &(const char *){ json_string_value(json) }, sizeof(const char *));
                return true;
        case JSON_FIELD_BOOL:
                if (!json_is_boolean(json))
                        return false;
                memcpy(member, &(bool){ json_is_true(json) }, sizeof(bool));
                return true;
        case JSON_FIELD_SECONDS:
        case JSON_FIELD_TIME:
                return decode_number_as(member, json, type);
        case JSON_FIELD_U64:
        case JSON_FIELD_U32:
        case JSON_FIELD_I32:
                break;
        }
        return decode_integer_as(member, json, type);
}

/* The struct came zeroed, so only a text needs something in place of its value. */
static void decode_absent(void *member, enum json_field_type type)
{
        if (type == JSON_FIELD_TEXT)
                memcpy(member, &(const char *){ "" }, sizeof(const char *));
}

const char *json_decode(void *object, const json_t *json, const struct json_field *fields,
                        size_t n_fields)
{
        for (size_t i = 0; i < n_fields; i++) {
                const json_t *value = json_object_get(json, fields[i].name);
                void *member = (char *)object + fields[i].offset;

                if (fields[i].is_optional && (!value || json_is_null(value)))
                        decode_absent(member, fields[i].type);
                else if (!decode_member(member, value, fields[i].type))
                        return fields[i].name;
        }
        return NULL;
}
