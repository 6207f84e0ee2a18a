/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELPER_KEEPER_START_H
#define HELPER_KEEPER_START_H

/*
 * Starting a keeper.
 *
 * We make the listening socket and hand it to the keeper as its descriptor 3, so
 * that connecting needs no waiting for the new process. It is started by a child
 * that ends at once: the keeper belongs to init, not to us, and does not get the
 * signals of our session.
 */

#include <sys/un.h>

/* keeper_start() - it listens at @address when this returns 0. Errors: as execve(2) and bind(2). */
int keeper_start(char *program, const struct sockaddr_un *address);

#endif
