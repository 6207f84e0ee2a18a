/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copies.h"

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/operation/copy-hashes.h"
#include "manager/operation/copy-job.h"
#include "manager/operation/copy-pool.h"
#include "manager/operation/copy-way.h"
#include "manager/operation/handover.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* fill: the guest has all of it. */
static int note_filled(struct guest *guest)
{
        guest->is_unfilled = false;
        guest->participant->copy.is_done = true;
        return 0;
}

static int note_ready(struct guest *guest)
{
        guest->participant->copy.is_done = true;
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
        return guest->memory[guest->participant->copy.first].is_parked;
}

/* What is kept once gives blocks back to the pool, which may zero them at once: the jobs have let go of the slabs by then. */
static const struct copy_step out_steps[] = {
        { .once = copy_pool_be_lone },
        { .once = copy_hashes_begin },
        { .once = copy_pool_prepare },
        { .each = copy_job_begin },
        { .each = copy_job_run },
        { .once = note_filled },
        { .each = copy_job_let_go, .is_end = true },
        { .once = copy_pool_keep_once },
        { .once = copy_pool_stamp },
        { 0 },
};

static const struct copy_step live_steps[] = {
        { .once = copy_hashes_begin_live },
        { .once = copy_pool_prepare },
        { .each = copy_job_begin },
        { .each = copy_job_run },
        { .once = note_ready },
        { .each = copy_job_end, .is_end = true },
        { 0 },
};

static const struct copy_step stage_steps[] = {
        { .once = copy_pool_prepare },
        { .each = copy_job_begin },
        { .each = copy_job_stage },
        { 0 },
};

static const struct copy_step in_steps[] = {
        { .once = copy_pool_prepare },
        { .each = copy_job_begin },
        { .each = copy_job_run },
        { .once = note_filled },
        { .each = copy_job_let_go, .is_end = true },
        { 0 },
};

static const struct copy_step context_steps[] = {
        { .each = copy_job_make_context },
        { .once = note_ready },
        { 0 },
};

static const struct copy_step nowhere_steps[] = { { .each = copy_job_end }, { 0 } };

static const struct copy_way
        out = { .is_pooled = always, .pooled = MOVER_OUT, .steps = out_steps },
        live = { .is_pooled = always, .pooled = MOVER_OUT, .is_live = true, .steps = live_steps },
        stage = { .is_pooled = is_from_pool, .pooled = MOVER_IN, .steps = stage_steps },
        in = { .is_pooled = is_from_pool, .pooled = MOVER_IN, .has_job = true, .steps = in_steps },
        back = { .is_pooled = is_parked, .pooled = MOVER_IN, .steps = in_steps },
        context = { .is_pooled = always, .steps = context_steps },
        nowhere = { .is_pooled = always, .steps = nowhere_steps };

/* A copy of allocations @first to @first + @n - 1, by the movers of @place. */
static void start_copy(struct guest *guest, size_t first, size_t n, const struct place *place,
                       const struct copy_way *way)
{
        guest->participant->copy.first = first;
        guest->participant->copy.n = n;
        guest->participant->copy.n_passed = 0;
        guest->participant->copy.is_kept = guest->participant->copy.has_no_hashes =
                guest->participant->copy.is_compared = false;
        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                guest->participant->job[i].device = place->device[i];
                guest->participant->job[i].n_hashes = 0;
                guest->participant->job[i].first = first;
                guest->participant->job[i].n = n;
                guest->participant->job[i].is_in_use =
                        copy_job_count(&guest->participant->job[i]) > 0;
        }
        copy_way_start(guest, way);
}

/* A part of the operation: all of the guest's memory, by the target's movers. */
static void start_part(struct operation *operation, struct guest *guest, const struct copy_way *way)
{
        size_t first = way == &out ? handover_count(guest) : 0;

        operation_begin_part(operation);
        guest->participant->copy.then = NULL;
        start_copy(guest, first, guest->n_memory - first, &operation->target, way);
}

/* Of one that was begun before with a mover that has died, what is there already stays. */
void copies_out(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > handover_count(guest))
                start_part(operation, guest, &out);
}

void copies_ahead(struct guest *guest, guest_copied_fn then)
{
        guest->participant->copy.then = then;
        start_copy(guest, 0, guest->n_memory, &guest->instance->operation->source, &live);
}

void copies_stop(struct guest *guest)
{
        for (size_t i = 0; i < guest->instance->n_parts; i++)
                if (guest->participant->job[i].is_in_use)
                        copy_job_stop(&guest->participant->job[i]);
}

static bool is_staged(const struct guest *guest)
{
        for (size_t i = 0; i < guest->instance->n_parts; i++)
                if (guest->participant->job[i].generation &&
                    copy_job_is_there(&guest->participant->job[i]))
                        return true;
        return false;
}

void copies_stage(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > 0 && !is_staged(guest))
                start_part(operation, guest, &stage);
}

void copies_in(struct operation *operation, struct guest *guest)
{
        if (guest->n_memory > 0)
                start_part(operation, guest, &in);
}

static void start_undo(struct guest *guest, size_t first, size_t n, guest_copied_fn then,
                       const struct copy_way *way)
{
        guest->participant->copy.then = then;
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

void copies_drop(struct guest *guest)
{
        for (size_t i = 0; i < guest->instance->n_parts; i++)
                copy_job_drop(&guest->participant->job[i]);
        for (size_t i = 0; i < GUEST_FILLS; i++)
                copy_job_drop(&guest->participant->arrival.fill[i].job);
}

void copies_end(struct operation *operation, struct guest *guest)
{
        bool has_any = false;

        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                guest->participant->job[i].is_in_use = guest->participant->job[i].generation != 0;
                has_any |= guest->participant->job[i].is_in_use;
        }
        if (!has_any)
                return;
        operation_begin_part(operation);
        guest->participant->copy.then = NULL;
        copy_way_start(guest, &nowhere);
}
