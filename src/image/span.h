/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_SPAN_H
#define IMAGE_SPAN_H

/* Memory in pieces (the extents of a vGPU in its slabs), seen as one sequence of bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* What direct I/O wants of addresses, lengths and places in files. */
#define SPAN_ALIGN 4096

struct span {
        const struct iovec *pieces; /* borrowed */
        uint64_t *starts;           /* of each piece in the row */
        size_t n;
        uint64_t size;
};

/* span_init() - Errors: -ENOMEM, -EOVERFLOW. */
int span_init(struct span *span, const struct iovec *pieces, size_t n);
void span_deinit(struct span *span);

/*
 * span_slice() - the pieces of @length bytes from @offset, which must be inside
 * Returns how many, at most @max: 0 if there are more.
 */
unsigned int span_slice(const struct span *span, uint64_t offset, size_t length, struct iovec *iov,
                        unsigned int max);

/* span_is_aligned() - can direct I/O take these? */
bool span_is_aligned(const struct iovec *iov, unsigned int n);

/* span_copy_out(), span_copy_in() - the bytes from @offset, to or from one buffer. */
void span_copy_out(const struct span *span, uint64_t offset, void *to, size_t length);
void span_copy_in(const struct span *span, uint64_t offset, const void *from, size_t length);

#endif
