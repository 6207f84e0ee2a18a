/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing. The space of a plain image is allocated before the first byte is written: a full disk
 * shows at once, and writes do not wait for each other to extend the file. A packed image grows in
 * steps, for the same reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "image/checksum.h"
#include "image/data.h"
#include "image/file.h"
#include "image/hashes.h"
#include "image/parent.h"
#include "image/workers.h"

#define GROWTH ((uint64_t)256 << 20)

_Static_assert(IMAGE_CHUNK_SIZE == HASH_BLOCK, "each chunk has a hash");

static bool is_zero(const struct iovec *iov, unsigned int n)
{
        for (unsigned int i = 0; i < n; i++) {
                const char *bytes = iov[i].iov_base;
                size_t size = iov[i].iov_len;

                if (bytes[0] != 0 || memcmp(bytes, bytes + 1, size - 1) != 0)
                        return false;
        }
        return true;
}

static uint32_t checksum_of(const struct iovec *iov, unsigned int n)
{
        uint32_t checksum = 0;

        for (unsigned int i = 0; i < n; i++)
                checksum = checksum_add(checksum, iov[i].iov_base, iov[i].iov_len);
        return checksum;
}

static int grow(struct workers *workers, uint64_t size)
{
        int fd = workers->files->fd;

        if (fallocate(fd, 0, 0, (off_t)size) == 0)
                return 0;
        if (errno != EOPNOTSUPP)
                return -errno;
        return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

/* A place for @size bytes, at the end of what is given away already. */
static int place(struct workers *workers, size_t size, uint64_t *ret_offset)
{
        uint64_t offset = atomic_fetch_add(&workers->file_end, size), end = offset + size;
        int r = 0;

        pthread_mutex_lock(&workers->lock);
        if (end > workers->file_room) {
                uint64_t room = (end + GROWTH - 1) / GROWTH * GROWTH;

                r = grow(workers, room);
                if (r < 0) { /* a step may be too much for the disk, and what is needed not */
                        room = end;
                        r = grow(workers, room);
                }
                if (r == 0)
                        workers->file_room = room;
        }
        pthread_mutex_unlock(&workers->lock);
        *ret_offset = offset;
        return r;
}

/* The slot's pieces become one: a buffer of its own, up to a whole page. */
static bool use_buffer(struct worker_slot *slot, size_t size)
{
        memset(slot->buffer + size, 0, worker_align(size) - size);
        slot->iov[0] = (struct iovec){ slot->buffer, worker_align(size) };
        slot->request.n_iov = 1;
        return true;
}

static bool gather(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;
        uint64_t offset = (uint64_t)slot->chunk * workers->table->chunk_size;

        slot->request.n_iov =
                span_slice(&workers->span, offset, slot->length, slot->iov, WORKER_PIECES_MAX);
        if (slot->request.n_iov > 0)
                return true;
        if (!worker_slot_buffer(slot))
                return false;
        span_copy_out(&workers->span, offset, slot->buffer, slot->length);
        slot->iov[0] = (struct iovec){ slot->buffer, slot->length };
        slot->request.n_iov = 1;
        return true;
}

/* Makes less of it, in the slot's buffer. Returns the bytes; 0: it stays as it is. */
static size_t pack(struct worker_slot *slot)
{
        struct worker *worker = slot->worker;
        const void *from = slot->iov[0].iov_base;
        char *scratch;

        if (!worker->compressor || slot->length <= SPAN_ALIGN)
                return 0;
        if (slot->request.n_iov > 1 || from == slot->buffer) {
                scratch = worker_scratch(worker);
                if (!scratch)
                        return 0;
                span_copy_out(&worker->workers->span,
                              (uint64_t)slot->chunk * worker->workers->table->chunk_size, scratch,
                              slot->length);
                from = scratch;
        }
        if (!worker_slot_buffer(slot))
                return 0;
        return compressor_pack(worker->compressor, slot->buffer, from, slot->length);
}

/* The hash of a whole chunk at one place; of others, of a copy with zeros up to a whole one. */
static bool hash(struct worker_slot *slot, struct hash_value *ret_value)
{
        struct workers *workers = slot->worker->workers;
        const void *bytes = slot->iov[0].iov_base;
        char *scratch;

        if (slot->request.n_iov > 1 || slot->length < HASH_BLOCK || (uintptr_t)bytes % 16) {
                scratch = worker_scratch(slot->worker);
                if (!scratch)
                        return false;
                span_copy_out(&workers->span, (uint64_t)slot->chunk * workers->table->chunk_size,
                              scratch, slot->length);
                memset(scratch + slot->length, 0, HASH_BLOCK - slot->length);
                bytes = scratch;
        }
        *ret_value = hash_block(&workers->options->hashes->key, bytes);
        return true;
}

/* Notes the chunk's hash. True: the parent has it, or all failed; there is nothing to write. */
static bool is_known(struct worker_slot *slot)
{
        const struct image_data_options *options = slot->worker->workers->options;
        struct image_table *table = slot->worker->workers->table;
        struct hash_value *value;
        uint32_t found;

        if (!options->hashes)
                return false;
        value = &options->hashes->values[slot->chunk];
        if (!hash(slot, value))
                return true;
        if (!options->parent)
                return false;
        found = image_parent_find(options->parent, table, slot->chunk, value);
        table->inherited[slot->chunk] = found;
        return found != IMAGE_CHUNK_OWN;
}

static bool begin_write(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;
        struct image_chunk *chunk = &workers->table->chunks[slot->chunk];
        size_t packed;
        int r;

        if (!gather(slot))
                return false;
        chunk->checksum = checksum_of(slot->iov, slot->request.n_iov);
        if (is_zero(slot->iov, slot->request.n_iov))
                return false; /* stored: 0 */
        if (is_known(slot))
                return false;

        packed = pack(slot);
        chunk->stored = (uint32_t)(packed ? packed : slot->length);
        if (packed) {
                (void)use_buffer(slot, packed);
        } else if (!span_is_aligned(slot->iov, slot->request.n_iov)) {
                if (!worker_slot_buffer(slot))
                        return false;
                span_copy_out(&workers->span, (uint64_t)slot->chunk * workers->table->chunk_size,
                              slot->buffer, slot->length);
                (void)use_buffer(slot, slot->length);
        }
        r = place(workers, worker_align(chunk->stored), &chunk->offset);
        if (r < 0) {
                workers_fail_file(workers, workers->files, r, "write");
                return false;
        }
        slot->request.is_write = true;
        slot->request.fd = workers->files->fd;
        slot->request.offset = chunk->offset;
        slot->request.iov = slot->iov;
        return true;
}

static void end_write(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;

        if (slot->request.error == 0 && fault_point("image.write"))
                slot->request.error = -EIO;
        if (slot->request.error)
                workers_fail_file(workers, workers->files, slot->request.error, "write");
}

/* Direct I/O, where the file system can. */
static int open_new(int directory, const char *name, const struct image_data_options *options,
                    bool *ret_is_direct)
{
        int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, fd = -1;

        *ret_is_direct = !options->no_direct_io;
        if (*ret_is_direct)
                fd = openat(directory, name, flags | O_DIRECT, 0600);
        if (fd < 0 && (!*ret_is_direct || errno == EINVAL)) {
                /* Some make the file before they find that they cannot. */
                if (*ret_is_direct)
                        (void)unlinkat(directory, name, 0);
                *ret_is_direct = false;
                fd = openat(directory, name, flags, 0600);
        }
        return fd < 0 ? -errno : fd;
}

/* A part of the memory may not go there: the file then grows as it must. */
static bool is_whole(const struct workers *workers)
{
        return workers->table->compression == IMAGE_COMPRESSION_NONE && !workers->table->inherited;
}

static void write_in_place(struct workers *workers)
{
        workers->file_end = workers->options->begin;
        workers->file_room = UINT64_MAX;
        workers_run(workers);
        workers->table->file_size = workers->file_end;
        if (!workers->has_failed && fdatasync(workers->files->fd) < 0)
                workers_fail_file(workers, workers->files, -errno, "write");
}

static void write_new(struct workers *workers)
{
        uint64_t size = is_whole(workers) ? worker_align(workers->table->size) : 0;
        int fd = workers->files->fd, r = size > 0 ? grow(workers, size) : 0;

        if (r < 0) {
                workers_fail_file(workers, workers->files, r, "write");
                return;
        }
        workers->file_room = size;
        workers_run(workers);
        workers->table->file_size = workers->file_end;
        if (workers->has_failed)
                return;
        if (ftruncate(fd, (off_t)workers->table->file_size) < 0 || fsync(fd) < 0)
                workers_fail_file(workers, workers->files, -errno, "write");
}

static int make_table(struct image_table *table, uint64_t size,
                      const struct image_data_options *options)
{
        uint32_t chunk_size = options->chunk_size ? options->chunk_size : IMAGE_CHUNK_SIZE;
        int r;

        *table = (struct image_table){
                .size = size,
                .chunk_size = chunk_size,
                .compression = options->compression,
                .n_chunks = image_table_count(size, chunk_size),
        };
        table->chunks = calloc(table->n_chunks + 1, sizeof(*table->chunks));
        r = table->chunks ? 0 : -ENOMEM;
        if (r == 0 && options->parent)
                r = image_table_inherit(table);
        return r == 0 && options->hashes ? image_hashes_set_size(options->hashes, table->n_chunks)
                                         : r;
}

static int write_file(const struct image_data_file *file, const struct iovec *pieces,
                      size_t n_pieces, const struct image_data_options *options,
                      struct image_table *ret_table, struct image_data_report *ret_report,
                      struct image_error *error)
{
        struct workers workers = {
                .files = file,
                .table = ret_table,
                .options = options,
                .begin = begin_write,
                .end = end_write,
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .error = error,
        };
        double start = workers_now();
        sigset_t before;
        int r = span_init(&workers.span, pieces, n_pieces);

        if (r == 0)
                r = make_table(ret_table, workers.span.size, options);
        if (r < 0)
                (void)image_fail_file(error, r, "write", file->path);
        image_file_block_signal(&before);
        if (r == 0 && options->begin)
                write_in_place(&workers);
        else if (r == 0)
                write_new(&workers);
        image_file_restore_signal(&before);
        r = workers_end(&workers, start, ret_report);
        if (r < 0)
                image_table_deinit(ret_table);
        return r;
}

int image_data_write_fd(int fd, const char *path, const struct iovec *pieces, size_t n_pieces,
                        const struct image_data_options *options, struct image_table *ret_table,
                        struct image_data_report *ret_report, struct image_error *error)
{
        struct image_data_file file = { .fd = fd, .has_direct_io = !options->no_direct_io };

        snprintf(file.path, sizeof(file.path), "%s", path);
        return write_file(&file, pieces, n_pieces, options, ret_table, ret_report, error);
}

int image_data_write(int directory, const char *where, const char *name, const struct iovec *pieces,
                     size_t n_pieces, const struct image_data_options *options,
                     struct image_table *ret_table, struct image_data_report *ret_report,
                     struct image_error *error)
{
        struct image_data_file file;
        int r;

        snprintf(file.path, sizeof(file.path), "%s/%s", where, name);
        file.fd = open_new(directory, name, options, &file.has_direct_io);
        if (file.fd < 0)
                return image_fail_file(error, file.fd, "make", file.path);
        r = write_file(&file, pieces, n_pieces, options, ret_table, ret_report, error);
        if (r < 0)
                (void)unlinkat(directory, name, 0);
        fd_close(file.fd);
        return r;
}
