/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/host-name.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_ 256 /* a name of the DNS is shorter */

/* Behind a name there is a port or nothing. */
static bool is_port(const char *text)
{
        return *text == '\0' || (*text == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

/* "name:9477" and "[::1]:9477" without the port, the brackets and a final dot. False: it is none. */
static bool copy_name(char *to, const char *host, bool *ret_has_brackets)
{
        bool has_brackets = *host == '[';
        const char *end = has_brackets ? strchr(host, ']') : strchrnul(host, ':');
        size_t n;

        if (!end || !is_port(end + has_brackets))
                return false;
        host += has_brackets;
        if (end == host || (size_t)(end - host) >= NAME_MAX_)
                return false;
        *ret_has_brackets = has_brackets;
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
        struct in6_addr address;
        bool has_brackets;
        char name[NAME_MAX_];

        if (!host) /* every browser sends it */
                return true;
        if (!copy_name(name, host, &has_brackets))
                return false;
        if (has_brackets)
                return inet_pton(AF_INET6, name, &address) == 1;
        if (is_address(name) || strcasecmp(name, "localhost") == 0)
                return true;
        for (size_t i = 0; i < allowed->n; i++)
                if (strcasecmp(name, allowed->names[i]) == 0)
                        return true;
        return false;
}
