/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/host-name.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_ 256 /* a name of the DNS is shorter */

/* "name:9477" and "[::1]:9477" without the port, the brackets and a final dot. False: it is none. */
static bool copy_name(char *to, const char *host)
{
        const char *end = *host == '[' ? strchr(host, ']') : strchrnul(host, ':');
        size_t n;

        if (*host == '[')
                host++;
        if (!end || end == host || (size_t)(end - host) >= NAME_MAX_)
                return false;
        n = (size_t)(end - host);
        memcpy(to, host, n);
        to[n] = '\0';
        if (n > 1 && to[n - 1] == '.')
                to[n - 1] = '\0';
        return true;
}

static bool is_address(const char *name)
{
        struct in6_addr address;

        return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

bool host_name_is_name(const char *text)
{
        size_t n =
                strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");

        return n > 0 && n < NAME_MAX_ && text[n] == '\0' && text[n - 1] != '.';
}

bool host_name_is_allowed(const struct host_names *allowed, const char *host)
{
        char name[NAME_MAX_];

        if (!host) /* every browser sends it */
                return true;
        if (!copy_name(name, host))
                return false;
        if (is_address(name) || strcasecmp(name, "localhost") == 0)
                return true;
        for (size_t i = 0; i < allowed->n; i++)
                if (strcasecmp(name, allowed->names[i]) == 0)
                        return true;
        return false;
}
