/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/uuid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

int uuid_make(char text[UUID_TEXT_MAX])
{
        uint8_t b[16];

        if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
                return -errno;
        b[6] = (uint8_t)((b[6] & 0x0f) | 0x40); /* RFC 9562: version 4, ... */
        b[8] = (uint8_t)((b[8] & 0x3f) | 0x80); /* ... variant 10 */
        snprintf(text, UUID_TEXT_MAX,
                 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
                 b[15]);
        return 0;
}

int uuid_parse(uint8_t bytes[16], const char *text)
{
        const char *at = strncmp(text, "GPU-", 4) == 0 ? text + 4 : text;
        uint8_t parsed[16];

        for (int i = 0; i < 16; i++) {
                if ((i == 4 || i == 6 || i == 8 || i == 10) && *at++ != '-')
                        return -EINVAL;
                if (strspn(at, "0123456789abcdefABCDEF") < 2 ||
                    sscanf(at, "%2hhx", &parsed[i]) != 1)
                        return -EINVAL;
                at += 2;
        }
        if (*at)
                return -EINVAL;
        memcpy(bytes, parsed, sizeof(parsed));
        return 0;
}
