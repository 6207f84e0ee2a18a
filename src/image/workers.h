/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_WORKERS_H
#define IMAGE_WORKERS_H

/*
 * The threads that write or read a data file. Each thread takes the next chunk, does the
 * processor's work for it, and keeps several chunks on their way to or from the disk.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "image/data.h"
#include "image/queue.h"
#include "image/span.h"

/* Of a chunk whose memory is in more pieces a copy is made. */
#define WORKER_PIECES_MAX 32

struct worker;

/* A chunk on its way. */
struct worker_slot {
        struct queue_request request; /* first: what the queue gives back is the slot */
        struct worker *worker;
        struct iovec iov[WORKER_PIECES_MAX];
        size_t chunk, length;
        char *buffer; /* of a chunk's size, aligned; made when it is needed */
        bool is_buffered;
};

struct workers {
        const struct image_data_file *files; /* to write into: one */
        const uint8_t *of_chunk;             /* which of them a chunk is in; NULL: the first */
        struct image_table *table;
        struct span span;
        const struct image_data_options *options;
        bool has_memory;

        /* Does what comes before the disk. True: the request is to be submitted; false: it is over. */
        bool (*begin)(struct worker_slot *slot);
        /* Does what comes after it. */
        void (*end)(struct worker_slot *slot);

        atomic_size_t next;
        atomic_bool has_failed, has_ring;
        atomic_uint_least64_t file_end;
        pthread_mutex_t lock; /* of the following */
        struct image_error *error;
        uint64_t file_room; /* the file is so long */
};

struct worker {
        struct workers *workers;
        struct queue *queue;
        struct compressor *compressor;
        char *scratch; /* of a chunk's size, for what is unpacked or not yet packed */
};

/*
 * workers_run() - until the last chunk or the first failure, which is in workers->error
 * workers_end() - let the memory go, and report on what began at @start. Returns the first failure, or 0.
 */
void workers_run(struct workers *workers);
int workers_end(struct workers *workers, double start, struct image_data_report *ret_report);

/* workers_file() - get the file that a chunk is in. */
static inline const struct image_data_file *workers_file(const struct workers *workers,
                                                         size_t chunk)
{
        return &workers->files[workers->of_chunk ? workers->of_chunk[chunk] : 0];
}

/* workers_fail() - from any thread; the first reason counts. */
__attribute__((format(printf, 4, 5))) void workers_fail(struct workers *workers, int code,
                                                        const char *hint, const char *message, ...);
void workers_fail_file(struct workers *workers, const struct image_data_file *file, int code,
                       const char *doing);

/* workers_now() - seconds, for the report. */
double workers_now(void);

/* worker_slot_buffer(), worker_scratch() - NULL: no memory, and the run has failed. */
char *worker_slot_buffer(struct worker_slot *slot);
char *worker_scratch(struct worker *worker);

static inline uint64_t worker_align(uint64_t size)
{
        return (size + SPAN_ALIGN - 1) / SPAN_ALIGN * SPAN_ALIGN;
}

#endif
