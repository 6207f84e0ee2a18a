/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_WRITER_H
#define RECORD_WRITER_H

/*
 * Writes JSON as it is asked to, into one growing text. For long answers: a tree of thousands of objects
 * takes ten times as long to be made, written and freed as its text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer {
        char *text;
        size_t size, room;
        bool needs_comma;
        bool has_failed; /* no memory */
};

/* @name is that of a member, without anything to be escaped; NULL for an element of an array. */
void writer_begin_object(struct writer *writer, const char *name);
void writer_end_object(struct writer *writer);
void writer_begin_array(struct writer *writer, const char *name);
void writer_end_array(struct writer *writer);
void writer_integer(struct writer *writer, const char *name, int64_t value);
void writer_real(struct writer *writer, const char *name, double value);
void writer_boolean(struct writer *writer, const char *name, bool value);

/* writer_text() - what is no letter of ASCII in @value becomes a question mark. */
void writer_text(struct writer *writer, const char *name, const char *value);

/* writer_take() - the text, to be freed by the caller; NULL: there was no memory for it. */
char *writer_take(struct writer *writer);

#endif
