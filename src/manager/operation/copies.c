/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copies.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/clock.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/keep-once.h"
#include "manager/model/manager.h"
#include "manager/model/parting.h"
#include "manager/model/recovery.h"
#include "manager/operation/handover.h"
#include "manager/operation/job-lists.h"
#include "manager/operation/operation.h"

/* What the database says about the pool is believed only when the slabs say the same. */
int copies_check(const struct guest *guest, struct failure *failure)
{
        uint32_t slab = 0;
        int r = -ESTALE;

        if (guest->n_memory == 0 || (guest->spilled && !guest->reservation))
                return 0; /* what is in a file says itself whose it is when it is read */
        if (guest->reservation)
                r = pool_check(guest->instance->manager->pool, guest->reservation, guest->pid,
                               guest->start_time, &slab);
        if (r == 0)
                return 0;
        log_event_of(guest->payer, LOG_LEVEL_ERROR, "the pool has not got what the database says",
                     "vgpu=%s pid=%d slab=%u", guest->instance->name, (int)guest->pid, slab);
        failure->process = guest->pid;
        return failure_set(failure, r, "GuestLost",
                           "end the process, then the others of the vGPU can be resumed",
                           "the memory of process %d (%.40s) of vGPU %s is not in the pool, or "
                           "something else is in its place",
                           (int)guest->pid, guest->name, guest->instance->name);
}

static void note_failure(struct guest_job *job, int error, const struct mover_done *done)
{
        struct guest *guest = job->guest;
        struct operation *operation = guest->instance->operation;

        if (error == -ECONNRESET)
                operation_lost_mover(operation, job->device);
        else if (guest->is_dead)
                (void)0; /* nobody needs it any more */
        else if (error == -ESTALE && copies_check(guest, &operation->failure) < 0)
                operation_fail_errno(operation, error, "looking for memory in the pool");
        else if (done && done->driver_code == CUDA_ERROR_OUT_OF_MEMORY)
                operation_fail(operation, -ENOSPC, "NoRoom", "free memory there or choose another",
                               "device %u has too little free memory", job->device->index);
        else if (done)
                operation_fail_driver(operation, guest, done->call, done->driver_code, error);
        else
                operation_fail_errno(operation, error, "copying memory");
        if (!guest->is_dead)
                operation_leave_guest(operation, guest);
}

/* Jobs: one for each device that has some of the memory that is copied. */

static bool has_job(const struct guest_job *job)
{
        const struct device *device = job->device;

        return job->generation && job->generation == device->generation && device->mover &&
               !mover_is_lost(device->mover);
}

static size_t count_memories(const struct guest_job *job)
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
        size_t before = guest->copy.n_passed;

        (void)mover;
        if (guest->is_dead || guest->copy.is_kept || n <= before)
                return;
        guest->copy.n_passed = n;
        guest->copy.is_kept = !handover_pass(guest, guest->copy.first + before, n - before);
}

static bool must_verify(const struct operation *operation)
{
        return operation->must_verify ||
               operation->instance->manager->options->clean_copies == OPTIONS_CLEAN_COPIES_VERIFY;
}

/*
 * What goes out is hashed, so that it need not go out again. Not at the second try: what ended the first
 * mover may have been that. And not what is only a part of the guest's memory.
 */
static int begin_hashes(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        enum options_clean_copies how = operation->instance->manager->options->clean_copies;

        guest->copy.hashes = NULL;
        if (how == OPTIONS_CLEAN_COPIES_OFF || guest->copy.n < guest->n_memory ||
            operation->is_undoing || operation->was_retried)
                clean_copy_spoil(guest);
        else
                guest->copy.hashes =
                        clean_copy_begin(guest, must_verify(operation), &guest->copy.n_hashes);
        return 0;
}

/* The job's part of them: those of its own blocks. */
static void copy_hashes(struct guest_job *job, bool is_back)
{
        const struct guest *guest = job->guest;
        struct hash_value *whole = guest->copy.hashes, *part = job->hashes;

        for (size_t i = 0; i < guest->n_memory; i++) {
                size_t n = guest->memory[i].size / HASH_BLOCK;

                if (job_lists_has(job, i)) {
                        memcpy(is_back ? whole : part, is_back ? part : whole, n * sizeof(*part));
                        part += n;
                }
                whole += n;
        }
}

static int add_hashes(struct guest_job *own, struct mover_job *job, const struct job_lists *lists)
{
        size_t n = 0;

        if (!own->guest->copy.hashes)
                return 0;
        for (size_t i = 0; i < lists->n; i++)
                n += lists->sizes[i] / HASH_BLOCK;
        free(own->hashes);
        own->hashes = calloc(n, sizeof(*own->hashes));
        if (!own->hashes)
                return -ENOMEM;
        copy_hashes(own, false);
        job->must_verify = must_verify(own->guest->instance->operation);
        job->hashes = own->hashes;
        job->n_hashes = n;
        return 0;
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
                r = copies_check(guest, &operation->failure);
        else if (!pool_is_lone(operation->instance->manager->pool, guest->reservation))
                r = -EBUSY; /* what others hold is never written to: slab.h */
        if (r == 0)
                r = job_lists_make_segments(own, ret_segments, &job->n_segments);
        job->segments = *ret_segments;
        if (r == 0 && job->kind == MOVER_OUT) {
                r = add_hashes(own, job, lists);
                job->passed = !job->must_verify && handover_may(guest) ? on_passed : NULL;
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

/*
 * A copy takes the steps of its way, one after another: each by all of its jobs at once, or once for the
 * guest. A step has done its work when it returns 0; it returns STEP_WAITS when a callback of its own will
 * call end_wait(), or go_on() for the guest, and fails with what it returns else.
 */
#define STEP_WAITS 1

struct copy_step {
        int (*each)(struct guest_job *job);
        int (*once)(struct guest *guest);
};

struct copy_way {
        bool (*is_pooled)(
                const struct guest *guest); /* to or from the pool; else between devices */
        enum mover_job_kind pooled;         /* the kind of job then; else PEER */
        bool has_job;                       /* perhaps: what staging has begun goes on */
        bool has_end;                       /* the last step is taken also after a failure */
        const struct copy_step *steps;      /* behind the last, one of neither kind */
};

static void end(struct guest *guest)
{
        if (guest->copy.then)
                TAKE(guest->copy.then)(guest, guest->copy.is_done);
        else
                operation_end_part(guest->instance->operation);
}

static bool is_step(const struct guest *guest, size_t step)
{
        return guest->copy.way->steps[step].each || guest->copy.way->steps[step].once;
}

static bool is_last(const struct guest *guest)
{
        return !is_step(guest, guest->copy.step + 1);
}

static void fail_step(struct guest_job *job, int error, const struct mover_done *done)
{
        job->guest->copy.has_failed = true;
        note_failure(job, error, done);
}

/* True: it has done its work, or failed. */
static bool take_once(struct guest *guest, int (*run)(struct guest *guest))
{
        int r = run(guest);

        if (r < 0)
                fail_step(&guest->job[0], r, NULL);
        return r != STEP_WAITS;
}

static bool take_each(struct guest *guest, int (*run)(struct guest_job *job))
{
        guest->copy.n_pending = 1; /* until all have begun */
        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                struct guest_job *job = &guest->job[i];
                int r;

                if (!job->is_in_use)
                        continue;
                guest->copy.n_pending++;
                r = run(job);
                if (r != STEP_WAITS)
                        guest->copy.n_pending--;
                if (r < 0)
                        fail_step(job, r, NULL);
        }
        return --guest->copy.n_pending == 0;
}

/* The next step; after a failure only the one that ends the jobs is left. */
static void advance(struct guest *guest)
{
        guest->copy.step++;
        if (!guest->copy.has_failed)
                return;
        guest->copy.is_done = false;
        while (is_step(guest, guest->copy.step) && !(guest->copy.way->has_end && is_last(guest)))
                guest->copy.step++;
}

/* The rest of the way; the guest may be freed by its end. */
static void take_steps(struct guest *guest)
{
        while (is_step(guest, guest->copy.step)) {
                const struct copy_step *step = &guest->copy.way->steps[guest->copy.step];

                if (!(step->each ? take_each(guest, step->each) : take_once(guest, step->once)))
                        return;
                advance(guest);
        }
        end(guest);
}

static void go_on(struct guest *guest)
{
        advance(guest);
        take_steps(guest);
}

static void end_wait(struct guest_job *job, int error, const struct mover_done *done)
{
        struct guest *guest = job->guest;

        if (error < 0)
                fail_step(job, error, done);
        if (--guest->copy.n_pending == 0)
                go_on(guest);
}

static void start(struct guest *guest, const struct copy_way *way)
{
        guest->copy.way = way;
        guest->copy.step = 0;
        guest->copy.is_done = guest->copy.has_failed = false;
        take_steps(guest);
}

/* be lone: what others hold is never written to. The try before may have come as far as to share blocks. */

static int store_extents(struct guest *guest)
{
        int r = recovery_put_slabs(guest);

        return r < 0 ? r : recovery_store_memory(guest);
}

/* What it has goes once there is something else for it: without room all stays as it is. */
static int be_lone(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        struct pool *pool = operation->instance->manager->pool;
        CLEANUP(freep) struct pool_place *places = NULL;
        struct pool_reservation *others;
        int r;

        if (!guest->reservation || pool_is_lone(pool, guest->reservation))
                return 0;
        if (handover_has_parked(guest))
                return -EBUSY; /* it has all that there is of that */
        places = calloc(parting_count(guest), sizeof(*places));
        if (!places)
                return -ENOMEM;
        r = parting_part(guest, guest->job[0].device->index, operation->is_undoing, places, &others,
                         &operation->failure);
        if (r == 0)
                r = store_extents(guest);
        pool_release(pool, others);
        return r;
}

/* prepare: all slabs of the guest's reservation are made ready on the jobs' devices, one after another. */

/* Processes wait at the same time: what counts is for how long one did. */
static void begin_pool_wait(struct operation *operation)
{
        if (operation->n_pool_waits++ == 0)
                operation->pool_since_ns = clock_now(CLOCK_MONOTONIC);
}

static void end_pool_wait(struct operation *operation)
{
        if (operation->n_pool_waits > 0 && --operation->n_pool_waits == 0)
                operation->pool_ns += clock_now(CLOCK_MONOTONIC) - operation->pool_since_ns;
}

static int prepare_from(struct guest *guest, size_t part);

static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct guest_job *job = userdata;
        const struct device *device = job->device;

        (void)reservation;
        end_pool_wait(job->guest->instance->operation);
        if (error && (!device->mover || mover_is_lost(device->mover)))
                error = -ECONNRESET;
        if (error == 0)
                error = prepare_from(job->guest, job->part + 1);
        if (error == STEP_WAITS)
                return;
        if (error < 0)
                fail_step(job, error, NULL);
        go_on(job->guest);
}

static int prepare_on(struct guest_job *job)
{
        struct operation *operation = job->guest->instance->operation;
        bool is_ready = false;
        int r = pool_prepare(operation->instance->manager->pool, job->guest->reservation,
                             job->device->index, on_prepared, job, &is_ready);

        if (r < 0 || is_ready)
                return r;
        begin_pool_wait(operation);
        return STEP_WAITS;
}

static int prepare_from(struct guest *guest, size_t part)
{
        int r = 0;

        for (; r == 0 && part < guest->instance->n_parts; part++)
                if (guest->job[part].is_in_use)
                        r = prepare_on(&guest->job[part]);
        return r;
}

static int prepare(struct guest *guest)
{
        if (!guest->copy.way->is_pooled(guest))
                return 0;
        return guest->reservation ? prepare_from(guest, 0) : -ESTALE;
}

/* begin: the mover knows what goes where. */

static int begin(struct guest_job *job)
{
        const struct copy_way *way = job->guest->copy.way;

        if (way->has_job && (job->has_run || has_job(job)))
                return 0;
        return begin_job(job, way->is_pooled(job->guest) ? way->pooled : MOVER_PEER);
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

static int stage(struct guest_job *job)
{
        const struct operation *operation = job->guest->instance->operation;
        double part = (double)guest_sum_memory(job->guest, job->part) /
                      (double)sum_memory(operation, job->part);

        return mover_job_stage(job->device->mover, job->id,
                               (uint64_t)(part * (double)operation->staging[job->part].bytes));
}

/* run: all of it is copied. */

/* It has copied all of its blocks. What another device has told of its own is true nevertheless. */
static void forget_hashes(struct guest_job *job, int error)
{
        struct guest *guest = job->guest;

        guest->copy.has_no_hashes = true;
        for (size_t i = 0; i < job->n_hashes; i++)
                job->hashes[i] = HASH_UNKNOWN;
        log_event_of(guest->payer, LOG_LEVEL_WARNING,
                     "copied all memory: the device cannot tell what has not changed",
                     "vgpu=%s pid=%d device=%u error=\"%s\"", guest->instance->name,
                     (int)guest->pid, job->device->index, strerror(-error));
}

static void note_unchanged(struct guest_job *job, const struct mover_done *done)
{
        struct guest *guest = job->guest;
        struct operation *operation = guest->instance->operation;

        operation->bytes_unchanged += done->unchanged;
        if (done->hash_error)
                forget_hashes(job, done->hash_error);
        else
                guest->copy.is_compared = true;
        copy_hashes(job, true);
        if (done->wrong > 0) /* a mistake of ours: it is always told */
                log_event(
                        LOG_LEVEL_ERROR,
                        "memory that had changed was taken for unchanged; it was copied after all",
                        "vgpu=%s pid=%d bytes=%" PRIu64, operation->instance->name, (int)guest->pid,
                        done->wrong);
}

static void note_run(struct guest_job *job, const struct mover_done *done)
{
        struct operation *operation = job->guest->instance->operation;

        log_event(LOG_LEVEL_DEBUG, "copied",
                  "vgpu=%s pid=%d device=%u prepare_ms=%.1f copy_ms=%.1f hash_ms=%.1f "
                  "unchanged=%" PRIu64,
                  operation->instance->name, (int)job->guest->pid, job->device->index,
                  (double)done->prepare_ns / 1e6, (double)done->copy_ns / 1e6,
                  (double)done->hash_ns / 1e6, done->unchanged);
        if (done->copy_ns > operation->copy_ns)
                operation->copy_ns = done->copy_ns;
        if (job->n_hashes > 0)
                note_unchanged(job, done);
}

static void on_run(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;

        (void)mover;
        job->has_run = done->error == 0;
        if (job->has_run)
                note_run(job, done);
        end_wait(job, done->error, done);
}

static int run(struct guest_job *job)
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
        return r < 0 ? r : STEP_WAITS;
}

/* fill: the guest has all of it. */
static int note_filled(struct guest *guest)
{
        guest->is_unfilled = false;
        guest->copy.is_done = true;
        return 0;
}

/* keep once: all that the reservation is to have is there, and nothing twice. */

static bool is_hashed(const struct guest *guest)
{
        bool is = true;

        for (size_t i = 0; i < guest->instance->n_parts; i++)
                is &= !guest->job[i].is_in_use || guest->job[i].n_hashes > 0;
        return is;
}

static int keep_equal_once(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        int r;

        guest->copy.has_moved = false;
        if (!is_hashed(guest))
                return 0;
        clean_copy_end(guest, guest->copy.is_compared, !guest->copy.has_no_hashes);
        if (handover_has_parked(guest) && handover_count(guest) < guest->n_memory) {
                clean_copy_spoil(guest); /* an undo may have to write there */
                return 0;
        }
        r = clean_copy_complete(guest, &guest->copy.has_moved);
        if (r < 0) {
                guest->copy.is_done = false;
                operation_fail_errno(operation, r, "sharing memory of the pool");
                operation_leave_guest(operation, guest);
                return 0; /* what is left to do is to end the job */
        }
        return keep_once(guest, must_verify(operation), go_on) ? STEP_WAITS : 0;
}

/* stamp: the copy out is complete; only now, and for this process alone, it is what may be copied in. */

static int stamp(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        int r;

        if (!guest->copy.is_done)
                return 0;
        r = pool_stamp(operation->instance->manager->pool, guest->reservation, guest->pid,
                       guest->start_time);
        if (r == 0 &&
            guest->copy.has_moved) /* the next manager adopts what others hold by the stamp */
                r = store_extents(guest);
        if (r < 0) {
                guest->copy.is_done = false;
                operation_fail_errno(operation, r, "marking memory of the pool");
                operation_leave_guest(operation, guest);
        }
        if (!operation->is_undoing && operation->kind == &operation_suspend)
                operation_pass(operation, "copied");
        return 0;
}

/* let go: the movers hold nothing of the jobs any more. */

static void on_ended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;

        (void)mover, (void)done; /* gone with the mover is gone as well */
        job->generation = 0;
        job->has_run = false;
        end_wait(job, 0, NULL);
}

static int end_job(struct guest_job *job)
{
        if (has_job(job) && mover_job_end(job->device->mover, job->id, on_ended, job) == 0)
                return STEP_WAITS;
        job->generation = 0;
        job->has_run = false;
        return 0;
}

/*
 * What the mover maps is not off the device, and what has run cannot run again when the mover of another
 * device has failed; else copies_end() comes once nobody waits for it.
 */
static int let_go(struct guest_job *job)
{
        const struct guest *guest = job->guest;
        const struct operation *operation = guest->instance->operation;

        return operation->kind == &operation_suspend || operation->is_undoing || guest->copy.then ||
                               guest->copy.has_failed
                       ? end_job(job)
                       : 0;
}

/* make context: nothing else. */

static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_job *job = userdata;

        (void)mover;
        job->device->has_context |= done->error == 0;
        end_wait(job, done->error, done);
}

static int make_context(struct guest_job *job)
{
        struct mover *mover;
        int r = device_get_mover(job->device, &mover);

        if (r == 0)
                r = mover_context(mover, true, on_context, job);
        return r < 0 ? r : STEP_WAITS;
}

static int note_ready(struct guest *guest)
{
        guest->copy.is_done = true;
        return 0;
}

/* The ways. */

static bool always(const struct guest *guest)
{
        (void)guest;
        return true;
}

/* Of what comes to a device. What a guest happens to have in the pool does not say it. */
static bool is_from_pool(const struct guest *guest)
{
        return guest->instance->operation->kind->is_from_pool;
}

static bool is_parked(const struct guest *guest)
{
        return guest->memory[guest->copy.first].is_parked;
}

static const struct copy_step out_steps[] = {
        { .once = be_lone },
        { .once = begin_hashes },
        { .once = prepare },
        { .each = begin },
        { .each = run },
        { .once = note_filled },
        { .once = keep_equal_once },
        { .once = stamp },
        { .each = let_go },
        { 0 },
};

static const struct copy_step ahead_steps[] = {
        { .once = prepare },
        { .each = begin },
        { .each = stage },
        { 0 },
};

static const struct copy_step in_steps[] = {
        { .once = prepare },     { .each = begin },  { .each = run },
        { .once = note_filled }, { .each = let_go }, { 0 },
};

static const struct copy_step context_steps[] = {
        { .each = make_context },
        { .once = note_ready },
        { 0 },
};

static const struct copy_step nowhere_steps[] = { { .each = end_job }, { 0 } };

static const struct copy_way out = { always, MOVER_OUT, false, true, out_steps },
                             ahead = { is_from_pool, MOVER_IN, false, false, ahead_steps },
                             in = { is_from_pool, MOVER_IN, true, true, in_steps },
                             arrive = { always, MOVER_IN, false, true, in_steps },
                             back = { is_parked, MOVER_IN, false, true, in_steps },
                             context = { always, 0, false, false, context_steps },
                             nowhere = { always, 0, false, false, nowhere_steps };

/* A copy of allocations @first to @first + @n - 1, by the movers of @place. */
static void start_copy(struct guest *guest, size_t first, size_t n, const struct place *place,
                       const struct copy_way *way)
{
        guest->copy.first = first;
        guest->copy.n = n;
        guest->copy.n_passed = 0;
        guest->copy.is_kept = guest->copy.has_no_hashes = guest->copy.is_compared = false;
        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                guest->job[i].device = place->device[i];
                guest->job[i].n_hashes = 0;
                guest->job[i].is_in_use = count_memories(&guest->job[i]) > 0;
        }
        start(guest, way);
}

/* A part of the operation: all of the guest's memory, by the target's movers. */
static void start_part(struct operation *operation, struct guest *guest, const struct copy_way *way)
{
        size_t first = way == &out ? handover_count(guest) : 0;

        operation_begin_part(operation);
        guest->copy.then = NULL;
        start_copy(guest, first, guest->n_memory - first, &operation->target, way);
}

/* Of one that was begun before with a mover that has died, what is there already stays. */
void copies_out(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > handover_count(guest))
                start_part(operation, guest, &out);
}

static bool is_staged(const struct guest *guest)
{
        for (size_t i = 0; i < guest->instance->n_parts; i++)
                if (guest->job[i].generation && has_job(&guest->job[i]))
                        return true;
        return false;
}

void copies_stage(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > 0 && !is_staged(guest))
                start_part(operation, guest, &ahead);
}

void copies_in(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > 0)
                start_part(operation, guest, &in);
}

void copies_arrive(struct guest *guest, size_t first, size_t n, guest_copied_fn then)
{
        guest->copy.then = then;
        start_copy(guest, first, n, &guest->instance->operation->target, &arrive);
}

static void start_undo(struct guest *guest, size_t first, size_t n, guest_copied_fn then,
                       const struct copy_way *way)
{
        guest->copy.then = then;
        start_copy(guest, first, n, &guest->instance->operation->source, way);
}

void copies_ready(struct guest *guest, guest_copied_fn then)
{
        start_undo(guest, 0, guest->n_memory, then, &context);
}

void copies_back(struct guest *guest, size_t first, size_t n, guest_copied_fn then)
{
        start_undo(guest, first, n, then, &back);
}

void copies_park(struct guest *guest, size_t first, size_t n, guest_copied_fn then)
{
        start_undo(guest, first, n, then, &out);
}

void copies_end(struct operation *operation, struct guest *guest)
{
        bool has_any = false;

        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                guest->job[i].is_in_use = guest->job[i].generation != 0;
                has_any |= guest->job[i].is_in_use;
        }
        if (!has_any)
                return;
        operation_begin_part(operation);
        guest->copy.then = NULL;
        start(guest, &nowhere);
}
