/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PEER_H
#define MANAGER_PEER_H

/* Who is at the other end of a connection: what the kernel says of the groups that it had when it connected. */

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* peer_has_group() - false also if the kernel does not say. */
bool peer_has_group(int fd, const struct ucred *peer, gid_t group);

#endif
