/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

/*
 * Makes foreign text safe to print. A guest chooses its process name, and an escape sequence in the
 * name would otherwise reach the administrator's terminal.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * text_clean() - copy @from into @to of @room bytes, as one line of valid UTF-8 without control
 * characters ('?' stands for those), cut between characters if it is too long. Returns @to.
 */
char *text_clean(char *to, size_t room, const char *from);

/*
 * text_measure() - bytes of the character of UTF-8 that @text begins with; 0: it begins with none, or with a control
 * character. text_mend() - put '?' in the place of each such byte of @text. Returns @text.
 */
size_t text_measure(const char *text);
char *text_mend(char *text);

/* text_width() - columns on a terminal, by the simple rule that a character takes one. */
size_t text_width(const char *text);

/*
 * text_distance() - how many letters must be inserted, deleted, replaced or swapped with their
 * neighbour to make @b of @a: for "did you mean". Texts of 32 letters or more are infinitely far.
 */
size_t text_distance(const char *a, const char *b);

/*
 * text_is_closer() - may @name be meant for @other, by fewer errors than @fewest tells? Then @fewest is
 * set. Begin with TEXT_LEAST: more than two errors, or in more than half of its letters, are another word.
 */
#define TEXT_LEAST 3
bool text_is_closer(const char *name, const char *other, size_t *fewest);

#endif
