/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DURATION_H
#define CLI_DURATION_H

/* After how long without work a vGPU leaves its GPU, and how it leaves, as people write it. */

#include <stdbool.h>
#include <stddef.h>

/* duration_parse() - "30s", "5m", "1.5h" or seconds; "never" is 0. Errors: -EINVAL. */
int duration_parse(double *ret_seconds, const char *text);

#define DURATION_TEXT_MAX 32
#define DURATION_EXAMPLE  "write it as 30s, 5m or 1h; 'never' ends it"

/* duration_format() - "30 s", "5 min", "1.5 h". Returns @text. */
char *duration_format(char text[DURATION_TEXT_MAX], double seconds);

/* duration_parse_how() - "suspend" or "keep-context". Errors: -EINVAL. */
int duration_parse_how(bool *ret_keeps_context, const char *text);
const char *duration_get_how(bool keeps_context);

#endif
