/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_READER_H
#define SCENARIO_READER_H

/*
 * Fills structs from JSON by tables of fields. An error says where (vgpus[2].licence.state), what
 * is wrong, and what is allowed there.
 *
 * The first error stays; everything after it is skipped and answers -EINVAL. A number that is not
 * given keeps the struct's former value.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
        char place[256];
        char problem[1024]; /* "PLACE: what; allowed: ..."; "" while all is well */
};

/* reader_set_place() - the next error is about this place. */
__attribute__((format(printf, 2, 3))) void reader_set_place(struct reader *reader,
                                                            const char *format, ...);

/* reader_fail() - at the present place. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int reader_fail(struct reader *reader, const char *format,
                                                      ...);

enum field_kind {
        FIELD_TEXT,    /* char[@size] */
        FIELD_NUMBER,  /* uint32_t, @min to @max */
        FIELD_LARGE,   /* uint64_t, @min to @max */
        FIELD_SIZE,    /* uint64_t, bytes: a number, or text as "40G" */
        FIELD_SECONDS, /* double, 0 and above */
        FIELD_SWITCH,  /* uint32_t, 0 or 1 */
        FIELD_CHOICE,  /* uint32_t, by its word in @choices */
        FIELD_UUID,    /* char[@size], 8-4-4-4-12, in small letters */
        FIELD_OBJECT,  /* by @read, of the struct at the offset */
        FIELD_LIST,    /* likewise, once for each entry */
        FIELD_OTHER,   /* likewise; any JSON */
};

struct choice {
        const char *word; /* NULL ends a table */
        uint32_t value;
};

struct field;
typedef int (*field_read_fn)(struct reader *reader, const json_t *value, void *to);

struct field {
        const char *name; /* NULL ends a table */
        enum field_kind kind;
        bool is_required;
        size_t offset;
        size_t size;
        uint64_t min, max;
        const struct choice *choices;
        field_read_fn read;
};

/* reader_fields() - the members of the object @value into @to; no others may be there. */
int reader_fields(struct reader *reader, const json_t *value, const struct field *fields, void *to);

/* reader_choice() - a word of @choices. */
int reader_choice(struct reader *reader, const json_t *value, const struct choice *choices,
                  uint32_t *ret_value);

/* reader_uuid() - as FIELD_UUID, into @to of @size bytes. */
int reader_uuid(struct reader *reader, const json_t *value, char *to, size_t size);

/* reader_grow() - one more zeroed entry of @size bytes; NULL when out of memory. */
void *reader_grow(void **entries, size_t *n, size_t size);

#endif
