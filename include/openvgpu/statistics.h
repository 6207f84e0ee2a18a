/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_STATISTICS_H
#define OPENVGPU_STATISTICS_H

/*
 * Statistics: how vgpud itself does: since when it runs, whether usage reaches the ledger, and how the
 * operations ended that it has made. They begin anew with each vgpud.
 *
 * Units:    seconds as real numbers; bytes.
 * Threads:  see client.h; a result may be read by any number of threads.
 * Errors:   those of client.h; VGPU_ERROR_METHOD_NOT_FOUND: a vgpud that does not count.
 * Source:   docs/control-protocol.md, GetStatistics.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>

VGPU_BEGIN_DECLS

/* The operations of one kind that ended in one way. */
struct vgpu_statistics_operation {
        const char *operation; /* "suspend", "resume", "migrate", "catch-up" or a new one */
        const char *result;    /* "done", "undone" (all is as before), "failed" (it is not) */
        uint64_t count;
        double seconds; /* sum of what they took */
        uint64_t bytes; /* sum of what they moved */
        /* How many of them took no longer than the bound of the same number. */
        const uint64_t *buckets;
        const char *
                last_vgpu; /* the name of the vGPU of the last one; "": there was none, or it is not told */
        double last_seconds; /* that the last one took */
        double last_time;    /* when it ended, since the epoch */
        /* How many of them moved no more than the byte bound of the same number; none: an older vgpud. */
        const uint64_t *byte_buckets;
        uint64_t last_bytes; /* that the last one moved */
        /* Of those with a pre-copy, 0 from an older vgpud: how many; what that did while their programs ran. */
        uint64_t n_pre_copies, n_pre_copy_rounds, pre_copy_bytes;
        double pre_copy_seconds;
        double pre_copy_stopped_seconds; /* how long their programs stood still all the same */
};

struct vgpu_statistics {
        double started;      /* since the epoch */
        bool is_ledger_fine; /* false: usage is kept in memory until it can be written, or not metered */
        size_t n_bounds;
        const double *bounds; /* seconds, ascending */
        size_t n_operations;
        const struct vgpu_statistics_operation *const *operations;
        size_t n_byte_bounds;        /* 0: a vgpud that does not say */
        const uint64_t *byte_bounds; /* ascending */
};

/**
 * vgpu_statistics_lookup() - what the manager has counted so far
 * @ret_statistics:  the caller owns it and frees it with vgpu_statistics_free()
 */
int vgpu_statistics_lookup(struct vgpu_client *client, struct vgpu_statistics **ret_statistics);

/** vgpu_statistics_free() - NULL is fine. Returns NULL. */
struct vgpu_statistics *vgpu_statistics_free(struct vgpu_statistics *statistics);

VGPU_END_DECLS

#endif
