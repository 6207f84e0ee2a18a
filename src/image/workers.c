/* SPDX-License-Identifier: Apache-2.0 */
#include "image/workers.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Requests on their way to the disk, of each thread; without io_uring a thread has one. */
#define IN_FLIGHT     8
#define THREADS_MAX   16
#define THREADS_PLAIN 4 /* neither packed nor hashed: so many are faster than disks */

void workers_fail(struct workers *workers, int code, const char *hint, const char *message, ...)
{
        char text[sizeof(workers->error->message)];
        va_list args;

        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        pthread_mutex_lock(&workers->lock);
        (void)image_fail(workers->error, code, hint, "%s", text);
        pthread_mutex_unlock(&workers->lock);
        workers->has_failed = true;
}

void workers_fail_file(struct workers *workers, const struct image_data_file *file, int code,
                       const char *doing)
{
        pthread_mutex_lock(&workers->lock);
        (void)image_fail_file(workers->error, code, doing, file->path);
        pthread_mutex_unlock(&workers->lock);
        workers->has_failed = true;
}

double workers_now(void)
{
        return (double)clock_now(CLOCK_MONOTONIC) / NS_PER_S;
}

static char *new_buffer(struct workers *workers)
{
        void *buffer = NULL;

        if (posix_memalign(&buffer, SPAN_ALIGN, worker_align(workers->table->chunk_size)) != 0) {
                workers_fail(workers, -ENOMEM, "", "not enough memory for a chunk of %u bytes",
                             workers->table->chunk_size);
                return NULL;
        }
        return buffer;
}

char *worker_slot_buffer(struct worker_slot *slot)
{
        if (!slot->buffer)
                slot->buffer = new_buffer(slot->worker->workers);
        return slot->buffer;
}

char *worker_scratch(struct worker *worker)
{
        if (!worker->scratch)
                worker->scratch = new_buffer(worker->workers);
        return worker->scratch;
}

/* Starts the next chunk in @slot. False: there is none, or none is wanted after a failure. */
static bool start_next(struct worker_slot *slot)
{
        struct workers *workers = slot->worker->workers;

        for (;;) {
                const atomic_bool *must_end = workers->options->must_end;
                size_t chunk;

                if (must_end && *must_end)
                        workers_fail_file(workers, workers->files, -ECANCELED, "work on");
                chunk = workers->has_failed ? SIZE_MAX : atomic_fetch_add(&workers->next, 1);
                if (chunk >= workers->table->n_chunks)
                        return false;
                slot->chunk = chunk;
                slot->length = image_table_length(workers->table, chunk);
                if (workers->begin(slot)) {
                        queue_submit(slot->worker->queue, &slot->request);
                        return true;
                }
        }
}

static void run_worker(struct worker *worker)
{
        struct worker_slot slots[IN_FLIGHT] = { 0 };
        struct queue_request *request;
        unsigned int depth = queue_has_ring(worker->queue) ? IN_FLIGHT : 1;

        for (unsigned int i = 0; i < depth; i++) {
                slots[i].worker = worker;
                if (!start_next(&slots[i]))
                        break;
        }
        while ((request = queue_wait(worker->queue))) {
                struct worker_slot *slot = (struct worker_slot *)request;

                worker->workers->end(slot);
                (void)start_next(slot);
        }
        for (unsigned int i = 0; i < depth; i++)
                free(slots[i].buffer);
}

static void *thread_run(void *userdata)
{
        struct workers *workers = userdata;
        struct worker worker = { .workers = workers };
        int r = queue_new(&worker.queue, IN_FLIGHT, !workers->options->no_ring);

        if (r == 0)
                r = compressor_new(&worker.compressor, workers->table->compression,
                                   workers->options->level ? workers->options->level : 1);
        if (r == 0) {
                if (queue_has_ring(worker.queue))
                        workers->has_ring = true;
                run_worker(&worker);
        } else {
                workers_fail(workers, r, "", "cannot start working on %s: %s", workers->files->path,
                             strerrordesc_np(-r));
        }
        free(worker.scratch);
        compressor_free(worker.compressor);
        queue_free(worker.queue);
        return NULL;
}

static bool can_use_ring(const struct workers *workers)
{
        struct queue *queue = NULL;
        bool can = !workers->options->no_ring && queue_new(&queue, 1, true) == 0 &&
                   queue_has_ring(queue);

        queue_free(queue);
        return can;
}

static unsigned int count_threads(const struct workers *workers)
{
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        unsigned int n = workers->options->threads;

        if (n == 0) {
                n = processors > 0 ? (unsigned int)processors : 1;
                if (workers->table->compression == IMAGE_COMPRESSION_NONE &&
                    !workers->options->hashes && n > THREADS_PLAIN)
                        n = THREADS_PLAIN;
                if (n < IN_FLIGHT && !can_use_ring(workers))
                        n = IN_FLIGHT;
        }
        if (n > THREADS_MAX)
                n = THREADS_MAX;
        if (n > workers->table->n_chunks)
                n = (unsigned int)workers->table->n_chunks;
        return n > 0 ? n : 1;
}

void workers_run(struct workers *workers)
{
        unsigned int n = count_threads(workers), n_started = 0;
        pthread_t threads[THREADS_MAX];

        /* The caller is one of them, so that it works with whatever threads there are. */
        while (n_started + 1 < n &&
               pthread_create(&threads[n_started], NULL, thread_run, workers) == 0)
                n_started++;
        (void)thread_run(workers);
        for (unsigned int i = 0; i < n_started; i++)
                pthread_join(threads[i], NULL);
}

int workers_end(struct workers *workers, double start, struct image_data_report *ret_report)
{
        span_deinit(&workers->span);
        *ret_report = (struct image_data_report){
                .has_ring = workers->has_ring,
                .has_direct_io = workers->files->has_direct_io,
                .seconds = workers_now() - start,
                .file_bytes = workers->table->file_size,
        };
        return workers->error->code;
}
