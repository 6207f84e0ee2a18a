/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_TLS_H
#define EXPORTER_TLS_H

/* The certificate and the key of a server, from files in PEM, for libmicrohttpd. */

#include <stddef.h>

#define TLS_WHY_MAX 512

struct tls {
        char *certificate, *key; /* NULL: there are none */
};

/*
 * tls_load() - read both
 * @why:  gets a line on what is wrong
 *
 * A key that others may read is refused (-EACCES); -EINVAL: a file is no PEM; others: of the file.
 */
int tls_load(struct tls *ret_tls, const char *certificate_path, const char *key_path, char *why,
             size_t room);

void tls_deinit(struct tls *tls);

#endif
