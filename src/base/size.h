/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

/* Amounts of memory as people write them: "40G", "512MiB", "1.5 GiB", "1073741824". */

#include <stdbool.h>
#include <stdint.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

/*
 * size_parse() - bytes from text. K, M, G, T with or without "iB" or "B" are powers of 1024; no
 * unit is bytes; a fraction is allowed before a unit. Errors: -EINVAL (not a size), -ERANGE.
 *
 * Programs write bytes, people forget the unit: size_lacks_unit() tells "40", which cannot be meant as
 * bytes, from "42949672960". Where a quota or a limit is asked for, such a number is refused.
 */
int size_parse(uint64_t *ret_bytes, const char *text);
bool size_lacks_unit(const char *text);

/* Room for the longest text of size_format(). */
#define SIZE_TEXT_MAX 32

/* size_format() - "31.8 GiB", "512 MiB", "17 B" into @text of SIZE_TEXT_MAX bytes; returns @text. */
char *size_format(char *text, uint64_t bytes);

#endif
