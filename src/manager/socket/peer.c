/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/socket/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Most users have fewer. Whoever has more is asked for again, with room for all. */
#define GROUPS_USUAL 32

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

static gid_t *get_groups(int fd, size_t *ret_n)
{
        socklen_t size = GROUPS_USUAL * sizeof(gid_t);
        gid_t *groups = malloc(size), *more;
        int r = groups ? getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) : -1;

        if (groups && r < 0 && errno == ERANGE) {
                more = realloc(groups, size);
                groups = more ? more : groups;
                r = more ? getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) : -1;
        }
        *ret_n = r == 0 ? size / sizeof(gid_t) : 0;
        return groups;
}

bool peer_has_group(int fd, const struct ucred *peer, gid_t group)
{
        CLEANUP(freep) gid_t *groups = NULL;
        size_t n;

        if (peer->gid == group)
                return true;
        groups = get_groups(fd, &n);
        for (size_t i = 0; i < n; i++)
                if (groups[i] == group)
                        return true;
        return false;
}
