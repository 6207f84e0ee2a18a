/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_LOG_JSON_H
#define DAEMON_LOG_JSON_H

#include <stddef.h>

/* Room for the longest line that log.c writes: each byte of it may become six. */
#define LOG_JSON_MAX 8192

/*
 * log_json_format() - an event as one line of JSON, without the end of the line
 * @time_ms:  CLOCK_REALTIME
 * @fields:   "key=value key=\"value\" ...", as log_event() has them; what looks like a number is one
 *
 *     {"time":1764000000.250,"level":"info","event":"created","vgpu":"train","device":0}
 *
 * Returns @line.
 */
char *log_json_format(char line[LOG_JSON_MAX], unsigned long long time_ms, const char *level,
                      const char *event, const char *fields);

#endif
