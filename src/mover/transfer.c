/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/transfer.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/size.h"
#include "mover/answer.h"
#include "mover/copy.h"
#include "mover/difference.h"
#include "mover/driver.h"
#include "mover/passing.h"
#include "mover/pieces.h"
#include "mover/plan.h"
#include "mover/refresh.h"

/* Often enough for a person's eyes. */
#define PROGRESS_INTERVAL_NS 20000000u

/* The driver's granularity of memory, on all devices that we know. */
#define STAGING_ALIGN (2 * MIB)

struct transfer {
        struct job *job;
        struct device *device;
        const struct mover_header *request;
        struct mover_done *done;
        uint64_t n_before;       /* bytes that were copied before: staged */
        uint64_t n_unchanged;    /* bytes that the slabs had */
        const atomic_bool *stop; /* of the copy under way */
        struct plan plan;
        struct difference difference; /* OUT */
        struct passing passing;
};

static void transfer_deinit(struct transfer *transfer)
{
        plan_deinit(&transfer->plan);
}

/* Copying. */

static int on_progress(uint64_t bytes_done, void *userdata)
{
        struct transfer *transfer = userdata;
        struct job *job = transfer->job;
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        passing_go_on(&transfer->passing, bytes_done);
        bytes_done += transfer->n_before;
        if (bytes_done == job->n_bytes || now - job->told_ns >= PROGRESS_INTERVAL_NS) {
                job->told_ns = now;
                answer_progress(transfer->request, bytes_done, job->n_bytes);
        }
        if (job->is_half_passed || bytes_done < job->n_bytes / 2)
                return 0;
        job->is_half_passed = true;
        return driver_fault_point(transfer->done, "mover.copy-half");
}

static int wait_for_slab(const struct copy_part *part, struct mover_done *done, void *userdata)
{
        const struct transfer *transfer = userdata;
        uint64_t began = clock_now(CLOCK_MONOTONIC);
        int r = slab_wait(transfer->job->slabs, part->region, transfer->stop, done);

        transfer->done->pin_ns += clock_now(CLOCK_MONOTONIC) - began;
        return r;
}

static int copy(struct transfer *transfer, const atomic_bool *stop, uint64_t *ret_copied)
{
        static const enum copy_direction directions[] = { [MOVER_OUT] = COPY_TO_HOST,
                                                          [MOVER_IN] = COPY_TO_DEVICE,
                                                          [MOVER_PEER] = COPY_BETWEEN_DEVICES };
        struct copy_control control = { .progress = on_progress,
                                        .wait = wait_for_slab,
                                        .userdata = transfer,
                                        .stop = stop,
                                        .device = transfer->device,
                                        .to_context = transfer->device->context,
                                        .from_context = transfer->job->source_context };
        int r = device_get_stream(transfer->device, &control.stream, transfer->done);

        if (r < 0)
                return r;
        transfer->stop = stop;
        r = copy_run(directions[transfer->job->kind], transfer->plan.parts, transfer->plan.n_parts,
                     &control, ret_copied, transfer->done);
        device_put_stream(transfer->device, control.stream);
        return r;
}

/* Staging. */

static int create_staging(struct transfer *transfer, uint64_t limit)
{
        struct job *job = transfer->job;
        uint64_t wanted = (job->n_bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
        uint64_t room = limit / STAGING_ALIGN * STAGING_ALIGN;
        uint64_t size = wanted < room ? wanted : room;
        int r;

        if (size == 0)
                return -ENOMEM;

        r = mapping_create(&job->staging, &job->stage_taking, transfer->device->id, size,
                           transfer->done);
        if (r == 0)
                r = mapping_map(&job->staging, &size, &transfer->device->id, 1, transfer->done);
        if (r < 0)
                mapping_deinit(&job->staging);
        return r;
}

/* By the right that it was given when it was asked for, if no window was open then. */
static int take_staging(struct transfer *transfer, uint64_t limit)
{
        struct job *job = transfer->job;
        struct device *device = transfer->device;
        int r = 0;

        if (!device_has_context(device)) { /* which is a taking of its own */
                transfer_give_up_taking(job, device);
                r = device_enter(device, transfer->done);
        }
        if (r == 0 && !job->stage_taking.room)
                r = device_begin_taking(device, &job->stage_taking);
        if (r == 0)
                r = device_enter(device, transfer->done);
        if (r == 0)
                r = pieces_find(job, device, transfer->done);
        if (r == 0)
                r = create_staging(transfer, limit);
        transfer_give_up_taking(job, device);
        return r;
}

static int stage(struct transfer *transfer, uint64_t limit)
{
        struct job *job = transfer->job;
        uint64_t start;
        int r = take_staging(transfer, limit);

        if (r < 0)
                return r == -ENOMEM ? 0 : r;

        r = plan_staging(&transfer->plan, job);
        start = clock_now(CLOCK_MONOTONIC);
        if (r == 0)
                r = copy(transfer, &job->stop_staging, &job->n_staged);
        job->stage_ns = clock_now(CLOCK_MONOTONIC) - start;
        if (r == 0)
                r = driver_fault_point(transfer->done, "mover.staged");
        return r;
}

void transfer_begin_taking(struct job *job, struct device *device)
{
        (void)room_try(&device->room, &job->stage_taking);
}

void transfer_give_up_taking(struct job *job, struct device *device)
{
        if (job->stage_taking.room)
                device_end_taking(device, &job->stage_taking);
}

void transfer_stage(struct job *job, struct device *device, const struct mover_header *request,
                    uint64_t limit)
{
        CLEANUP(transfer_deinit)
        struct transfer transfer = {
                .job = job, .device = device, .request = request, .done = &job->stage_done
        };

        if (!job_enter(job, &job->stage)) {
                transfer_give_up_taking(job, device);
                return;
        }
        job->stage_error = stage(&transfer, limit);
        job_leave(job, &job->stage);
}

/* The run. */

/* Page tables take memory of the device. */
static int map_target(struct transfer *transfer)
{
        struct job *job = transfer->job;
        int r;

        r = mapping_map(&job->target_mapping, job->target.sizes, &transfer->device->id, 1,
                        transfer->done);
        if (r != -ENOMEM)
                return r;
        driver_forget(transfer->done);
        mapping_unmap(&job->target_mapping);
        device_lend_margin(transfer->device);
        r = mapping_map(&job->target_mapping, job->target.sizes, &transfer->device->id, 1,
                        transfer->done);
        device_return_margin(transfer->device);
        return r;
}

/* While staging still works: it knows nothing of the target. */
static int import_target(struct transfer *transfer)
{
        struct job *job = transfer->job;
        struct job_memories *target = &job->target;
        int r = plan_locate(&transfer->plan, target);

        if (r == 0)
                r = mapping_import(&job->target_mapping, target->sizes, target->fds, target->n,
                                   transfer->done);
        if (r == 0)
                r = map_target(transfer);
        if (r == 0)
                r = driver_fault_point(transfer->done, "mover.job-imported");
        return r;
}

static int check_pieces(const struct job *job)
{
        if (job->n_hashes > 0 && job->n_hashes * HASH_BLOCK != job->target_mapping.size)
                return -EINVAL;
        for (size_t i = 0; i < job->n_pieces; i++) {
                const struct job_piece *piece = &job->pieces[i];
                uint64_t size = job->target.sizes[piece->memory];

                if (piece->memory_offset > size || piece->length > size - piece->memory_offset ||
                    (job->kind == MOVER_PEER && piece->length != size))
                        return -EINVAL;
        }
        return 0;
}

static int prepare(struct transfer *transfer)
{
        struct job *job = transfer->job;
        int r;

        r = device_enter(transfer->device, transfer->done);
        if (r == 0)
                r = import_target(transfer);
        job_stop_staging(job);
        if (r == 0 && job->stage_error < 0) {
                *transfer->done = job->stage_done;
                r = job->stage_error;
        }
        if (r == 0)
                r = pieces_find(job, transfer->device, transfer->done);
        if (r == 0)
                r = check_pieces(job);
        return r;
}

/* The staged part, queued on a stream of its own: it runs beside the copy of the rest. */
static int start_unstaging(struct transfer *transfer, CUstream *ret_stream)
{
        int r;

        if (transfer->job->n_staged == 0)
                return 0;

        r = device_get_stream(transfer->device, ret_stream, transfer->done);
        if (r == 0)
                r = plan_staged(&transfer->plan, transfer->job);
        for (size_t i = 0; i < transfer->plan.n_parts && r == 0; i++)
                r = DRIVER_CALL(transfer->done, cuMemcpyDtoDAsync_v2,
                                transfer->plan.parts[i].device, transfer->plan.parts[i].from,
                                transfer->plan.parts[i].length, *ret_stream);
        return r;
}

static int finish_unstaging(struct device *device, CUstream stream, struct mover_done *done)
{
        int r;

        if (!stream)
                return 0;

        r = DRIVER_CALL(done, cuStreamSynchronize, stream);
        device_put_stream(device, stream);
        return r;
}

static int verify(struct transfer *transfer)
{
        int r = plan_skipped(&transfer->plan, transfer->job, &transfer->difference);

        return r < 0 ? r
                     : difference_verify(transfer->plan.parts, transfer->plan.n_parts,
                                         transfer->done);
}

/* The hashes go before the end of the job, which makes them count. */
static void tell_hashes(struct transfer *transfer)
{
        struct difference *difference = &transfer->difference;
        struct job *job = transfer->job;

        difference_end(difference);
        transfer->done->hash_error = difference->error;
        transfer->done->hash_ns = difference->wait_ns;
        transfer->done->unchanged = transfer->n_unchanged;
        if (difference->error < 0)
                difference_log(difference);
        else if (job->n_hashes > 0)
                answer_hashes(transfer->request, job->hashes, job->n_hashes);
}

/*
 * Where the hashes do not say what to copy the copy need not wait for the driver, which compiles the kernel when it is first
 * used, and keeps the copy of a program waiting that has just been started.
 */
static bool hashes_first(const struct job *job)
{
        return job->hands_over || difference_is_known(job);
}

static int copy_changed(struct transfer *transfer)
{
        struct difference *difference = &transfer->difference;
        struct job *job = transfer->job;
        bool is_first = hashes_first(job);
        uint64_t n_copied;
        int r;

        if (is_first)
                difference_begin(difference, job, transfer->device);
        difference_find(difference);
        transfer->n_unchanged = transfer->n_before = difference->n_unchanged * HASH_BLOCK;
        r = plan_rest(&transfer->plan, job, &transfer->difference);
        passing_begin(&transfer->passing, job, &transfer->plan, difference, transfer->request);
        if (r == 0)
                r = copy(transfer, &job->is_cancelled, &n_copied);
        if (r == 0 && job->is_cancelled)
                r = -ECANCELED;
        if (r == 0 && !is_first)
                difference_begin(difference, job, transfer->device);
        if (r == 0 && job->must_verify)
                r = verify(transfer);
        if (r == 0) /* where nothing was copied, too */
                passing_go_on(&transfer->passing, n_copied);
        if (r == 0)
                r = driver_fault_point(transfer->done, "mover.job-copied");
        if (r == 0)
                tell_hashes(transfer);
        /* A job that has failed lets the memory go next, which the device reads. */
        difference_deinit(difference);
        return r;
}

static int copy_everything(struct transfer *transfer)
{
        struct job *job = transfer->job;
        struct mover_done unstaged = { 0 };
        CUstream stream = NULL;
        uint64_t n_copied;
        int r, end;

        transfer->n_before = job->n_staged;
        r = start_unstaging(transfer, &stream);
        if (r == 0)
                r = plan_rest(&transfer->plan, job, &transfer->difference);
        if (r == 0)
                r = copy(transfer, &job->is_cancelled, &n_copied);
        end = finish_unstaging(transfer->device, stream, &unstaged);
        if (r == 0 && end < 0) { /* what failed first is told */
                *transfer->done = unstaged;
                r = end;
        }
        if (r == 0 && job->is_cancelled)
                r = -ECANCELED;
        if (r == 0)
                r = driver_fault_point(transfer->done, "mover.job-copied");
        return r;
}

/* A copy that trickles does not wait piece by piece. */
static int wait_for_slabs(struct transfer *transfer)
{
        const struct job *job = transfer->job;
        int r = 0;

        for (size_t i = 0; i < job->n_pieces && r == 0; i++)
                r = slab_wait(job->slabs, job->pieces[i].slab, &job->is_cancelled, transfer->done);
        return r;
}

static int copy_out(struct transfer *transfer)
{
        int r;

        if (transfer->job->rate == 0)
                return copy_changed(transfer);
        r = wait_for_slabs(transfer);
        return r < 0 ? r
                     : refresh_run(&transfer->plan, transfer->job, transfer->device,
                                   transfer->request, transfer->done);
}

static int run_transfer(struct transfer *transfer)
{
        struct mover_done *done = transfer->done;
        struct job *job = transfer->job;
        uint64_t start = clock_now(CLOCK_MONOTONIC), prepared;
        int r;

        r = prepare(transfer);
        prepared = clock_now(CLOCK_MONOTONIC);
        if (r == 0)
                r = job->kind == MOVER_OUT ? copy_out(transfer) : copy_everything(transfer);
        done->prepare_ns = prepared - start;
        done->copy_ns = job->stage_ns + clock_now(CLOCK_MONOTONIC) - prepared;
        if (r == 0 && job->rate == 0)
                done->bytes = job->n_bytes;
        if (r < 0)
                job_release(job);
        return r;
}

int transfer_run(struct job *job, struct device *device, const struct mover_header *request,
                 struct mover_done *done)
{
        CLEANUP(transfer_deinit)
        struct transfer transfer = {
                .job = job, .device = device, .request = request, .done = done
        };
        int r;

        if (!job_is_complete(job, &job->target))
                return -EPROTO;
        if (!job_enter(job, &job->run))
                return -ECANCELED;
        r = run_transfer(&transfer);
        job_leave(job, &job->run);
        return r;
}
