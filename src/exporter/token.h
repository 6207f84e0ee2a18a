/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_TOKEN_H
#define EXPORTER_TOKEN_H

/*
 * The token: whoever has it may see and do what this program may see and do. It is in a file that nobody else may
 * read, and in the header of each request: "Authorization: Bearer TOKEN". A browser sends that for no other page.
 */

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_MIN     32
#define TOKEN_MAX     256
#define TOKEN_WHY_MAX 512

struct token {
        char text[TOKEN_MAX + 1]; /* all of it is compared */
        size_t size;
};

/*
 * token_load() - read the first line of the file; one that is not there is made, with a new token
 * @why:  gets a line on what is wrong
 *
 * A file that anybody else may read or write is refused: -EACCES. What is no token: -EINVAL.
 */
int token_load(struct token *ret_token, const char *path, char *why, size_t room);

/* token_parse() - one line of TOKEN_MIN to TOKEN_MAX printable characters without blanks. False: it is none. */
bool token_parse(struct token *ret_token, const char *text);

/* token_matches() - @authorization: the header, or NULL. It takes as long for each that has the form. */
bool token_matches(const struct token *token, const char *authorization);

#endif
