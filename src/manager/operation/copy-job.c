/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copy-job.h"

#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "daemon/log.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/copy-check.h"
#include "manager/operation/copy-hashes.h"
#include "manager/operation/copy-way.h"
#include "manager/operation/handover.h"
#include "manager/operation/job-lists.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* Jobs: one for each device that has some of the memory that is copied. */

/* A LIVE job has one, MiB a second; ours is as fast as the bus. */
#define LIVE_RATE (1u << 30)

bool copy_job_is_there(const struct guest_job *job)
{
        const struct device *device = job->device;

        return job->generation && job->generation == device->generation && device->mover &&
               !mover_is_lost(device->mover);
}

size_t copy_job_count(const struct guest_job *job)
{
        size_t n = 0;

        for (size_t i = 0; i < job->guest->n_memory; i++)
                n += job_lists_has(job, i);
        return n;
}

static void on_progress(struct mover *mover, uint64_t bytes_done, uint64_t bytes_total,
                        void *userdata)
{
        struct guest_job *job = userdata;
        struct operation *operation = job->guest->instance->operation;

        (void)mover, (void)bytes_total;
        if (bytes_done > job->bytes_done && operation) {
                operation_add_progress(operation, bytes_done - job->bytes_done);
                job->bytes_done = bytes_done;
        }
}

/* Only of a vGPU of one device: handover.h. */
static void on_passed(struct mover *mover, size_t n, void *userdata)
{
        struct guest_job *job = userdata;
        struct guest *guest = job->guest;
        size_t before = guest->participant->copy.n_passed;

        (void)mover;
        if (guest_is_dead(guest) || guest->participant->copy.is_kept || n <= before)
                return;
        guest->participant->copy.n_passed = n;
        guest->participant->copy.is_kept =
                !handover_pass(guest, guest->participant->copy.first + before, n - before);
}

static int add_places(struct guest_job *own, struct mover_job *job, const struct job_lists *lists,
                      struct mover_segment **ret_segments)
{
        struct guest *guest = own->guest;
        struct operation *operation = guest->instance->operation;
        int r = 0;

        if (job->kind == MOVER_PEER) {
                job->source_uuid = operation->source.device[own->part]->uuid;
                job->source_sizes = lists->sizes;
                job->source_fds = lists->sources;
                return 0;
        }
        if (job->kind == MOVER_IN)
                r = copy_check(guest, &operation->failure);
        else if (!pool_is_lone(operation->instance->manager->pool, guest->reservation))
                r = -EBUSY; /* what others hold is never written to: slab.h */
        if (r == 0)
                r = job_lists_make_segments(own, ret_segments, &job->n_segments);
        job->segments = *ret_segments;
        if (r == 0 && job->kind == MOVER_OUT) {
                r = copy_hashes_tell(own, job, lists);
                job->passed = !job->must_verify && !guest->participant->copy.way->is_live &&
                                              handover_may(guest)
                                      ? on_passed
                                      : NULL;
                job->is_live = guest->participant->copy.way->is_live;
                job->rate = job->is_live ? LIVE_RATE : 0;
        }
        return r;
}

static int begin_job(struct guest_job *own, enum mover_job_kind kind)
{
        CLEANUP(job_lists_deinit) struct job_lists lists = { 0 };
        CLEANUP(freep) struct mover_segment *segments = NULL;
        struct mover_job job = { .kind = kind, .progress = on_progress, .userdata = own };
        struct mover *mover;
        int r = job_lists_make(&lists, own);

        job.n_memories = lists.n;
        if (r == 0)
                r = device_get_mover(own->device, &mover);
        if (r == 0)
                r = add_places(own, &job, &lists, &segments);
        if (r == 0)
                r = mover_job_begin(mover, &own->id, &job);
        if (r < 0)
                return r;
        own->kind = kind;
        own->n_hashes = job.n_hashes;
        own->generation = own->device->generation;
        own->bytes_done = 0;
        own->has_run = false;
        return 0;
}

/* begin: the mover knows what goes where. */

int copy_job_begin(struct guest_job *job)
{
        const struct copy_way *way = job->guest->participant->copy.way;

        if (way->has_job && (job->has_run || copy_job_is_there(job)))
                return 0;
        return begin_job(job, way->is_pooled(job->guest) ? way->pooled : MOVER_PEER);
}

int copy_job_begin_in(struct guest_job *job)
{
        return begin_job(job, MOVER_IN);
}

/* stage: begin to copy ahead of the target, into the guest's part of what the operation may take. */

static uint64_t sum_memory(const struct operation *operation, size_t part)
{
        struct guest *guest;
        uint64_t sum = 0;

        operation_for_each_guest(guest, operation)
                sum += guest_sum_memory(guest, part);
        return sum;
}

int copy_job_stage(struct guest_job *job)
{
        const struct operation *operation = job->guest->instance->operation;
        double part = (double)guest_sum_memory(job->guest, job->part) /
                      (double)sum_memory(operation, job->part);

        return mover_job_stage(job->device->mover, job->id,
                               (uint64_t)(part * (double)operation->staging[job->part].bytes));
}

/* run: all of it is copied. */

void copy_job_note_run(struct guest_job *job, const struct mover_done *done)
{
        struct operation *operation = job->guest->instance->operation;

        log_event(LOG_LEVEL_DEBUG, "copied",
                  "vgpu=%s pid=%d device=%u prepare_ms=%.1f copy_ms=%.1f hash_ms=%.1f "
                  "unchanged=%" PRIu64,
                  operation->instance->name, (int)job->guest->pid, job->device->index,
                  (double)done->prepare_ns / 1e6, (double)done->copy_ns / 1e6,
                  (double)done->hash_ns / 1e6, done->unchanged);
        if (done->copy_ns > operation->measured.copy_ns)
                operation->measured.copy_ns = done->copy_ns;
        if (done->pin_ns > operation->measured.pin_ns) {
                operation->measured.pool_ns += done->pin_ns - operation->measured.pin_ns;
                operation->measured.pin_ns = done->pin_ns;
        }
        if (job->n_hashes > 0)
                copy_hashes_note(job, done);
}

static void on_run(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;

        (void)mover;
        job->has_run = done->error == 0;
        if (job->has_run && job->guest->participant->copy.way->is_live)
                copy_hashes_note_live(job, done);
        else if (job->has_run)
                copy_job_note_run(job, done);
        copy_way_end_wait(job, done->error, done);
}

int copy_job_run(struct guest_job *job)
{
        CLEANUP(job_lists_deinit) struct job_lists lists = { 0 };
        int r;

        if (job->has_run) /* before the mover of another device has died */
                return 0;
        r = job_lists_make(&lists, job);
        if (r == 0)
                r = mover_job_run(job->device->mover, job->id, lists.sizes,
                                  job->kind == MOVER_OUT ? lists.sources : lists.targets, on_run,
                                  job);
        return r < 0 ? r : COPY_WAITS;
}

/* let go: the movers hold nothing of the jobs any more. */

static void on_ended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;

        (void)mover, (void)done; /* gone with the mover is gone as well */
        job->generation = 0;
        job->has_run = false;
        copy_way_end_wait(job, 0, NULL);
}

int copy_job_end(struct guest_job *job)
{
        if (copy_job_is_there(job) &&
            mover_job_end(job->device->mover, job->id, on_ended, job) == 0)
                return COPY_WAITS;
        job->generation = 0;
        job->has_run = false;
        return 0;
}

/*
 * What the mover maps is not off the device, and what has run cannot run again when the mover of another
 * device has failed; else copies_end() comes once nobody waits for it.
 */
int copy_job_let_go(struct guest_job *job)
{
        const struct guest *guest = job->guest;
        const struct operation *operation = guest->instance->operation;

        return operation->kind->number == OPERATION_SUSPEND || operation->is_undoing ||
                               guest->participant->copy.then || guest->participant->copy.has_failed
                       ? copy_job_end(job)
                       : 0;
}

/* make context: nothing else. */

static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;

        (void)mover;
        job->device->has_context |= done->error == 0;
        copy_way_end_wait(job, done->error, done);
}

int copy_job_make_context(struct guest_job *job)
{
        struct mover *mover;
        int r = device_get_mover(job->device, &mover);

        if (r == 0)
                r = mover_context(mover, on_context, job);
        return r < 0 ? r : COPY_WAITS;
}

void copy_job_drop(struct guest_job *job)
{
        if (copy_job_is_there(job))
                (void)mover_job_end(job->device->mover, job->id, NULL, NULL);
        job->generation = 0;
}

void copy_job_stop(struct guest_job *job)
{
        if (copy_job_is_there(job))
                (void)mover_job_stop(job->device->mover, job->id);
}
