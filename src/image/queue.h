/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_QUEUE_H
#define IMAGE_QUEUE_H

/*
 * A queue of reads and writes at given places of a file, several at a time. It uses io_uring. Where
 * that is not allowed it makes plain calls, each when it is submitted; several threads with a queue
 * each then keep the disk as busy.
 *
 * Threads: one queue belongs to one thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct queue;

/* One read or write. The caller owns it, and leaves it alone until queue_wait() returns it. */
struct queue_request {
        bool is_write;
        int fd;
        uint64_t offset;
        struct iovec *iov; /* the queue changes it */
        unsigned int n_iov;
        int error; /* when it comes back: 0, or a negative errno; -ENODATA: the file ends there */
        struct queue_request *next; /* for the queue */
};

/* queue_new() - make a queue of up to @depth requests. @may_use_ring: try io_uring. Errors: -ENOMEM. */
int queue_new(struct queue **ret_queue, unsigned int depth, bool may_use_ring);

/* queue_free() - free a queue that has no request under way. Returns NULL. */
struct queue *queue_free(struct queue *queue);

/* queue_has_ring() - does it use io_uring? */
bool queue_has_ring(const struct queue *queue);

/* queue_submit() - begin @request. queue_wait() returns it, with its error if it fails. */
void queue_submit(struct queue *queue, struct queue_request *request);

/* queue_wait() - wait for the next request to end; NULL: nothing is under way. */
struct queue_request *queue_wait(struct queue *queue);

#endif
