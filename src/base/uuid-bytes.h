/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_UUID_BYTES_H
#define BASE_UUID_BYTES_H

/* A UUID's 16 bytes, from its text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline int uuid_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* uuid_to_bytes() - 32 hexadecimal digits, with dashes anywhere. False: it is something else. */
static inline bool uuid_to_bytes(const char *text, uint8_t ret_bytes[16])
{
        size_t n = 0;

        for (; *text; text++) {
                int value = uuid_digit(*text);

                if (*text == '-')
                        continue;
                if (value < 0 || n == 32)
                        return false;
                ret_bytes[n / 2] = (uint8_t)(n % 2 ? ret_bytes[n / 2] | value : value << 4);
                n++;
        }
        return n == 32;
}

#endif
