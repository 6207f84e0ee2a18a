/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copy-way.h"

#include <string.h>

#include "base/cleanup.h"
#include "daemon/log.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/operation/copy-fail.h"
#include "manager/operation/operation.h"

static void note_failure(struct guest_job *job, int error, const struct mover_done *done)
{
        struct guest *guest = job->guest;

        if (guest->copy.way->is_live) {
                log_event_of(guest->payer, LOG_LEVEL_WARNING,
                             "memory is not copied while the process runs",
                             "vgpu=%s pid=%d device=%u call=%.63s error=\"%s\"",
                             guest->instance->name, (int)guest->pid, job->device->index,
                             done && done->call[0] ? done->call : "-", strerror(-error));
                return;
        }
        copy_fail(job, error, done);
}

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

void copy_way_fail(struct guest_job *job, int error, const struct mover_done *done)
{
        job->guest->copy.has_failed = true;
        note_failure(job, error, done);
}

/* True: it has done its work, or failed. */
static bool take_once(struct guest *guest, int (*run)(struct guest *guest))
{
        int r = run(guest);

        if (r < 0)
                copy_way_fail(&guest->job[0], r, NULL);
        return r != COPY_WAITS;
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
                if (r != COPY_WAITS)
                        guest->copy.n_pending--;
                if (r < 0)
                        copy_way_fail(job, r, NULL);
        }
        return --guest->copy.n_pending == 0;
}

/* The next step; after a failure only one that ends the jobs is left. */
static void advance(struct guest *guest)
{
        guest->copy.step++;
        if (!guest->copy.has_failed)
                return;
        guest->copy.is_done = false;
        while (is_step(guest, guest->copy.step) && !guest->copy.way->steps[guest->copy.step].is_end)
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

void copy_way_go_on(struct guest *guest)
{
        advance(guest);
        take_steps(guest);
}

void copy_way_end_wait(struct guest_job *job, int error, const struct mover_done *done)
{
        struct guest *guest = job->guest;

        if (error < 0)
                copy_way_fail(job, error, done);
        if (--guest->copy.n_pending == 0)
                copy_way_go_on(guest);
}

void copy_way_start(struct guest *guest, const struct copy_way *way)
{
        guest->copy.way = way;
        guest->copy.step = 0;
        guest->copy.is_done = guest->copy.has_failed = false;
        take_steps(guest);
}
