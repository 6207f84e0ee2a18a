/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CROWD_H
#define DAEMON_CROWD_H

/*
 * How many of a kind there are (connections, say). When most of a large crowd has gone, the C library is told to
 * give back to the kernel what they had: by itself it keeps all that lies below the last block in use.
 */

#include <stdbool.h>
#include <stddef.h>

struct crowd {
        size_t n, most; /* now; and since memory was given back last */
};

void crowd_come(struct crowd *crowd);

/* crowd_go() - when all that was kept for it has been freed. Returns whether memory was given back. */
bool crowd_go(struct crowd *crowd);

#endif
