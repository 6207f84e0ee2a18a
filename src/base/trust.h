/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TRUST_H
#define BASE_TRUST_H

/*
 * Trust: a program that looks for a manager by itself believes only root and its own user. If
 * $OPENVGPU_RUN names the run directory, the program also believes the owner of that directory, but
 * still loads no code from there.
 *
 * The default run directory can be in /tmp, where anybody could create it first. Libc only.
 */

#include <stdbool.h>
#include <sys/types.h>

/* trust_user() - is it root, or we? */
bool trust_user(uid_t uid);

/* trust_peer() - may we do what whoever listens to the connected @socket says? */
bool trust_peer(int socket);

/*
 * trust_open() - the plain file @path, for reading; no link is followed that is not root's or ours
 * @is_given:  somebody has named it whom we believe; else all directories on the way and the file
 *             itself are such that only root and we can change them
 *
 * Of a path that nobody else can change, what is true of the file stays true of the path.
 * Returns a descriptor. Errors: -EACCES, not to be believed; those of open().
 */
int trust_open(const char *path, bool is_given);

#endif
