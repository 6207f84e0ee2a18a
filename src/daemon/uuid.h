/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_UUID_H
#define DAEMON_UUID_H

#include <stdint.h>

#define UUID_TEXT_MAX 37

/* uuid_make() - make a random UUID (version 4) as 8-4-4-4-12. Errors: those of getrandom(). */
int uuid_make(char text[UUID_TEXT_MAX]);

/* uuid_parse() - read 8-4-4-4-12, with or without "GPU-" before it. Errors: -EINVAL. */
int uuid_parse(uint8_t bytes[16], const char *text);

#endif
