/* SPDX-License-Identifier: Apache-2.0 */
#include "image/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "image/ring.h"

struct queue {
        struct ring *ring;          /* NULL: plain calls */
        struct queue_request *done; /* without a round through the ring */
        unsigned int n_in_ring;
};

struct queue *queue_free(struct queue *queue)
{
        if (!queue)
                return NULL;
        ring_free(queue->ring);
        free(queue);
        return NULL;
}

int queue_new(struct queue **ret_queue, unsigned int depth, bool may_use_ring)
{
        struct queue *queue = calloc(1, sizeof(*queue));

        if (!queue)
                return -ENOMEM;
        if (may_use_ring)
                (void)ring_new(&queue->ring, depth);
        *ret_queue = queue;
        return 0;
}

bool queue_has_ring(const struct queue *queue)
{
        return queue->ring != NULL;
}

static void finish(struct queue *queue, struct queue_request *request, int error)
{
        request->error = error;
        request->next = queue->done;
        queue->done = request;
}

/* True: @n bytes were all of it. */
static bool consume(struct queue_request *request, size_t n)
{
        request->offset += n;
        while (request->n_iov > 0 && n >= request->iov->iov_len) {
                n -= request->iov->iov_len;
                request->iov++;
                request->n_iov--;
        }
        if (request->n_iov == 0)
                return true;
        request->iov->iov_base = (char *)request->iov->iov_base + n;
        request->iov->iov_len -= n;
        return false;
}

/* What @result, of a call or of the ring, means. True: the request is over. */
static bool take(struct queue *queue, struct queue_request *request, ssize_t result)
{
        if (result == -EINTR || result == -EAGAIN)
                return false;
        if (result < 0)
                finish(queue, request, (int)result);
        else if (result == 0)
                finish(queue, request, request->is_write ? -EIO : -ENODATA);
        else if (consume(request, (size_t)result))
                finish(queue, request, 0);
        else
                return false;
        return true;
}

static ssize_t call(const struct queue_request *request)
{
        ssize_t n = request->is_write ? pwritev(request->fd, request->iov, (int)request->n_iov,
                                                (off_t)request->offset)
                                      : preadv(request->fd, request->iov, (int)request->n_iov,
                                               (off_t)request->offset);

        return n < 0 ? -errno : n;
}

void queue_submit(struct queue *queue, struct queue_request *request)
{
        int r;

        if (!queue->ring) {
                while (!take(queue, request, call(request)))
                        ;
                return;
        }
        r = ring_submit(queue->ring, request->is_write, request->fd, request->iov, request->n_iov,
                        request->offset, request);
        if (r < 0)
                finish(queue, request, r);
        else
                queue->n_in_ring++;
}

struct queue_request *queue_wait(struct queue *queue)
{
        struct queue_request *request;

        while (!queue->done && queue->n_in_ring > 0) {
                void *userdata;
                int result;

                ring_wait(queue->ring, &userdata, &result);
                queue->n_in_ring--;
                request = userdata;
                if (!take(queue, request, result))
                        queue_submit(queue, request);
        }
        request = queue->done;
        if (request)
                queue->done = request->next;
        return request;
}
