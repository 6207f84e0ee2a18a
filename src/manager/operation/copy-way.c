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
#include "manager/operation/participant.h"

static void note_failure(struct guest_job *job, int error, const struct mover_done *done)
{
        struct guest *guest = job->guest;

        if (guest->participant->copy.way->is_live) {
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
        if (guest->participant->copy.then)
                TAKE(guest->participant->copy.then)(guest, guest->participant->copy.is_done);
        else
                operation_end_part(guest->instance->operation);
}

static bool is_step(const struct guest *guest, size_t step)
{
        return guest->participant->copy.way->steps[step].each ||
               guest->participant->copy.way->steps[step].once;
}

void copy_way_fail(struct guest_job *job, int error, const struct mover_done *done)
{
        job->guest->participant->copy.has_failed = true;
        note_failure(job, error, done);
}

/* True: it has done its work, or failed. */
static bool take_once(struct guest *guest, int (*run)(struct guest *guest))
{
        int r = run(guest);

        if (r < 0)
                copy_way_fail(&guest->participant->job[0], r, NULL);
        return r != COPY_WAITS;
}

static bool take_each(struct guest *guest, int (*run)(struct guest_job *job))
{
        guest->participant->copy.n_pending = 1; /* until all have begun */
        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                struct guest_job *job = &guest->participant->job[i];
                int r;

                if (!job->is_in_use)
                        continue;
                guest->participant->copy.n_pending++;
                r = run(job);
                if (r != COPY_WAITS)
                        guest->participant->copy.n_pending--;
                if (r < 0)
                        copy_way_fail(job, r, NULL);
        }
        return --guest->participant->copy.n_pending == 0;
}

/* The next step; after a failure only one that ends the jobs is left. */
static void advance(struct guest *guest)
{
        guest->participant->copy.step++;
        if (!guest->participant->copy.has_failed)
                return;
        guest->participant->copy.is_done = false;
        while (is_step(guest, guest->participant->copy.step) &&
               !guest->participant->copy.way->steps[guest->participant->copy.step].is_end)
                guest->participant->copy.step++;
}

/* The rest of the way; the guest may be freed by its end. */
static void take_steps(struct guest *guest)
{
        while (is_step(guest, guest->participant->copy.step)) {
                const struct copy_step *step =
                        &guest->participant->copy.way->steps[guest->participant->copy.step];

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
        if (--guest->participant->copy.n_pending == 0)
                copy_way_go_on(guest);
}

void copy_way_start(struct guest *guest, const struct copy_way *way)
{
        guest->participant->copy.way = way;
        guest->participant->copy.step = 0;
        guest->participant->copy.is_done = guest->participant->copy.has_failed = false;
        take_steps(guest);
}
