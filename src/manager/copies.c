/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/copies.h"

#include <errno.h>
#include <stdlib.h>

#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/log.h"
#include "manager/manager.h"
#include "manager/operation.h"

/* CUresult of a device without room. */
#define DRIVER_OUT_OF_MEMORY 2

static void end(struct guest *guest)
{
        operation_end_part(guest->instance->operation);
}

static void note_failure(struct guest *guest, int error, const struct mover_done *done)
{
        struct operation *operation = guest->instance->operation;

        if (error == -ECONNRESET)
                operation_lost_mover(operation);
        else if (guest->is_dead)
                (void)0; /* nobody needs it any more */
        else if (done && done->driver_code == DRIVER_OUT_OF_MEMORY)
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
        size_t n = guest->n_memory;

        lists->sizes = calloc(n + 1, sizeof(*lists->sizes));
        lists->sources = calloc(n + 1, sizeof(*lists->sources));
        lists->targets = calloc(n + 1, sizeof(*lists->targets));
        if (!lists->sizes || !lists->sources || !lists->targets)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                lists->sizes[i] = guest->memory[i].size;
                lists->sources[i] = guest->memory[i].source;
                lists->targets[i] = guest->memory[i].target;
        }
        return 0;
}

static int make_segments(const struct guest *guest, const uint64_t *sizes,
                         struct mover_segment **ret_segments, size_t *ret_n)
{
        const struct pool_extent *extents;
        size_t n_extents;

        extents = pool_get_extents(guest->reservation, &n_extents);
        return pool_make_segments(ret_segments, ret_n, sizes, guest->n_memory, extents, n_extents);
}

static int begin_job(struct guest *guest, enum mover_job_kind kind, const struct lists *lists)
{
        struct operation *operation = guest->instance->operation;
        CLEANUP(freep) struct mover_segment *segments = NULL;
        struct mover_job job = { .kind = kind,
                                 .n_memories = guest->n_memory,
                                 .progress = on_progress,
                                 .userdata = guest };
        struct mover *mover;
        int r = device_get_mover(guest->job.device, &mover);

        if (r == 0 && kind == MOVER_PEER) {
                job.source_uuid = operation->source->uuid;
                job.source_sizes = lists->sizes;
                job.source_fds = lists->sources;
        } else if (r == 0) {
                r = make_segments(guest, lists->sizes, &segments, &job.n_segments);
                job.segments = segments;
        }
        if (r == 0)
                r = mover_job_begin(mover, &guest->job.id, &job);
        if (r < 0)
                return r;
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
        if (operation->is_undoing)
                operation_pass(operation, "remapped");
        else if (operation->kind == &operation_suspend)
                operation_pass(operation, "copied");
        end_run(guest);
}

static int run_job(struct guest *guest, const struct lists *lists, const int *fds)
{
        return mover_job_run(guest->job.device->mover, guest->job.id, lists->sizes, fds, on_run,
                             guest);
}

/* Reservations. */

static void then_out(struct guest *guest);
static void then_stage(struct guest *guest);
static void then_in(struct guest *guest);

/* Goes on with @next when all slabs of the guest's reservation are ready on the target. */
static void prepare(struct guest *guest, pool_prepared_fn prepared, void (*next)(struct guest *))
{
        struct operation *operation = guest->instance->operation;
        bool is_ready;
        int r = pool_prepare(operation->instance->manager->pool, guest->reservation,
                             guest->job.device->index, prepared, guest, &is_ready);

        if (r < 0)
                fail(guest, r, NULL);
        else if (is_ready)
                next(guest);
}

static void after_prepare(struct guest *guest, int error, void (*next)(struct guest *))
{
        const struct device *device = guest->job.device;

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
        operation_begin_part(operation);
        guest->job.device = operation->target;
        prepare(guest, on_out_prepared, then_out);
}

/* Its part of what the operation may take for staging. */
static uint64_t stage_limit(const struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        double part = (double)guest->memory_bytes / (double)operation->bytes;

        return (uint64_t)(part * (double)operation->stage_bytes);
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
                r = begin_job(guest, guest->reservation ? MOVER_IN : MOVER_PEER, &lists);
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
        operation_begin_part(operation);
        guest->job.device = operation->target;
        if (guest->reservation)
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
                r = begin_job(guest, guest->reservation ? MOVER_IN : MOVER_PEER, &lists);
        if (r == 0)
                r = run_job(guest, &lists, lists.targets);
        if (r < 0)
                fail(guest, r, NULL);
}

void copies_in(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory == 0)
                return;
        operation_begin_part(operation);
        guest->job.device = operation->target;
        if (guest->reservation)
                prepare(guest, on_in_prepared, then_in);
        else
                then_in(guest);
}

void copies_back(struct operation *operation, struct guest *guest)
{
        CLEANUP(lists_deinit) struct lists lists = { 0 };
        int r = make_lists(guest, &lists);

        operation_begin_part(operation);
        guest->job.device = operation->source;
        if (r == 0)
                r = begin_job(guest, MOVER_PEER, &lists);
        if (r == 0)
                r = run_job(guest, &lists, lists.targets);
        if (r < 0)
                fail(guest, r, NULL);
}

void copies_end(struct operation *operation, struct guest *guest)
{
        if (guest->job.generation == 0)
                return;
        operation_begin_part(operation);
        end_job(guest);
}
