/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/trickle.h"

#include "base/clock.h"
#include "base/size.h"
#include "mover/driver.h"
#include "mover/job.h"

/*
 * A piece: what the rate allows in a 256th of a second. The largest takes 0.3 ms of a PCIe 5 bus, and
 * none waits longer. Whole blocks, so that a stop leaves none of which half is new.
 */
#define PIECES_A_SECOND 256
#define PIECE_MIN       (2 * MIB)
#define PIECE_MAX       (16 * MIB)

static uint64_t get_piece_size(const struct job *job)
{
        uint64_t size = job->rate * MIB / PIECES_A_SECOND / PIECE_MIN * PIECE_MIN;

        if (size < PIECE_MIN)
                return PIECE_MIN;
        return size < PIECE_MAX ? size : PIECE_MAX;
}

static int on_progress(uint64_t bytes_done, void *userdata)
{
        (void)bytes_done, (void)userdata;
        return 0;
}

static int copy_piece(const struct copy_part *part, uint64_t offset, uint64_t length,
                      CUstream stream, struct mover_done *done)
{
        static const atomic_bool never = false; /* a piece that has begun is copied entirely */
        const struct copy_control control = { .progress = on_progress,
                                              .stop = &never,
                                              .stream = stream };
        struct copy_part piece = *part;
        uint64_t n_copied;
        int r;

        piece.device += offset;
        piece.host += offset;
        piece.length = length;
        r = copy_run(COPY_TO_HOST, &piece, 1, &control, &n_copied, done);
        return r < 0 ? r : driver_fault_point(done, "mover.refreshed-piece");
}

static int copy_parts(const struct copy_part *parts, size_t n_parts, struct job *job,
                      CUstream stream, uint64_t *ret_copied, struct mover_done *done)
{
        uint64_t piece = get_piece_size(job), next_ns = 0;

        for (size_t i = 0; i < n_parts; i++)
                for (uint64_t offset = 0; offset < parts[i].length; offset += piece) {
                        uint64_t rest = parts[i].length - offset;
                        uint64_t length = rest < piece ? rest : piece;
                        int r;

                        job_rest(job, next_ns);
                        if (job->must_stop)
                                return 0;
                        next_ns =
                                clock_now(CLOCK_MONOTONIC) + length * NS_PER_S / (job->rate * MIB);
                        r = copy_piece(&parts[i], offset, length, stream, done);
                        if (r < 0)
                                return r;
                        *ret_copied += length;
                }
        return 0;
}

int trickle_run(const struct copy_part *parts, size_t n_parts, struct job *job,
                struct device *device, uint64_t *ret_copied, struct mover_done *done)
{
        CUstream stream;
        int r = device_get_stream(device, &stream, done);

        *ret_copied = 0;
        if (r < 0)
                return r;
        r = copy_parts(parts, n_parts, job, stream, ret_copied, done);
        device_put_stream(device, stream);
        return r;
}
