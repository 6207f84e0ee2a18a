/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_SPAN_H
#define IMAGE_SPAN_H

/* A span shows memory in pieces (the extents of a vGPU in its slabs) as one sequence of bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Direct I/O wants addresses, lengths and places in files to be multiples of this. */
#define SPAN_ALIGN 4096

struct span {
        const struct iovec *pieces; /* borrowed */
        uint64_t *starts;           /* where each piece begins in the sequence */
        size_t n;
        uint64_t size;
};

/* span_init() - make a span of @n pieces. Errors: -ENOMEM, -EOVERFLOW. */
int span_init(struct span *span, const struct iovec *pieces, size_t n);
void span_deinit(struct span *span);

/*
 * span_slice() - get the pieces of @length bytes from @offset, which must be inside the span
 * Returns how many there are, or 0 if there are more than @max.
 */
unsigned int span_slice(const struct span *span, uint64_t offset, size_t length, struct iovec *iov,
                        unsigned int max);

/* span_is_aligned() - can direct I/O take these pieces? */
bool span_is_aligned(const struct iovec *iov, unsigned int n);

/* span_copy_out(), span_copy_in() - copy @length bytes from @offset to one buffer, or from it. */
void span_copy_out(const struct span *span, uint64_t offset, void *to, size_t length);
void span_copy_in(const struct span *span, uint64_t offset, const void *from, size_t length);

#endif
