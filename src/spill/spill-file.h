/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPILL_SPILL_FILE_H
#define SPILL_SPILL_FILE_H

/*
 * A file of the spill: the memory of one process of a suspended vGPU.
 *
 * It is the data file of an image (image/data.h), with a trailer that has the table of the chunks and says
 * whose memory it is. The trailer is written last, when the chunks are on the disk: a file without it has
 * nobody's memory. Nothing of it is believed without its checksum.
 *
 * Or it is a part of a larger file, whose room is held on the disk already (spill-reserve.h). @begin says where, and
 * the trailer is at the end of spill_file_get_room() bytes.
 */

#include <stdatomic.h>
#include <stdint.h>
#include <sys/uio.h>

#include "image/error.h"

#define SPILL_OWNER_MAX 64

struct spill_mark {
        char vgpu[SPILL_OWNER_MAX]; /* its UUID; the rest is zeros */
        uint64_t generation;        /* of what is in it: no other memory ever has it */
        uint64_t start_time;        /* of the process */
        int64_t pid;
};

/* spill_file_new() - a new file without a name, which goes with its last descriptor. Errors: open(2). */
int spill_file_new(int *ret_fd, int directory);

/* spill_file_new_unlinked() - the same where a file must have a name first: it loses it at once. */
int spill_file_new_unlinked(int *ret_fd, int directory);

#define SPILL_FILE_BEGIN_MIN 4096u

/* spill_file_get_room() - what the memory of a process takes of a larger file at most: whole pages. */
uint64_t spill_file_get_room(uint64_t bytes);

/*
 * spill_file_write() - write all @pieces, one after another, to the new file @fd
 * @begin: 0, or where in a larger file, SPILL_FILE_BEGIN_MIN at least.
 * They are on the disk when it returns. @must_end: NULL or image/data.h. Errors: -ENOSPC, -EIO, -ECANCELED, ...
 */
int spill_file_write(int fd, uint64_t begin, const struct spill_mark *mark,
                     const struct iovec *pieces, size_t n_pieces, const atomic_bool *must_end,
                     struct image_error *error);

/* spill_file_read() - the way back. Errors: -EBADMSG (not that memory, or altered), -EIO, -ECANCELED, ... */
int spill_file_read(int fd, uint64_t begin, const struct spill_mark *mark,
                    const struct iovec *pieces, size_t n_pieces, const atomic_bool *must_end,
                    struct image_error *error);

#endif
