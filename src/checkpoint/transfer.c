/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/transfer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "checkpoint/contexts.h"
#include "checkpoint/driver.h"

/* What direct I/O wants of lengths and places. */
#define ALIGNMENT 4096

/* 0.15 ms of a PCIe 5 bus, and what a disk likes to get at a time. */
#define PIECE_BYTES ((uint64_t)8 << 20)

static char *staging[CREW_MAX][2];

struct transfer {
        enum transfer_direction direction;
        const struct store *store;
        const struct transfer_range *ranges;
        size_t n_ranges;
        pthread_mutex_t lock; /* of the following */
        bool has_failed;
        char *problem;
        size_t room;
};

/* One segment, by one member. */
struct segment {
        struct transfer *transfer;
        const char *name; /* of the store's device */
        uint64_t number;
        int fd;
        CUdeviceptr pointer;
        uint64_t size;
        const CUstream *stream; /* two, as there are of the following */
        char *const *buffer;
};

CUresult transfer_prepare(void)
{
        CUresult code = contexts_enter(-1);

        for (unsigned int i = 0; i < crew_get_size(); i++)
                for (unsigned int k = 0; k < 2 && code == CUDA_SUCCESS; k++) {
                        void *buffer = staging[i][k];

                        if (!buffer)
                                code = driver.cuMemHostAlloc(&buffer, PIECE_BYTES,
                                                             CU_MEMHOSTALLOC_PORTABLE);
                        staging[i][k] = code == CUDA_SUCCESS ? buffer : NULL;
                }
        return code;
}

void transfer_release(void)
{
        (void)contexts_enter(-1);
        for (unsigned int i = 0; i < CREW_MAX; i++)
                for (unsigned int k = 0; k < 2; k++) {
                        if (staging[i][k])
                                (void)driver.cuMemFreeHost(staging[i][k]);
                        staging[i][k] = NULL;
                }
}

static bool has_failed(struct transfer *transfer)
{
        bool answer;

        pthread_mutex_lock(&transfer->lock);
        answer = transfer->has_failed;
        pthread_mutex_unlock(&transfer->lock);
        return answer;
}

static int fail(struct transfer *transfer, const char *what, const char *why)
{
        pthread_mutex_lock(&transfer->lock);
        if (!transfer->has_failed)
                snprintf(transfer->problem, transfer->room, "%s: %s", what, why);
        transfer->has_failed = true;
        pthread_mutex_unlock(&transfer->lock);
        return -EIO;
}

static int fail_segment(const struct segment *segment, int r)
{
        char what[PATHS_MAX + 64];

        snprintf(what, sizeof(what), "%s/%s.%06llu", segment->transfer->store->path, segment->name,
                 (unsigned long long)segment->number);
        return fail(segment->transfer, what, strerrordesc_np(-r));
}

static int check(const struct segment *segment, const char *call, CUresult code)
{
        return code == CUDA_SUCCESS ? 0 : fail(segment->transfer, call, driver_error_name(code));
}

static uint64_t length_of(const struct segment *segment, uint64_t piece)
{
        uint64_t left = segment->size - piece * PIECE_BYTES;

        return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static int write_piece(const struct segment *segment, uint64_t piece)
{
        uint64_t length = length_of(segment, piece), done = 0;
        const char *from = segment->buffer[piece & 1];

        if (fault_point("checkpointer.write"))
                return fail_segment(segment, -EIO);
        while (done < length) {
                ssize_t n = pwrite(segment->fd, from + done, length - done,
                                   (off_t)(piece * PIECE_BYTES + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return fail_segment(segment, n < 0 ? -errno : -EIO);
                done += (uint64_t)n;
        }
        return 0;
}

static int read_piece(const struct segment *segment, uint64_t piece)
{
        uint64_t length = length_of(segment, piece), done = 0;
        char *to = segment->buffer[piece & 1];

        if (fault_point("checkpointer.read"))
                return fail_segment(segment, -EIO);
        while (done < length) {
                ssize_t n = pread(segment->fd, to + done, length - done,
                                  (off_t)(piece * PIECE_BYTES + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return fail_segment(segment, n < 0 ? -errno : -ENODATA);
                done += (uint64_t)n;
        }
        return 0;
}

static int queue_out(const struct segment *segment, uint64_t piece)
{
        return check(segment, "cuMemcpyDtoHAsync",
                     driver.cuMemcpyDtoHAsync_v2(
                             segment->buffer[piece & 1], segment->pointer + piece * PIECE_BYTES,
                             length_of(segment, piece), segment->stream[piece & 1]));
}

static int queue_in(const struct segment *segment, uint64_t piece)
{
        return check(segment, "cuMemcpyHtoDAsync",
                     driver.cuMemcpyHtoDAsync_v2(
                             segment->pointer + piece * PIECE_BYTES, segment->buffer[piece & 1],
                             length_of(segment, piece), segment->stream[piece & 1]));
}

static int wait_for(const struct segment *segment, uint64_t piece)
{
        return check(segment, "cuStreamSynchronize",
                     driver.cuStreamSynchronize(segment->stream[piece & 1]));
}

static int copy_out(const struct segment *segment, uint64_t n_pieces)
{
        int r = queue_out(segment, 0);

        for (uint64_t piece = 0; piece < n_pieces && r == 0; piece++) {
                if (piece + 1 < n_pieces)
                        r = queue_out(segment, piece + 1);
                if (r == 0)
                        r = wait_for(segment, piece);
                if (r == 0)
                        r = write_piece(segment, piece);
        }
        return r;
}

static int copy_in(const struct segment *segment, uint64_t n_pieces)
{
        int r = 0;

        for (uint64_t piece = 0; piece < n_pieces && r == 0; piece++) {
                if (piece > 1)
                        r = wait_for(segment, piece);
                if (r == 0)
                        r = read_piece(segment, piece);
                if (r == 0)
                        r = queue_in(segment, piece);
        }
        return r;
}

static void copy_segment(struct segment *segment)
{
        struct transfer *transfer = segment->transfer;
        uint64_t n_pieces = (segment->size + PIECE_BYTES - 1) / PIECE_BYTES;
        bool is_out = transfer->direction == TRANSFER_TO_STORE;
        int r = is_out ? copy_out(segment, n_pieces) : copy_in(segment, n_pieces);

        for (uint64_t i = 0; i < 2; i++)
                if (r == 0)
                        r = wait_for(segment, i);
                else
                        (void)driver.cuStreamSynchronize(segment->stream[i]);
}

static size_t count_segments(const struct transfer_range *range)
{
        return (range->size + STORE_SEGMENT - 1) / STORE_SEGMENT;
}

/* The range in which segment number *@task of all is; *@task is then its number in there. */
static const struct transfer_range *find_range(const struct transfer *transfer, size_t *task)
{
        const struct transfer_range *range = transfer->ranges;

        while (*task >= count_segments(range))
                *task -= count_segments(range++);
        return range;
}

static void run_task(void *data, size_t task, unsigned int member)
{
        struct transfer *transfer = data;
        const struct transfer_range *range = find_range(transfer, &task);
        bool is_out = transfer->direction == TRANSFER_TO_STORE;
        uint64_t begin = task * STORE_SEGMENT, left = range->size - begin;
        struct segment segment = { .transfer = transfer,
                                   .name = transfer->store->part[range->part].uuid,
                                   .number = task,
                                   .pointer = range->pointer + begin,
                                   .size = left < STORE_SEGMENT ? left : STORE_SEGMENT,
                                   .stream = contexts_get(range->device)->stream[member],
                                   .buffer = staging[member] };
        bool is_direct = transfer->store->place == VGPU_CHECKPOINT_STORAGE_DIRECTORY &&
                         segment.size % ALIGNMENT == 0;

        if (has_failed(transfer) ||
            check(&segment, "cuCtxSetCurrent", contexts_enter((int)range->device)) < 0)
                return;
        segment.fd = store_open_segment(transfer->store, range->part, task, is_out, is_direct);
        if (segment.fd < 0) {
                (void)fail_segment(&segment, segment.fd);
                return;
        }
        copy_segment(&segment);
        /* What waits in the page cache may still fail: now it can be told, at a restore it is too late. */
        if (is_out && transfer->store->place == VGPU_CHECKPOINT_STORAGE_DIRECTORY &&
            !has_failed(transfer) && fdatasync(segment.fd) < 0)
                (void)fail_segment(&segment, -errno);
        fd_close(segment.fd);
}

int transfer_run(enum transfer_direction direction, const struct store *store,
                 const struct transfer_range *ranges, size_t n_ranges, char *problem, size_t room)
{
        struct transfer transfer = { .direction = direction,
                                     .store = store,
                                     .ranges = ranges,
                                     .n_ranges = n_ranges,
                                     .lock = PTHREAD_MUTEX_INITIALIZER,
                                     .problem = problem,
                                     .room = room };
        size_t n = 0;

        for (size_t i = 0; i < n_ranges; i++)
                n += count_segments(&ranges[i]);
        crew_run(n, run_task, &transfer);
        return transfer.has_failed ? -EIO : 0;
}
