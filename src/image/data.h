/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_DATA_H
#define IMAGE_DATA_H

/*
 * The data file of an image: memory in chunks.
 *
 * All chunks have the same size, except that the last one may be smaller. A chunk begins anywhere
 * in the file, at a multiple of 4096. It is plain, or packed and then shorter, or missing if it is
 * all zeros. The table has the place and length of each chunk, and the checksum of its memory.
 * Several threads can therefore work on chunks in any order, and any part can be read alone.
 *
 * The file is written with direct I/O where the file system supports it. Its contents are on the
 * disk when image_data_write() returns.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "image/compress.h"
#include "image/error.h"

#define IMAGE_CHUNK_SIZE     ((uint32_t)2 << 20) /* a block of the pool, and of a hash */
#define IMAGE_CHUNK_SIZE_MIN ((uint32_t)4 << 10)
#define IMAGE_CHUNK_SIZE_MAX ((uint32_t)64 << 20)

struct image_chunk {
        uint64_t offset; /* in the file, a multiple of 4096 */
        uint32_t
                stored; /* bytes in the file; 0: all are zeros; as many as the chunk has: it is plain */
        uint32_t checksum;
};

struct image_table {
        uint64_t size; /* of the memory */
        uint64_t file_size;
        uint32_t chunk_size; /* a power of two */
        enum image_compression compression;
        struct image_chunk *chunks;
        size_t n_chunks; /* as many as @size needs */
        /*
         * NULL: all chunks are in this file. Else, of each chunk: which of the parent's chunks it is,
         * or IMAGE_CHUNK_OWN. Of an inherited one only the checksum is in @chunks.
         */
        uint32_t *inherited;
};

#define IMAGE_CHUNK_OWN UINT32_MAX

void image_table_deinit(struct image_table *table);

/* image_table_inherit() - let @table have a parent, of which nothing is inherited yet. Errors: -ENOMEM. */
int image_table_inherit(struct image_table *table);

/* image_table_is_inherited() - is @chunk the parent's? */
bool image_table_is_inherited(const struct image_table *table, size_t chunk);

/* image_table_sum_inherited() - get the bytes that are the parent's. */
uint64_t image_table_sum_inherited(const struct image_table *table);

/* image_table_count() - get the number of chunks that @size bytes need. */
size_t image_table_count(uint64_t size, uint32_t chunk_size);

/* image_table_length() - get the bytes of a chunk before packing. */
size_t image_table_length(const struct image_table *table, size_t chunk);

struct image_hashes;
struct image_parent;

struct image_data_options {
        enum image_compression compression;
        int level;                  /* of zstd, 1 to 19; 0: 1 */
        uint32_t chunk_size;        /* 0: IMAGE_CHUNK_SIZE */
        unsigned int threads;       /* 0: as the number of processors suggests */
        bool no_ring, no_direct_io; /* do not even try */
        uint64_t begin; /* 0, or: write from here on, in a file that is long enough and stays so */
        const atomic_bool
                *must_end; /* NULL, or: soon after it is set, the call fails with -ECANCELED */

        /* For writing in chunks of IMAGE_CHUNK_SIZE. */
        struct image_hashes *hashes; /* NULL, or: has the key; the hash of each chunk goes there */
        const struct image_parent *parent; /* NULL, or: what this one has is not written again */
};

/* How the file was written or read. */
struct image_data_report {
        bool has_ring, has_direct_io;
        double seconds;      /* including the wait for the disk */
        uint64_t file_bytes; /* in the file */
};

/*
 * image_data_write() - write all @pieces, one after another, to the new file @name in @directory
 * @where:  the directory's path, for messages
 * Errors: -ENOSPC, -EIO, ...; the file is then removed. SIGXFSZ is not raised.
 */
int image_data_write(int directory, const char *where, const char *name, const struct iovec *pieces,
                     size_t n_pieces, const struct image_data_options *options,
                     struct image_table *ret_table, struct image_data_report *ret_report,
                     struct image_error *error);

/*
 * image_data_write_fd() - the same to the new file @fd, which stays the caller's
 * @path: for messages. Whether it is written with direct I/O, the caller has decided when it opened the file.
 */
int image_data_write_fd(int fd, const char *path, const struct iovec *pieces, size_t n_pieces,
                        const struct image_data_options *options, struct image_table *ret_table,
                        struct image_data_report *ret_report, struct image_error *error);

/* An open data file. */
struct image_data_file {
        int fd;
        char path[512]; /* for messages */
        bool has_direct_io;
};

/* image_data_open() - open the file @name in @directory, which must be as long as @table says. */
int image_data_open(int directory, const char *where, const char *name,
                    const struct image_table *table, const struct image_data_options *options,
                    struct image_data_file *ret_file, struct image_error *error);

/* Where to read memory from. */
struct image_data_source {
        const struct image_table *table; /* without inherited chunks */
        const struct image_data_file *files;
        const uint8_t *of_chunk; /* which file each chunk is in; NULL: the first */
};

/*
 * image_data_read_from() - read from open files into @pieces, which must be as large as the memory was
 * @n_pieces:  0: only check the files
 * Errors: -EBADMSG, a chunk is altered or cut off; then the contents of @pieces are worthless.
 */
int image_data_read_from(const struct image_data_source *source, const struct iovec *pieces,
                         size_t n_pieces, const struct image_data_options *options,
                         struct image_data_report *ret_report, struct image_error *error);

/* image_data_read() - the same from the one file @name in @directory. */
int image_data_read(int directory, const char *where, const char *name,
                    const struct image_table *table, const struct iovec *pieces, size_t n_pieces,
                    const struct image_data_options *options, struct image_data_report *ret_report,
                    struct image_error *error);

/* image_data_read_fd() - the same from @fd, where other things may follow the chunks. */
int image_data_read_fd(int fd, const char *path, const struct image_table *table,
                       const struct iovec *pieces, size_t n_pieces,
                       const struct image_data_options *options,
                       struct image_data_report *ret_report, struct image_error *error);

#endif
