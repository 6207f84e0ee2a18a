/* SPDX-License-Identifier: Apache-2.0 */
#include "image/ring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/cleanup.h"

struct ring {
        int fd;
        void *queues; /* both, in one mapping */
        size_t queues_size;
        struct io_uring_sqe *requests;
        size_t requests_size;
        unsigned int *tail, *array, mask; /* of what we submit */
        unsigned int *done_head, *done_tail, done_mask;
        struct io_uring_cqe *done;
};

struct ring *ring_free(struct ring *ring)
{
        if (!ring)
                return NULL;
        if (ring->requests)
                munmap(ring->requests, ring->requests_size);
        if (ring->queues)
                munmap(ring->queues, ring->queues_size);
        fd_close(ring->fd);
        free(ring);
        return NULL;
}

DEFINE_CLEANUP(struct ring *, ring_free);

static void *map(int fd, size_t size, off_t what)
{
        void *address =
                mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);

        return address == MAP_FAILED ? NULL : address;
}

static void *at(const struct ring *ring, unsigned int offset)
{
        return (char *)ring->queues + offset;
}

static int map_queues(struct ring *ring, const struct io_uring_params *params)
{
        size_t submitted = params->sq_off.array + params->sq_entries * sizeof(unsigned int);
        size_t done = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);

        ring->queues_size = submitted > done ? submitted : done;
        ring->queues = map(ring->fd, ring->queues_size, IORING_OFF_SQ_RING);
        ring->requests_size = params->sq_entries * sizeof(struct io_uring_sqe);
        ring->requests = map(ring->fd, ring->requests_size, (off_t)IORING_OFF_SQES);
        if (!ring->queues || !ring->requests)
                return -ENOMEM;

        ring->tail = at(ring, params->sq_off.tail);
        ring->array = at(ring, params->sq_off.array);
        ring->mask = params->sq_entries - 1;
        ring->done_head = at(ring, params->cq_off.head);
        ring->done_tail = at(ring, params->cq_off.tail);
        ring->done_mask = params->cq_entries - 1;
        ring->done = at(ring, params->cq_off.cqes);
        return 0;
}

int ring_new(struct ring **ret_ring, unsigned int depth)
{
        CLEANUP(ring_freep) struct ring *ring = calloc(1, sizeof(*ring));
        struct io_uring_params params = { 0 };
        int r;

        if (!ring)
                return -ENOMEM;
        ring->fd = (int)syscall(SYS_io_uring_setup, depth, &params);
        if (ring->fd < 0)
                return -errno;
        if (!(params.features & IORING_FEAT_SINGLE_MMAP))
                return -ENOSYS; /* before Linux 5.4 */
        r = map_queues(ring, &params);
        if (r < 0)
                return r;
        *ret_ring = TAKE(ring);
        return 0;
}

static int enter(struct ring *ring, unsigned int n_submit, unsigned int n_wait)
{
        unsigned int flags = n_wait > 0 ? IORING_ENTER_GETEVENTS : 0;
        long n;

        do
                n = syscall(SYS_io_uring_enter, ring->fd, n_submit, n_wait, flags, NULL, 0);
        while (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EBUSY));
        return n < 0 ? -errno : 0;
}

int ring_submit(struct ring *ring, bool is_write, int fd, const struct iovec *iov,
                unsigned int n_iov, uint64_t offset, void *userdata)
{
        unsigned int tail = *ring->tail, index = tail & ring->mask;
        int r;

        ring->requests[index] = (struct io_uring_sqe){
                .opcode = is_write ? IORING_OP_WRITEV : IORING_OP_READV,
                .fd = fd,
                .off = offset,
                .addr = (uint64_t)(uintptr_t)iov,
                .len = n_iov,
                .user_data = (uint64_t)(uintptr_t)userdata,
        };
        ring->array[index] = index;
        __atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
        r = enter(ring, 1, 0);
        if (r < 0) /* else it would go with the next one */
                __atomic_store_n(ring->tail, tail, __ATOMIC_RELEASE);
        return r;
}

void ring_wait(struct ring *ring, void **ret_userdata, int *ret_result)
{
        const struct timespec pause = { .tv_nsec = 1000000 };
        unsigned int head = *ring->done_head;
        const struct io_uring_cqe *done;

        /* Until it has ended the kernel may use its memory: there is no way out with an error. */
        while (head == __atomic_load_n(ring->done_tail, __ATOMIC_ACQUIRE))
                if (enter(ring, 0, 1) < 0)
                        nanosleep(&pause, NULL);
        done = &ring->done[head & ring->done_mask];
        memcpy(ret_userdata, &done->user_data, sizeof(*ret_userdata));
        *ret_result = done->res;
        __atomic_store_n(ring->done_head, head + 1, __ATOMIC_RELEASE);
}
