/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_LISTEN_H
#define EXPORTER_LISTEN_H

/* Listening where the command line says. */

#include <stdbool.h>
#include <stddef.h>

#define LISTEN_DEFAULT "127.0.0.1:9477"

/*
 * listen_open() - a listening socket, or a negative errno
 * @where:  "ADDRESS:PORT", "[ADDRESS]:PORT" (numbers; port 0: any), or "unix:PATH"
 * @why:    gets a line on what went wrong
 *
 * A socket that a former exporter left is replaced; one on which somebody listens is not.
 */
int listen_open(const char *where, char *why, size_t room);

/*
 * listen_take_given() - the socket that whoever started us gave us, as systemd does (sd_listen_fds(3))
 *
 * It stays whose it is: others listen on it after us. Errors: -ENOENT, none was given; -EINVAL, it is not one
 * socket that listens; *@why has the words, at most @room bytes.
 */
int listen_take_given(char *why, size_t room);

/* listen_name() - as "http://127.0.0.1:9477" or "unix:/run/x"; @scheme: "http" or "https". Returns @to. */
char *listen_name(int fd, const char *scheme, char *to, size_t room);

/* listen_is_local() - does it reach this machine only? */
bool listen_is_local(int fd);

#endif
