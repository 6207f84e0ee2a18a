/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

/*
 * A record: a struct that travels as a JSON object, described by a table of its members.
 *
 * The tables are generated from the public headers (records.h, abi/records.abi). vgpud fills in a
 * struct and writes it, the library reads the same struct, the command writes it again. No other
 * place names the members.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h" /* CLEANUP(json_decrefp): jansson has the handler */

struct record;
struct writer;

enum record_type {
        RECORD_TEXT,    /* const char * */
        RECORD_U64,     /* uint64_t; JSON's integers end at INT64_MAX */
        RECORD_U32,     /* uint32_t */
        RECORD_I32,     /* int32_t */
        RECORD_SECONDS, /* double, or less than 0: not known, and left out */
        RECORD_TIME,    /* int64_t, read from any number */
        RECORD_BOOL,    /* bool */
        RECORD_WORD,    /* an enum from 0 on; a word that is not known is read as 0 */
        RECORD_PART,    /* pointer to the struct of another record */
        RECORD_LIST,    /* array of pointers to such structs, and their count */
};

struct record_words {
        const char *const *word;
        size_t n;
};

struct record_field {
        const char *name; /* ""; of a RECORD_PART whose members stand in the object itself */
        enum record_type type;
        size_t offset;
        size_t count_offset;              /* RECORD_LIST: a size_t */
        const struct record *record;      /* RECORD_LIST, RECORD_PART */
        const struct record_words *words; /* RECORD_WORD */
        bool is_optional;                 /* may be missing or null: then 0, false or "" */
};

struct record {
        size_t size; /* of the struct */
        const struct record_field *fields;
        size_t n_fields;
};

/* The parts and lists of what record_read() has read. All zero: nothing yet. */
struct record_memory {
        struct record_piece *pieces;
};

void record_memory_deinit(struct record_memory *memory);

/*
 * record_read() - fill @object, which is all zero, from @json
 * @memory:   gets the parts and lists of @object
 * @ret_bad:  -EBADMSG: the first name of which @json has no usable value; @object is half filled
 *
 * Texts are not copied: they point into @json. A name that the record does not have is ignored.
 *
 * Errors: -EBADMSG. -ENOMEM.
 */
int record_read(const struct record *record, const json_t *json, void *object,
                struct record_memory *memory, const char **ret_bad);

/*
 * record_parse() - the same from text as our programs write it, in a tenth of the time
 * @text:  where the object begins; behind it when it was read. It is changed, and @object points into it
 *
 * Errors: -EBADMSG, something is missing or not as usual: record_read() knows what, or whether it is right
 * nevertheless. -ENOMEM. @text and @object are worth nothing then.
 */
int record_parse(const struct record *record, char **text, void *object,
                 struct record_memory *memory);

/* record_make() - @object as JSON, a new reference; NULL: out of memory. A list that is NULL is left out. */
json_t *record_make(const struct record *record, const void *object);

/*
 * record_write() - the members of @object as text, into the object that @writer has begun. A list
 * that is NULL is left out: who has very many elements writes them one by one.
 */
void record_write(const struct record *record, const void *object, struct writer *writer);

#endif
