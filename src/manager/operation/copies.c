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

static void note_failure(struct guest *guest, int error, const struct mover_done *done)
{
        struct operation *operation = guest->instance->operation;

        if (error == -ECONNRESET)
                operation_lost_mover(operation);
        else if (guest->is_dead)
                (void)0; /* nobody needs it any more */
        else if (error == -ESTALE && copies_check(guest, &operation->failure) < 0)
                operation_fail_errno(operation, error, "looking for memory in the pool");
        else if (done && done->driver_code == CUDA_ERROR_OUT_OF_MEMORY)
                operation_fail(operation, -ENOSPC, "NoRoom", "free memory there or choose another",
                               "device %u has too little free memory", guest->job.device->index);
        else if (done)
                operation_fail_driver(operation, guest, done->call, done->driver_code, error);
        else
                operation_fail_errno(operation, error, "copying memory");
        if (!guest->is_dead)
                operation_leave_guest(operation, guest);
}

/* Jobs. */

static bool has_job(const struct guest *guest)
{
        const struct device *device = guest->job.device;

        return guest->job.generation && guest->job.generation == device->generation &&
               device->mover && !mover_is_lost(device->mover);
}

static void on_progress(struct mover *mover, uint64_t bytes_done, uint64_t bytes_total,
                        void *userdata)
{
        struct guest *guest = userdata;

        (void)mover, (void)bytes_total;
        if (bytes_done > guest->job.bytes_done && guest->instance->operation) {
                operation_add_progress(guest->instance->operation,
                                       bytes_done - guest->job.bytes_done);
                guest->job.bytes_done = bytes_done;
        }
}

static void on_passed(struct mover *mover, size_t n, void *userdata)
{
        struct guest *guest = userdata;
        size_t before = guest->job.n_passed;

        (void)mover;
        if (guest->is_dead || guest->job.is_kept || n <= before)
                return;
        guest->job.n_passed = n;
        guest->job.is_kept = !handover_pass(guest, guest->job.first + before, n - before);
}

struct lists {
        uint64_t *sizes;
        int *sources, *targets;
};

static void lists_deinit(struct lists *lists)
{
        free(lists->sizes);
        free(lists->sources);
        free(lists->targets);
}

static int make_lists(const struct guest *guest, struct lists *lists)
{
        const struct guest_memory *memory = guest->memory + guest->job.first;
        size_t n = guest->job.n;

        lists->sizes = calloc(n + 1, sizeof(*lists->sizes));
        lists->sources = calloc(n + 1, sizeof(*lists->sources));
        lists->targets = calloc(n + 1, sizeof(*lists->targets));
        if (!lists->sizes || !lists->sources || !lists->targets)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                lists->sizes[i] = memory[i].size;
                lists->sources[i] = memory[i].source;
                lists->targets[i] = memory[i].target;
        }
        return 0;
}

/* Of the job's part of the memory: the reservation is for all of it. */
static size_t keep_segments(const struct guest *guest, struct mover_segment *segments, size_t n)
{
        size_t n_kept = 0;

        for (size_t i = 0; i < n; i++) {
                if (segments[i].memory < guest->job.first ||
                    segments[i].memory - guest->job.first >= guest->job.n)
                        continue;
                segments[n_kept] = segments[i];
                segments[n_kept++].memory -= (uint32_t)guest->job.first;
        }
        return n_kept;
}

static int make_segments(const struct guest *guest, struct mover_segment **ret_segments,
                         size_t *ret_n)
{
        CLEANUP(freep) uint64_t *sizes = calloc(guest->n_memory + 1, sizeof(*sizes));
        const struct pool_extent *extents;
        size_t n_extents;
        int r;

        if (!sizes)
                return -ENOMEM;
        for (size_t i = 0; i < guest->n_memory; i++)
                sizes[i] = guest->memory[i].size;
        extents = pool_get_extents(guest->reservation, &n_extents);
        r = pool_make_segments(ret_segments, ret_n, sizes, guest->n_memory, extents, n_extents);
        if (r == 0)
                *ret_n = keep_segments(guest, *ret_segments, *ret_n);
        return r;
}

static bool must_verify(const struct operation *operation)
{
        return operation->must_verify ||
               operation->instance->manager->options->clean_copies == OPTIONS_CLEAN_COPIES_VERIFY;
}

/*
 * What goes out is hashed, so that it need not go out again. Not at the second try: what ended the first
 * mover may have been that.
 */
static void add_hashes(struct guest *guest, struct mover_job *job)
{
        const struct operation *operation = guest->instance->operation;
        enum options_clean_copies how = operation->instance->manager->options->clean_copies;

        if (how == OPTIONS_CLEAN_COPIES_OFF || guest->job.n < guest->n_memory ||
            operation->is_undoing || operation->was_retried) {
                clean_copy_spoil(guest);
                return;
        }
        job->must_verify = must_verify(operation);
        job->hashes = clean_copy_begin(guest, job->must_verify, &job->n_hashes);
}

static int add_places(struct guest *guest, struct mover_job *job, const struct lists *lists,
                      struct mover_segment **ret_segments)
{
        struct operation *operation = guest->instance->operation;
        int r = 0;

        if (job->kind == MOVER_PEER) {
                job->source_uuid = operation->source->uuid;
                job->source_sizes = lists->sizes;
                job->source_fds = lists->sources;
                return 0;
        }
        if (job->kind == MOVER_IN)
                r = copies_check(guest, &operation->failure);
        else if (!pool_is_lone(operation->instance->manager->pool, guest->reservation))
                r = -EBUSY; /* what others hold is never written to: slab.h */
        if (r == 0)
                r = make_segments(guest, ret_segments, &job->n_segments);
        job->segments = *ret_segments;
        if (r == 0 && job->kind == MOVER_OUT) {
                add_hashes(guest, job);
                job->passed = !job->must_verify && handover_may(guest) ? on_passed : NULL;
        }
        return r;
}

static int begin_job(struct guest *guest, enum mover_job_kind kind)
{
        CLEANUP(lists_deinit) struct lists lists = { 0 };
        CLEANUP(freep) struct mover_segment *segments = NULL;
        struct mover_job job = {
                .kind = kind, .n_memories = guest->job.n, .progress = on_progress, .userdata = guest
        };
        struct mover *mover;
        int r = make_lists(guest, &lists);

        if (r == 0)
                r = device_get_mover(guest->job.device, &mover);
        if (r == 0)
                r = add_places(guest, &job, &lists, &segments);
        if (r == 0)
                r = mover_job_begin(mover, &guest->job.id, &job);
        if (r < 0)
                return r;
        guest->job.kind = kind;
        guest->job.is_hashed = job.n_hashes > 0;
        guest->job.generation = guest->job.device->generation;
        guest->job.bytes_done = 0;
        guest->job.n_passed = 0;
        guest->job.is_kept = false;
        return 0;
}

/*
 * A copy takes the steps of its way, one after another. A step has done its work when it returns 0; it
 * returns STEP_WAITS when a callback of its own will call go_on(), and fails with what it returns else.
 */
#define STEP_WAITS 1
#define STEPS_MAX  7

struct copy_way {
        bool (*is_pooled)(
                const struct guest *guest); /* to or from the pool; else between devices */
        enum mover_job_kind pooled;         /* the kind of job then; else PEER */
        bool has_job;                       /* perhaps: what staging has begun goes on */
        int (*steps[STEPS_MAX])(
                struct guest *guest); /* the last one also after a failure of the job */
};

static void end(struct guest *guest)
{
        if (guest->job.then)
                TAKE(guest->job.then)(guest, guest->job.is_done);
        else
                operation_end_part(guest->instance->operation);
}

static bool has_step(const struct guest *guest)
{
        return guest->job.step < STEPS_MAX && guest->job.way->steps[guest->job.step];
}

/* The rest of the way; the guest may be freed by its end. */
static void go_on(struct guest *guest)
{
        int r = 0;

        while (r == 0 && has_step(guest))
                r = guest->job.way->steps[guest->job.step++](guest);
        if (r == STEP_WAITS)
                return;
        if (r < 0) {
                guest->job.is_done = false;
                note_failure(guest, r, NULL);
        }
        end(guest);
}

/* The job has failed: what is left to do is to end it. */
static void go_to_end(struct guest *guest, int error, const struct mover_done *done)
{
        guest->job.is_done = false;
        note_failure(guest, error, done);
        while (has_step(guest))
                guest->job.step++;
        guest->job.step--;
        go_on(guest);
}

static void start(struct guest *guest, const struct copy_way *way)
{
        guest->job.way = way;
        guest->job.step = 0;
        guest->job.is_done = false;
        go_on(guest);
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
        r = parting_part(guest, guest->job.device->index, operation->is_undoing, places, &others,
                         &operation->failure);
        if (r == 0)
                r = store_extents(guest);
        pool_release(pool, others);
        return r;
}

/* prepare: all slabs of the guest's reservation are made ready on the job's device. */

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

static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct guest *guest = userdata;
        const struct device *device = guest->job.device;

        (void)reservation;
        end_pool_wait(guest->instance->operation);
        if (error && (!device->mover || mover_is_lost(device->mover)))
                error = -ECONNRESET;
        if (error == 0) {
                go_on(guest);
                return;
        }
        note_failure(guest, error, NULL);
        end(guest);
}

static int prepare(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        bool is_ready = false;
        int r;

        if (!guest->job.way->is_pooled(guest))
                return 0;
        if (!guest->reservation)
                return -ESTALE;
        r = pool_prepare(operation->instance->manager->pool, guest->reservation,
                         guest->job.device->index, on_prepared, guest, &is_ready);
        if (r < 0 || is_ready)
                return r;
        begin_pool_wait(operation);
        return STEP_WAITS;
}

/* begin: the mover knows what goes where. */

static int begin(struct guest *guest)
{
        const struct copy_way *way = guest->job.way;

        if (way->has_job && has_job(guest))
                return 0;
        return begin_job(guest, way->is_pooled(guest) ? way->pooled : MOVER_PEER);
}

/* stage: begin to copy ahead of the target, into the guest's part of what the operation may take. */

static int stage(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        double part = (double)guest->memory_bytes / (double)operation->bytes;

        return mover_job_stage(guest->job.device->mover, guest->job.id,
                               (uint64_t)(part * (double)operation->staging.bytes));
}

/* run: all of it is copied. */

static void log_no_hashes(const struct guest *guest, int error)
{
        log_event_of(guest->payer, LOG_LEVEL_WARNING,
                     "copied all memory: the device cannot tell what has not changed",
                     "vgpu=%s pid=%d device=%u error=\"%s\"", guest->instance->name,
                     (int)guest->pid, guest->job.device->index, strerror(-error));
}

static void note_unchanged(struct guest *guest, const struct mover_done *done)
{
        struct operation *operation = guest->instance->operation;

        operation->bytes_unchanged += done->unchanged;
        clean_copy_end(guest, done->hash_error == 0);
        if (done->hash_error < 0)
                log_no_hashes(guest, done->hash_error);
        if (done->wrong > 0) /* a mistake of ours: it is always told */
                log_event(
                        LOG_LEVEL_ERROR,
                        "memory that had changed was taken for unchanged; it was copied after all",
                        "vgpu=%s pid=%d bytes=%" PRIu64, operation->instance->name, (int)guest->pid,
                        done->wrong);
}

static void on_run(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;
        struct operation *operation = guest->instance->operation;

        (void)mover;
        if (done->error < 0) {
                go_to_end(guest, done->error, done);
                return;
        }
        guest->is_unfilled = false;
        guest->job.is_done = true;
        log_event(LOG_LEVEL_DEBUG, "copied",
                  "vgpu=%s pid=%d prepare_ms=%.1f copy_ms=%.1f hash_ms=%.1f unchanged=%" PRIu64,
                  operation->instance->name, (int)guest->pid, (double)done->prepare_ns / 1e6,
                  (double)done->copy_ns / 1e6, (double)done->hash_ns / 1e6, done->unchanged);
        if (done->copy_ns > operation->copy_ns)
                operation->copy_ns = done->copy_ns;
        if (guest->job.is_hashed)
                note_unchanged(guest, done);
        go_on(guest);
}

static int run(struct guest *guest)
{
        CLEANUP(lists_deinit) struct lists lists = { 0 };
        int r = make_lists(guest, &lists);

        if (r == 0)
                r = mover_job_run(guest->job.device->mover, guest->job.id, lists.sizes,
                                  guest->job.kind == MOVER_OUT ? lists.sources : lists.targets,
                                  on_run, guest);
        return r < 0 ? r : STEP_WAITS;
}

/* keep once: all that the reservation is to have is there, and nothing twice. */

static int keep_equal_once(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        int r;

        guest->job.has_moved = false;
        if (!guest->job.is_hashed)
                return 0;
        if (handover_has_parked(guest) && handover_count(guest) < guest->n_memory) {
                clean_copy_spoil(guest); /* an undo may have to write there */
                return 0;
        }
        r = clean_copy_complete(guest, &guest->job.has_moved);
        if (r < 0) {
                guest->job.is_done = false;
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

        if (!guest->job.is_done)
                return 0;
        r = pool_stamp(operation->instance->manager->pool, guest->reservation, guest->pid,
                       guest->start_time);
        if (r == 0 &&
            guest->job.has_moved) /* the next manager adopts what others hold by the stamp */
                r = store_extents(guest);
        if (r < 0) {
                guest->job.is_done = false;
                operation_fail_errno(operation, r, "marking memory of the pool");
                operation_leave_guest(operation, guest);
        }
        if (!operation->is_undoing && operation->kind == &operation_suspend)
                operation_pass(operation, "copied");
        return 0;
}

/* let go: the mover holds nothing of the job any more. */

static void on_ended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover, (void)done; /* gone with the mover is gone as well */
        guest->job.generation = 0;
        go_on(guest);
}

static int end_job(struct guest *guest)
{
        if (has_job(guest) &&
            mover_job_end(guest->job.device->mover, guest->job.id, on_ended, guest) == 0)
                return STEP_WAITS;
        guest->job.generation = 0;
        return 0;
}

/* What the mover maps is not off the device; else copies_end() comes once nobody waits for it. */
static int let_go(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;

        return operation->kind == &operation_suspend || operation->is_undoing || guest->job.then
                       ? end_job(guest)
                       : 0;
}

/* make context: nothing else. */

static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover;
        if (done->error < 0) {
                note_failure(guest, done->error, done);
                end(guest);
                return;
        }
        guest->job.device->has_context = true;
        guest->job.is_done = true;
        go_on(guest);
}

static int make_context(struct guest *guest)
{
        struct mover *mover;
        int r = device_get_mover(guest->job.device, &mover);

        if (r == 0)
                r = mover_context(mover, true, on_context, guest);
        return r < 0 ? r : STEP_WAITS;
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
        return guest->memory[guest->job.first].is_parked;
}

static const struct copy_way out = { always,
                                     MOVER_OUT,
                                     false,
                                     { be_lone, prepare, begin, run, keep_equal_once, stamp,
                                       let_go } },
                             ahead = { is_from_pool, MOVER_IN, false, { prepare, begin, stage } },
                             in = { is_from_pool, MOVER_IN, true, { prepare, begin, run, let_go } },
                             arrive = { always, MOVER_IN, false, { prepare, begin, run, let_go } },
                             back = { is_parked, MOVER_IN, false, { prepare, begin, run, let_go } },
                             context = { always, 0, false, { make_context } },
                             nowhere = { always, 0, false, { end_job } };

/* A part of the operation: all of the guest's memory, by the target's mover. */
static void start_part(struct operation *operation, struct guest *guest, const struct copy_way *way)
{
        operation_begin_part(operation);
        guest->job.device = operation->target;
        guest->job.first = way == &out ? handover_count(guest) : 0;
        guest->job.n = guest->n_memory - guest->job.first;
        guest->job.then = NULL;
        start(guest, way);
}

/* Of one that was begun before with a mover that has died, what is there already stays. */
void copies_out(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > handover_count(guest))
                start_part(operation, guest, &out);
}

void copies_stage(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > 0 && !has_job(guest))
                start_part(operation, guest, &ahead);
}

void copies_in(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > 0)
                start_part(operation, guest, &in);
}

void copies_arrive(struct guest *guest, size_t first, size_t n, guest_copied_fn then)
{
        guest->job.device = guest->instance->operation->target;
        guest->job.first = first;
        guest->job.n = n;
        guest->job.then = then;
        start(guest, &arrive);
}

static void start_undo(struct guest *guest, size_t first, size_t n, guest_copied_fn then,
                       const struct copy_way *way)
{
        guest->job.device = guest->instance->operation->source;
        guest->job.first = first;
        guest->job.n = n;
        guest->job.then = then;
        start(guest, way);
}

void copies_ready(struct guest *guest, guest_copied_fn then)
{
        start_undo(guest, 0, 0, then, &context);
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
        if (guest->job.generation == 0)
                return;
        operation_begin_part(operation);
        start(guest, &nowhere);
}
