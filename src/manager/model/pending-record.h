/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PENDING_RECORD_H
#define MANAGER_PENDING_RECORD_H

#include <stdint.h>

/* What was seen of what processes ask the driver for: pending.h. */
struct pending {
        uint64_t since_ns, seen_ns; /* the looks: since the last term, and the last one */
        uint64_t least;             /* bytes, since then */
        uint64_t stale;             /* bytes that are not believed */
};

#endif
