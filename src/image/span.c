/* SPDX-License-Identifier: Apache-2.0 */
#include "image/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int span_init(struct span *span, const struct iovec *pieces, size_t n)
{
        *span = (struct span){ .pieces = pieces, .n = n };
        span->starts = calloc(n + 1, sizeof(*span->starts));
        if (!span->starts)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                span->starts[i] = span->size;
                if (__builtin_add_overflow(span->size, pieces[i].iov_len, &span->size))
                        return -EOVERFLOW;
        }
        return 0;
}

void span_deinit(struct span *span)
{
        free(span->starts);
        span->starts = NULL;
}

/* The piece with the byte at @offset: the last that begins there or before, and is not empty. */
static size_t find(const struct span *span, uint64_t offset)
{
        size_t low = 0, high = span->n;

        while (high - low > 1) {
                size_t middle = low + (high - low) / 2;

                if (span->starts[middle] <= offset)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

/* Calls @each for all parts; one that says false ends it. */
static bool for_each_part(const struct span *span, uint64_t offset, size_t length,
                          bool (*each)(void *data, size_t size, void *userdata), void *userdata)
{
        for (size_t i = find(span, offset); length > 0; i++) {
                uint64_t inside = offset - span->starts[i];
                size_t part = span->pieces[i].iov_len - inside;

                if (part > length)
                        part = length;
                if (part > 0 && !each((char *)span->pieces[i].iov_base + inside, part, userdata))
                        return false;
                offset += part;
                length -= part;
        }
        return true;
}

struct slice {
        struct iovec *iov;
        unsigned int n, max;
};

static bool add_part(void *data, size_t size, void *userdata)
{
        struct slice *slice = userdata;

        if (slice->n == slice->max)
                return false;
        slice->iov[slice->n++] = (struct iovec){ data, size };
        return true;
}

unsigned int span_slice(const struct span *span, uint64_t offset, size_t length, struct iovec *iov,
                        unsigned int max)
{
        struct slice slice = { .iov = iov, .max = max };

        return for_each_part(span, offset, length, add_part, &slice) ? slice.n : 0;
}

bool span_is_aligned(const struct iovec *iov, unsigned int n)
{
        for (unsigned int i = 0; i < n; i++)
                if ((uintptr_t)iov[i].iov_base % SPAN_ALIGN || iov[i].iov_len % SPAN_ALIGN)
                        return false;
        return true;
}

static bool copy_out(void *data, size_t size, void *userdata)
{
        char **to = userdata;

        memcpy(*to, data, size);
        *to += size;
        return true;
}

static bool copy_in(void *data, size_t size, void *userdata)
{
        const char **from = userdata;

        memcpy(data, *from, size);
        *from += size;
        return true;
}

void span_copy_out(const struct span *span, uint64_t offset, void *to, size_t length)
{
        for_each_part(span, offset, length, copy_out, &to);
}

void span_copy_in(const struct span *span, uint64_t offset, const void *from, size_t length)
{
        for_each_part(span, offset, length, copy_in, &from);
}
