/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copies.h"

#include <errno.h>
#include <stdlib.h>

#include "abi/cuda.h"
#include "base/clock.h"
#include "daemon/log.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/operation.h"

static void end(struct guest *guest)
{
        if (guest->job.then)
                TAKE(guest->job.then)(guest, guest->job.is_done);
        else
                operation_end_part(guest->instance->operation);
}

/* What the database says about the pool is believed only when the slabs say the same. */
int copies_check(const struct guest *guest, struct failure *failure)
{
        uint32_t slab = 0;
        int r = -ESTALE;

        if (guest->n_memory == 0)
                return 0;
        if (guest->reservation)
                r = pool_check(guest->instance->manager->pool, guest->reservation, guest->pid,
                               guest->start_time, &slab);
        if (r == 0)
                return 0;
        log_event(LOG_LEVEL_ERROR, "the pool has not got what the database says",
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

static void fail(struct guest *guest, int error, const struct mover_done *done)
{
        note_failure(guest, error, done);
        end(guest);
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

static int begin_job(struct guest *guest, enum mover_job_kind kind, const struct lists *lists)
{
        struct operation *operation = guest->instance->operation;
        CLEANUP(freep) struct mover_segment *segments = NULL;
        struct mover_job job = {
                .kind = kind, .n_memories = guest->job.n, .progress = on_progress, .userdata = guest
        };
        struct mover *mover;
        int r = device_get_mover(guest->job.device, &mover);

        if (r == 0 && kind == MOVER_PEER) {
                job.source_uuid = operation->source->uuid;
                job.source_sizes = lists->sizes;
                job.source_fds = lists->sources;
        } else if (r == 0 && kind == MOVER_IN) {
                r = copies_check(guest, &operation->failure);
        }
        if (r == 0 && kind != MOVER_PEER) {
                r = make_segments(guest, &segments, &job.n_segments);
                job.segments = segments;
        }
        if (r == 0)
                r = mover_job_begin(mover, &guest->job.id, &job);
        if (r < 0)
                return r;
        guest->job.kind = kind;
        guest->job.generation = guest->job.device->generation;
        guest->job.bytes_done = 0;
        return 0;
}

static void on_ended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover, (void)done; /* gone with the mover is gone as well */
        guest->job.generation = 0;
        end(guest);
}

/* Ends the part when the mover holds nothing of the job any more. */
static void end_job(struct guest *guest)
{
        if (has_job(guest) &&
            mover_job_end(guest->job.device->mover, guest->job.id, on_ended, guest) == 0)
                return;
        guest->job.generation = 0;
        end(guest);
}

/* What the mover maps is not off the device; else copies_end() comes once nobody waits for it. */
static void end_run(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;

        if (operation->kind == &operation_suspend || operation->is_undoing)
                end_job(guest);
        else
                end(guest);
}

/* The copy out is complete; only now, and for this process alone, it is what may be copied in. */
static int stamp(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        int r = pool_stamp(operation->instance->manager->pool, guest->reservation, guest->pid,
                           guest->start_time);

        if (r < 0) {
                operation_fail_errno(operation, r, "marking memory of the pool");
                operation_leave_guest(operation, guest);
        }
        return r;
}

static void on_run(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;
        struct operation *operation = guest->instance->operation;

        (void)mover;
        if (done->error < 0) {
                note_failure(guest, done->error, done);
                end_run(guest);
                return;
        }
        guest->is_unfilled = false;
        log_event(LOG_LEVEL_DEBUG, "copied", "vgpu=%s pid=%d prepare_ms=%.1f copy_ms=%.1f",
                  operation->instance->name, (int)guest->pid, (double)done->prepare_ns / 1e6,
                  (double)done->copy_ns / 1e6);
        if (done->copy_ns > operation->copy_ns)
                operation->copy_ns = done->copy_ns;
        guest->job.is_done = guest->job.kind != MOVER_OUT || stamp(guest) == 0;
        if (!operation->is_undoing && operation->kind == &operation_suspend)
                operation_pass(operation, "copied");
        end_run(guest);
}

static int run_job(struct guest *guest, const struct lists *lists, const int *fds)
{
        return mover_job_run(guest->job.device->mover, guest->job.id, lists->sizes, fds, on_run,
                             guest);
}

/* A job for all of the guest's memory, by the target's mover. */
static void begin_part(struct operation *operation, struct guest *guest)
{
        operation_begin_part(operation);
        guest->job.device = operation->target;
        guest->job.first = 0;
        guest->job.n = guest->n_memory;
        guest->job.then = NULL;
}

/* Reservations. */

static void then_out(struct guest *guest);
static void then_stage(struct guest *guest);
static void then_in(struct guest *guest);
static void then_back(struct guest *guest);

/* Of what comes to a device. What a guest happens to have in the pool does not say it. */
static bool is_from_pool(const struct guest *guest)
{
        return guest->instance->operation->kind->is_from_pool;
}

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

/* Goes on with @next when all slabs of the guest's reservation are ready on the target. */
static void prepare(struct guest *guest, pool_prepared_fn prepared, void (*next)(struct guest *))
{
        struct operation *operation = guest->instance->operation;
        bool is_ready = false;
        int r = !guest->reservation
                        ? -ESTALE
                        : pool_prepare(operation->instance->manager->pool, guest->reservation,
                                       guest->job.device->index, prepared, guest, &is_ready);

        if (r < 0)
                fail(guest, r, NULL);
        else if (is_ready)
                next(guest);
        else
                begin_pool_wait(operation);
}

static void after_prepare(struct guest *guest, int error, void (*next)(struct guest *))
{
        const struct device *device = guest->job.device;

        end_pool_wait(guest->instance->operation);
        if (error && (!device->mover || mover_is_lost(device->mover)))
                error = -ECONNRESET;
        if (error)
                fail(guest, error, NULL);
        else
                next(guest);
}

/* The three ways. */

static void on_out_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        (void)reservation;
        after_prepare(userdata, error, then_out);
}

static void then_out(struct guest *guest)
{
        CLEANUP(lists_deinit) struct lists lists = { 0 };
        int r = make_lists(guest, &lists);

        if (r == 0)
                r = begin_job(guest, MOVER_OUT, &lists);
        if (r == 0)
                r = run_job(guest, &lists, lists.sources);
        if (r < 0)
                fail(guest, r, NULL);
}

void copies_out(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory == 0)
                return;
        begin_part(operation, guest);
        prepare(guest, on_out_prepared, then_out);
}

/* Its part of what the operation may take for staging. */
static uint64_t stage_limit(const struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        double part = (double)guest->memory_bytes / (double)operation->bytes;

        return (uint64_t)(part * (double)operation->staging.bytes);
}

static void on_stage_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        (void)reservation;
        after_prepare(userdata, error, then_stage);
}

static void then_stage(struct guest *guest)
{
        CLEANUP(lists_deinit) struct lists lists = { 0 };
        int r = make_lists(guest, &lists);

        if (r == 0)
                r = begin_job(guest, is_from_pool(guest) ? MOVER_IN : MOVER_PEER, &lists);
        if (r == 0)
                r = mover_job_stage(guest->job.device->mover, guest->job.id, stage_limit(guest));
        if (r < 0)
                fail(guest, r, NULL);
        else
                end(guest);
}

void copies_stage(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory == 0 || has_job(guest))
                return;
        begin_part(operation, guest);
        if (is_from_pool(guest))
                prepare(guest, on_stage_prepared, then_stage);
        else
                then_stage(guest);
}

static void on_in_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        (void)reservation;
        after_prepare(userdata, error, then_in);
}

static void then_in(struct guest *guest)
{
        CLEANUP(lists_deinit) struct lists lists = { 0 };
        int r = make_lists(guest, &lists);

        if (r == 0 && !has_job(guest))
                r = begin_job(guest, is_from_pool(guest) ? MOVER_IN : MOVER_PEER, &lists);
        if (r == 0)
                r = run_job(guest, &lists, lists.targets);
        if (r < 0)
                fail(guest, r, NULL);
}

void copies_in(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory == 0)
                return;
        begin_part(operation, guest);
        if (is_from_pool(guest))
                prepare(guest, on_in_prepared, then_in);
        else
                then_in(guest);
}

static void begin_undo(struct guest *guest, size_t first, size_t n, guest_copied_fn then)
{
        guest->job.device = guest->instance->operation->source;
        guest->job.first = first;
        guest->job.n = n;
        guest->job.then = then;
        guest->job.is_done = false;
}

static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;

        (void)mover;
        if (done->error < 0) {
                fail(guest, done->error, done);
                return;
        }
        guest->job.device->has_context = true;
        guest->job.is_done = true;
        end(guest);
}

void copies_ready(struct guest *guest, guest_copied_fn then)
{
        struct mover *mover;
        int r;

        begin_undo(guest, 0, 0, then);
        r = device_get_mover(guest->job.device, &mover);
        if (r == 0)
                r = mover_context(mover, true, on_context, guest);
        if (r < 0)
                fail(guest, r, NULL);
}

static void on_back_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        (void)reservation;
        after_prepare(userdata, error, then_back);
}

static void then_back(struct guest *guest)
{
        CLEANUP(lists_deinit) struct lists lists = { 0 };
        bool is_parked = guest->memory[guest->job.first].is_parked;
        int r = make_lists(guest, &lists);

        if (r == 0)
                r = begin_job(guest, is_parked ? MOVER_IN : MOVER_PEER, &lists);
        if (r == 0)
                r = run_job(guest, &lists, lists.targets);
        if (r < 0)
                fail(guest, r, NULL);
}

void copies_back(struct guest *guest, size_t first, size_t n, guest_copied_fn then)
{
        begin_undo(guest, first, n, then);
        if (guest->memory[first].is_parked)
                prepare(guest, on_back_prepared, then_back);
        else
                then_back(guest);
}

void copies_park(struct guest *guest, size_t first, size_t n, guest_copied_fn then)
{
        begin_undo(guest, first, n, then);
        prepare(guest, on_out_prepared, then_out);
}

void copies_end(struct operation *operation, struct guest *guest)
{
        if (guest->job.generation == 0)
                return;
        operation_begin_part(operation);
        end_job(guest);
}
