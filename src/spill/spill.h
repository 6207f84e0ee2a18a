/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPILL_SPILL_H
#define SPILL_SPILL_H

/*
 * The spill: the disk below the pool. It copies between slabs and files, each copy in a thread of its own, for a
 * disk may be slow, or not answer at all.
 *
 * The threads are the manager's: as long as one of them may write to a slab, the process is there, and with it
 * the lock of the run directory. So no other manager gives the slab away meanwhile. (It is not so with io_uring, by which
 * files are only written.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "image/error.h"
#include "spill/spill-file.h"

struct spill;
struct spill_copy;

/* A piece of a slab; the order of pieces is the order of their bytes. */
struct spill_extent {
        int fd; /* of the slab, borrowed for the call only */
        uint64_t offset, length;
};

struct spill_order {
        bool is_read;   /* from the file to the slabs; else to the file */
        int fd;         /* of the file; a duplicate is made */
        uint64_t begin; /* where in it, if it is a larger one (spill-file.h) */
        struct spill_mark mark;
        const struct spill_extent *extents;
        size_t n_extents;
};

struct spill_result {
        int error;        /* 0 or a negative errno */
        uint64_t took_ns; /* the copy */
        struct image_error reason;
};

/* Called once by the event loop; never by spill_begin(), and not after spill_free(). */
typedef void (*spill_done_fn)(const struct spill_result *result, void *userdata);

/* spill_new() - @directory is taken. Errors: -ENOMEM, eventfd(2). */
int spill_new(struct spill **ret_spill, sd_event *event, int directory);

/* spill_free() - end all copies and wait for that; nobody is told. NULL is fine. Returns NULL. */
struct spill *spill_free(struct spill *spill);

/* spill_make_file() - spill_file_new() in its directory. */
int spill_make_file(const struct spill *spill, int *ret_fd);

/* spill_begin() - start to copy. @ret_copy is for spill_cancel(), until @done was called. */
int spill_begin(struct spill *spill, struct spill_copy **ret_copy, const struct spill_order *order,
                spill_done_fn done, void *userdata);

/* spill_cancel() - nobody needs it: @done is called soon, mostly with -ECANCELED. */
void spill_cancel(struct spill_copy *copy);

#endif
