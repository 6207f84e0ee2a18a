/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_JSON_H
#define LIB_JSON_H

/*
 * Fills a struct from a JSON object, by a table of its members.
 *
 * Texts are not copied: they point into the JSON object, which the result keeps.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h" /* CLEANUP(json_decrefp): jansson has the handler */

enum json_field_type {
        JSON_FIELD_TEXT,    /* const char * */
        JSON_FIELD_U64,     /* uint64_t */
        JSON_FIELD_U32,     /* uint32_t */
        JSON_FIELD_I32,     /* int32_t */
        JSON_FIELD_SECONDS, /* double, not negative */
        JSON_FIELD_TIME,    /* int64_t, from any number */
        JSON_FIELD_BOOL,    /* bool */
};

struct json_field {
        const char *name;
        enum json_field_type type;
        size_t offset;
        bool is_optional; /* may be missing or null: then 0, false or "" */
};

#define JSON_FIELD(type_, struct_, member_, name_)           \
        {                                                    \
                .name = (name_), .type = JSON_FIELD_##type_, \
                .offset = offsetof(struct struct_, member_)  \
        }

/*
 * json_decode() - fill @object from @json
 *
 * Members that the table does not have are ignored. Returns NULL, or the first name of which @json
 * has no usable value; @object is then half filled.
 */
const char *json_decode(void *object, const json_t *json, const struct json_field *fields,
                        size_t n_fields);

#endif
