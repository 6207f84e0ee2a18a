/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DURATION_H
#define CLI_DURATION_H

/* Durations as people write them, and how a vGPU leaves its GPU by itself. */

#include <stdbool.h>
#include <stddef.h>

/*
 * duration_parse() - "500ms", "30s", "5m", "1.5h" or "7d"; a number without a unit is seconds. More than 0.
 * The same for all commands and options. Errors: -EINVAL.
 */
int duration_parse(double *ret_seconds, const char *text);

/* duration_parse_or_never() - the same, and "never" is 0. */
int duration_parse_or_never(double *ret_seconds, const char *text);

#define DURATION_TEXT_MAX 32
#define DURATION_EXAMPLE  "write it as 500ms, 30s, 5m or 1h; without a unit it is seconds"
#define DURATION_OR_NEVER "write it as 30s, 5m or 1h; 'never' ends it"

/* duration_format() - "30 s", "5 min", "1.5 h". Returns @text. */
char *duration_format(char text[DURATION_TEXT_MAX], double seconds);

/* duration_parse_how() - "suspend" or "keep-context". Errors: -EINVAL. */
int duration_parse_how(bool *ret_keeps_context, const char *text);
const char *duration_get_how(bool keeps_context);

#endif
