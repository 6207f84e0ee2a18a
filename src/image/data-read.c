/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading. A plain chunk is read directly to its place, and its checksum is compared there. A
 * packed chunk, or one whose place direct I/O cannot use, goes through a buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "image/checksum.h"
#include "image/data.h"
#include "image/workers.h"

#define HINT_ALTERED "the image cannot be used; load an older one"

static void fail_chunk(const struct worker_slot *slot, const char *why)
{
        struct workers *workers = slot->worker->workers;
        const struct image_chunk *chunk = &workers->table->chunks[slot->chunk];

        workers_fail(workers, -EBADMSG, HINT_ALTERED,
                     "%s, chunk %zu (bytes %" PRIu64 " to %" PRIu64 "): %s",
                     workers_file(workers, slot->chunk)->path, slot->chunk, chunk->offset,
                     chunk->offset + chunk->stored, why);
}

static void check(struct worker_slot *slot, uint32_t checksum)
{
        uint32_t wanted = slot->worker->workers->table->chunks[slot->chunk].checksum;
        char why[128];

        if (checksum == wanted)
                return;
        snprintf(why, sizeof(why), "altered: its checksum is %08x, the manifest says %08x",
                 checksum, wanted);
        fail_chunk(slot, why);
}

/* All zeros is not in the file. */
static void make_zeros(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;
        char *scratch = worker_scratch(slot->worker);

        if (!scratch)
                return;
        memset(scratch, 0, slot->length);
        check(slot, checksum_add(0, scratch, slot->length));
        if (workers->has_memory)
                span_copy_in(&workers->span, (uint64_t)slot->chunk * workers->table->chunk_size,
                             scratch, slot->length);
}

static bool begin_read(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;
        const struct image_chunk *chunk = &workers->table->chunks[slot->chunk];
        uint64_t offset = (uint64_t)slot->chunk * workers->table->chunk_size;
        unsigned int n = 0;

        if (chunk->stored == 0) {
                make_zeros(slot);
                return false;
        }
        if (workers->has_memory && chunk->stored == slot->length)
                n = span_slice(&workers->span, offset, slot->length, slot->iov, WORKER_PIECES_MAX);
        slot->is_buffered = n == 0 || !span_is_aligned(slot->iov, n);
        if (slot->is_buffered) {
                if (!worker_slot_buffer(slot))
                        return false;
                slot->iov[0] = (struct iovec){ slot->buffer, worker_align(chunk->stored) };
                n = 1;
        }
        slot->request.is_write = false;
        slot->request.fd = workers_file(workers, slot->chunk)->fd;
        slot->request.offset = chunk->offset;
        slot->request.iov = slot->iov;
        slot->request.n_iov = n;
        return true;
}

static void end_direct(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;
        uint32_t checksum = 0;
        unsigned int n;

        /* The queue has used up the list. */
        n = span_slice(&workers->span, (uint64_t)slot->chunk * workers->table->chunk_size,
                       slot->length, slot->iov, WORKER_PIECES_MAX);
        for (unsigned int i = 0; i < n; i++)
                checksum = checksum_add(checksum, slot->iov[i].iov_base, slot->iov[i].iov_len);
        check(slot, checksum);
}

static void end_buffered(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;
        uint32_t stored = workers->table->chunks[slot->chunk].stored;
        const char *bytes = slot->buffer;

        if (stored < slot->length) {
                char *scratch = worker_scratch(slot->worker);

                if (!scratch)
                        return;
                if (compressor_unpack(slot->worker->compressor, scratch, slot->length, bytes,
                                      stored) < 0) {
                        fail_chunk(slot, "altered: it cannot be unpacked");
                        return;
                }
                bytes = scratch;
        }
        check(slot, checksum_add(0, bytes, slot->length));
        if (workers->has_memory && !workers->has_failed)
                span_copy_in(&workers->span, (uint64_t)slot->chunk * workers->table->chunk_size,
                             bytes, slot->length);
}

static void end_read(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;

        if (slot->request.error == 0 && fault_point("image.read"))
                slot->request.error = -EIO;
        if (slot->request.error == -ENODATA)
                fail_chunk(slot, "cut off: the file ends before");
        else if (slot->request.error)
                workers_fail_file(workers, workers_file(workers, slot->chunk), slot->request.error,
                                  "read");
        else if (slot->is_buffered)
                end_buffered(slot);
        else
                end_direct(slot);
}

static int open_old(int directory, const char *name, const struct image_data_options *options,
                    bool *ret_is_direct)
{
        /* So that opening a pipe does not wait for its writer. */
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, fd = -1;

        *ret_is_direct = !options->no_direct_io;
        if (*ret_is_direct)
                fd = openat(directory, name, flags | O_DIRECT);
        if (fd < 0 && (!*ret_is_direct || errno == EINVAL)) {
                *ret_is_direct = false;
                fd = openat(directory, name, flags);
        }
        if (fd < 0)
                return -errno;
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        return fd;
}

static int check_size(int fd, const char *path, const struct image_table *table,
                      struct image_error *error)
{
        struct stat status;

        if (fstat(fd, &status) < 0)
                return image_fail_file(error, -errno, "read", path);
        if (!S_ISREG(status.st_mode))
                return image_fail(error, -EBADMSG, HINT_ALTERED, "%s is no plain file", path);
        if ((uint64_t)status.st_size != table->file_size)
                return image_fail(
                        error, -EBADMSG, HINT_ALTERED,
                        "%s is %s: it has %" PRIu64 " bytes, the manifest says %" PRIu64, path,
                        (uint64_t)status.st_size < table->file_size ? "cut off" : "too long",
                        (uint64_t)status.st_size, table->file_size);
        return 0;
}

int image_data_open(int directory, const char *where, const char *name,
                    const struct image_table *table, const struct image_data_options *options,
                    struct image_data_file *ret_file, struct image_error *error)
{
        char *path = ret_file->path;
        int r;

        ret_file->fd = -1;
        snprintf(path, sizeof(ret_file->path), "%s/%s", where, name);
        if (!compress_is_built(table->compression))
                return image_fail(error, -EOPNOTSUPP, "use a build that has it",
                                  "%s is packed with %s, which this build lacks", path,
                                  compress_name(table->compression));
        ret_file->fd = open_old(directory, name, options, &ret_file->has_direct_io);
        if (ret_file->fd == -ENOENT)
                return image_fail(error, ret_file->fd, HINT_ALTERED, "%s is missing", path);
        if (ret_file->fd < 0)
                return image_fail_file(error, ret_file->fd, "read", path);
        r = check_size(ret_file->fd, path, table, error);
        if (r < 0)
                ret_file->fd = fd_close(ret_file->fd);
        return r;
}

int image_data_read_from(const struct image_data_source *source, const struct iovec *pieces,
                         size_t n_pieces, const struct image_data_options *options,
                         struct image_data_report *ret_report, struct image_error *error)
{
        struct image_table table = *source->table; /* the chunks are only looked at */
        struct workers workers = {
                .files = source->files,
                .of_chunk = source->of_chunk,
                .table = &table,
                .options = options,
                .has_memory = n_pieces > 0,
                .begin = begin_read,
                .end = end_read,
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .error = error,
        };
        double start = workers_now();
        int r = span_init(&workers.span, pieces, n_pieces);

        if (r < 0)
                (void)image_fail_file(error, r, "read", source->files->path);
        else if (n_pieces > 0 && workers.span.size != table.size)
                (void)image_fail(error, -EINVAL, "",
                                 "%s has %" PRIu64 " bytes of memory, the place for it %" PRIu64,
                                 source->files->path, table.size, workers.span.size);
        else
                workers_run(&workers);
        return workers_end(&workers, start, ret_report);
}

int image_data_read_fd(int fd, const char *path, const struct image_table *table,
                       const struct iovec *pieces, size_t n_pieces,
                       const struct image_data_options *options,
                       struct image_data_report *ret_report, struct image_error *error)
{
        struct image_data_file file = { .fd = fd, .has_direct_io = !options->no_direct_io };
        const struct image_data_source source = { .table = table, .files = &file };

        snprintf(file.path, sizeof(file.path), "%s", path);
        return image_data_read_from(&source, pieces, n_pieces, options, ret_report, error);
}

int image_data_read(int directory, const char *where, const char *name,
                    const struct image_table *table, const struct iovec *pieces, size_t n_pieces,
                    const struct image_data_options *options, struct image_data_report *ret_report,
                    struct image_error *error)
{
        struct image_data_file file;
        const struct image_data_source source = { .table = table, .files = &file };
        int r = image_data_open(directory, where, name, table, options, &file, error);

        if (r == 0)
                r = image_data_read_from(&source, pieces, n_pieces, options, ret_report, error);
        fd_close(file.fd);
        return r;
}
