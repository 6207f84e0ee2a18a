/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELPER_KEEPER_START_H
#define HELPER_KEEPER_START_H

/*
 * Starting a keeper.
 *
 * The manager makes the listening socket and hands it to the keeper as descriptor 3,
 * so that a connection need not wait for the new process. A child that ends at once
 * starts the keeper: the keeper then belongs to init, and does not get the signals of
 * the manager's session.
 */

#include <sys/un.h>

/* keeper_start() - it listens at @address when this returns 0. Errors: as execve(2) and bind(2). */
int keeper_start(char *program, const struct sockaddr_un *address);

#endif
