/* SPDX-License-Identifier: Apache-2.0 */
#include "spill/spill-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "image/checksum.h"
#include "image/data.h"
#include "image/span.h"

#define WHAT "a file of the spill"

static const char magic[16] = "OpenVGPU spill 1";

/* The table, then this at the very end, in whole pages for direct I/O. */
struct trailer {
        char magic[sizeof(magic)];
        struct spill_mark mark;
        uint64_t size;      /* of the memory */
        uint64_t file_size; /* of the chunks; then the table begins */
        uint64_t n_chunks;
        uint32_t chunk_size;
        uint32_t checksum; /* of the table */
};

_Static_assert(sizeof(struct trailer) <= SPAN_ALIGN, "it is in the last page");

static uint64_t align(uint64_t size)
{
        return (size + SPAN_ALIGN - 1) / SPAN_ALIGN * SPAN_ALIGN;
}

/* Bytes of table and trailer. */
static uint64_t end_length(size_t n_chunks)
{
        return align(n_chunks * sizeof(struct image_chunk)) + SPAN_ALIGN;
}

uint64_t spill_file_get_room(uint64_t bytes)
{
        return align(bytes) + end_length(image_table_count(bytes, IMAGE_CHUNK_SIZE));
}

/* With direct I/O, where the file system can. */
static int open_direct(int directory, const char *name, int flags)
{
        int fd = openat(directory, name, flags | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);

        if (fd < 0 && errno == EINVAL) {
                if (flags & O_CREAT) /* some make it before they find that they cannot */
                        (void)unlinkat(directory, name, 0);
                fd = openat(directory, name, flags | O_RDWR | O_CLOEXEC, 0600);
        }
        return fd < 0 ? -errno : fd;
}

int spill_file_new_unlinked(int *ret_fd, int directory)
{
        char name[32];
        uint64_t number;
        int fd;

        if (getrandom(&number, sizeof(number), 0) < 0)
                return -errno;
        snprintf(name, sizeof(name), "spill-%016" PRIx64, number);
        fd = open_direct(directory, name, O_CREAT | O_EXCL);
        if (fd < 0)
                return fd;
        if (unlinkat(directory, name, 0) < 0) {
                fd_close(fd);
                return -errno;
        }
        *ret_fd = fd;
        return 0;
}

int spill_file_new(int *ret_fd, int directory)
{
        int fd = open_direct(directory, ".", O_TMPFILE);

        if (fd == -EOPNOTSUPP || fd == -EISDIR || fd == -ENOENT)
                return spill_file_new_unlinked(ret_fd, directory);
        if (fd < 0)
                return fd;
        *ret_fd = fd;
        return 0;
}

static struct image_data_options options_of(int fd, const atomic_bool *must_end)
{
        return (struct image_data_options){ .no_direct_io = !(fcntl(fd, F_GETFL) & O_DIRECT),
                                            .must_end = must_end };
}

static int write_fully(int fd, const char *bytes, uint64_t size, uint64_t offset)
{
        while (size > 0) {
                ssize_t n = pwrite(fd, bytes, size, (off_t)offset);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        return -ENOSPC;
                if (n > 0) {
                        bytes += n;
                        offset += (uint64_t)n;
                        size -= (uint64_t)n;
                }
        }
        return 0;
}

static int read_fully(int fd, char *bytes, uint64_t size, uint64_t offset)
{
        while (size > 0) {
                ssize_t n = pread(fd, bytes, size, (off_t)offset);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        return -EBADMSG;
                if (n > 0) {
                        bytes += n;
                        offset += (uint64_t)n;
                        size -= (uint64_t)n;
                }
        }
        return 0;
}

static int make_buffer(char **ret_buffer, uint64_t size)
{
        void *buffer = NULL;

        if (posix_memalign(&buffer, SPAN_ALIGN, size) != 0)
                return -ENOMEM;
        memset(buffer, 0, size);
        *ret_buffer = buffer;
        return 0;
}

static uint64_t find_end(uint64_t begin, const struct image_table *table)
{
        return begin ? begin + spill_file_get_room(table->size)
                     : align(table->file_size) + end_length(table->n_chunks);
}

static int write_end(int fd, uint64_t begin, const struct spill_mark *mark,
                     const struct image_table *table)
{
        const uint64_t length = end_length(table->n_chunks);
        const size_t table_size = table->n_chunks * sizeof(*table->chunks);
        struct trailer trailer = {
                .mark = *mark,
                .size = table->size,
                .file_size = table->file_size,
                .n_chunks = table->n_chunks,
                .chunk_size = table->chunk_size,
                .checksum = checksum_add(0, table->chunks, table_size),
        };
        CLEANUP(freep) char *buffer = NULL;
        int r = make_buffer(&buffer, length);

        if (r < 0)
                return r;
        memcpy(trailer.magic, magic, sizeof(magic));
        memcpy(buffer, table->chunks, table_size);
        memcpy(buffer + length - SPAN_ALIGN, &trailer, sizeof(trailer));
        r = write_fully(fd, buffer, length, find_end(begin, table) - length);
        return r == 0 && fdatasync(fd) < 0 ? -errno : r;
}

int spill_file_write(int fd, uint64_t begin, const struct spill_mark *mark,
                     const struct iovec *pieces, size_t n_pieces, const atomic_bool *must_end,
                     struct image_error *error)
{
        struct image_data_options options = options_of(fd, must_end);
        struct image_data_report report;
        struct image_table table = { 0 };
        int r;

        /* What a ring has begun may reach the disk after the process has ended: then others write there. */
        options.begin = begin;
        options.no_ring = begin > 0;
        r = image_data_write_fd(fd, WHAT, pieces, n_pieces, &options, &table, &report, error);
        if (r < 0)
                return r;
        r = write_end(fd, begin, mark, &table);
        image_table_deinit(&table);
        return r < 0 ? image_fail_file(error, r, "write", WHAT) : 0;
}

/* Reading. */

static bool is_trailer(const struct trailer *trailer, uint64_t end)
{
        return memcmp(trailer->magic, magic, sizeof(magic)) == 0 && trailer->chunk_size > 0 &&
               trailer->n_chunks == image_table_count(trailer->size, trailer->chunk_size) &&
               trailer->file_size <= end &&
               align(trailer->file_size) + end_length(trailer->n_chunks) <= end;
}

static int read_trailer(int fd, uint64_t end, struct trailer *ret_trailer)
{
        CLEANUP(freep) char *buffer = NULL;
        int r = make_buffer(&buffer, SPAN_ALIGN);

        if (r == 0 && end < SPAN_ALIGN)
                r = -EBADMSG;
        if (r == 0)
                r = read_fully(fd, buffer, SPAN_ALIGN, end - SPAN_ALIGN);
        if (r < 0)
                return r;
        memcpy(ret_trailer, buffer, sizeof(*ret_trailer));
        return is_trailer(ret_trailer, end) ? 0 : -EBADMSG;
}

static int read_table(int fd, uint64_t end, const struct trailer *trailer,
                      struct image_table *table)
{
        const size_t size = trailer->n_chunks * sizeof(*table->chunks);
        CLEANUP(freep) char *buffer = NULL;
        int r = make_buffer(&buffer, align(size));

        if (r == 0)
                r = read_fully(fd, buffer, align(size), end - end_length(trailer->n_chunks));
        if (r < 0)
                return r;
        if (checksum_add(0, buffer, size) != trailer->checksum)
                return -EBADMSG;
        *table = (struct image_table){ .size = trailer->size,
                                       .file_size = trailer->file_size,
                                       .chunk_size = trailer->chunk_size,
                                       .chunks = (struct image_chunk *)(void *)TAKE(buffer),
                                       .n_chunks = trailer->n_chunks };
        return 0;
}

static int fail_end(int r, struct image_error *error)
{
        return r == -EBADMSG
                       ? image_fail(error, r, "the log of the kernel says if the disk is broken",
                                    WHAT " has other contents than were written to it")
                       : image_fail_file(error, r, "read", WHAT);
}

static int find_end_of(int fd, uint64_t begin, const struct iovec *pieces, size_t n_pieces,
                       uint64_t *ret_end)
{
        struct stat status;
        uint64_t sum = 0;

        for (size_t i = 0; i < n_pieces; i++)
                sum += pieces[i].iov_len;
        if (!begin && fstat(fd, &status) < 0)
                return -errno;
        *ret_end = begin ? begin + spill_file_get_room(sum) : (uint64_t)status.st_size;
        return 0;
}

int spill_file_read(int fd, uint64_t begin, const struct spill_mark *mark,
                    const struct iovec *pieces, size_t n_pieces, const atomic_bool *must_end,
                    struct image_error *error)
{
        struct image_data_options options = options_of(fd, must_end);
        struct image_data_report report;
        struct image_table table = { 0 };
        struct trailer trailer = { 0 };
        uint64_t end = 0;
        int r = find_end_of(fd, begin, pieces, n_pieces, &end);

        if (r == 0)
                r = read_trailer(fd, end, &trailer);

        if (r == 0 && memcmp(&trailer.mark, mark, sizeof(*mark)) != 0)
                r = -EBADMSG;
        if (r == 0)
                r = read_table(fd, end, &trailer, &table);
        if (r < 0)
                return fail_end(r, error);
        /* What a ring has begun ends after the process may have: then the memory may be somebody else's. */
        options.no_ring = true;
        r = image_data_read_fd(fd, WHAT, &table, pieces, n_pieces, &options, &report, error);
        image_table_deinit(&table);
        return r;
}
