/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_QUEUE_H
#define IMAGE_QUEUE_H

/*
 * Reads and writes at places of a file, several at a time: by io_uring, or, where that is not
 * allowed, by plain calls, each done when it is submitted; then several threads, each with a queue
 * of its own, keep the disk as busy.
 *
 * Threads: one queue belongs to one thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct queue;

/* One piece of work; the caller's, and untouched by him until queue_wait() gives it back. */
struct queue_request {
        bool is_write;
        int fd;
        uint64_t offset;
        struct iovec *iov; /* is consumed */
        unsigned int n_iov;
        int error; /* when it comes back: 0, or a negative errno; -ENODATA: the file ends there */
        struct queue_request *next; /* the queue's */
};

/* queue_new() - for @depth requests at a time; @may_use_ring: try io_uring. Errors: -ENOMEM. */
int queue_new(struct queue **ret_queue, unsigned int depth, bool may_use_ring);

/* queue_free() - nothing may be under way. Returns NULL. */
struct queue *queue_free(struct queue *queue);

/* queue_has_ring() - is it io_uring? */
bool queue_has_ring(const struct queue *queue);

/* queue_submit() - failures are told with the request, by queue_wait(). */
void queue_submit(struct queue *queue, struct queue_request *request);

/* queue_wait() - the next that is whole; NULL: nothing is under way. */
struct queue_request *queue_wait(struct queue *queue);

#endif
