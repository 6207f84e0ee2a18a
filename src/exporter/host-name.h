/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_HOST_NAME_H
#define EXPORTER_HOST_NAME_H

/*
 * Which names a request may call this server by. A page from elsewhere can give its own name the address
 * of this machine (DNS rebinding), and its scripts would then read ours as if we had sent that page. But
 * the browser says which name it used: one that nobody gave this server is refused.
 *
 * Allowed: an address, localhost, the host's name, and what the command line names.
 */

#include <stdbool.h>
#include <stddef.h>

#define HOST_NAMES_MAX 8

struct host_names {
        const char *names[HOST_NAMES_MAX]; /* borrowed: the host's own, and others */
        size_t n;
};

/* host_name_is_name() - may it be a name of a host? One that has a port, or a final dot, would fit no request. */
bool host_name_is_name(const char *text);

/* host_name_is_allowed() - @host: the header "Host", with or without a port; NULL: there was none. */
bool host_name_is_allowed(const struct host_names *allowed, const char *host);

#endif
