/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_XID_H
#define EXPORTER_XID_H

/*
 * XID errors: NVML tells them as events, and only to those who wait. A thread waits from the first
 * question on and counts them, for each device and number.
 */

#include <stddef.h>
#include <stdint.h>

#include "exporter/text.h"

#define XID_UUID_MAX 64

/* Different numbers of one device; what comes beyond is counted as one, XID_OTHERS. */
#define XID_NUMBERS_MAX 16
#define XID_OTHERS      UINT32_MAX

struct xid_count {
        char uuid[XID_UUID_MAX]; /* of the device */
        uint32_t number;
        uint64_t count;
        double last; /* seconds since the epoch */
};

struct xid;

/* xid_new() - opens nothing yet. xid_free() - a thread that a driver holds is left behind. Returns NULL. */
int xid_new(struct xid **ret_xid);
struct xid *xid_free(struct xid *xid);

/*
 * xid_read() - what was counted so far; the first call begins to count
 * @ret_counts:  freed by the caller; in the order in which they came first
 */
int xid_read(struct xid *xid, struct xid_count **ret_counts, size_t *ret_n);

#endif
