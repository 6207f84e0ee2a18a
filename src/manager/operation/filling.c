/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/filling.h"

#include <errno.h>

#include "base/cleanup.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/copy-fail.h"
#include "manager/operation/copy-job.h"
#include "manager/operation/copy-pool.h"
#include "manager/operation/job-lists.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

static struct operation *operation_of(const struct guest_fill *fill)
{
        return fill->job.guest->instance->operation;
}

static size_t count(const struct guest *guest, enum guest_fill_state state)
{
        size_t n = 0;

        for (size_t i = 0; i < GUEST_FILLS; i++)
                n += guest->participant->arrival.fill[i].state == state;
        return n;
}

static void report(const struct guest_fill *fill, const char *moment)
{
        operation_report_part(operation_of(fill), moment, fill->job.first, fill->job.n,
                              count(fill->job.guest, GUEST_FILL_RUNNING) -
                                      (fill->state == GUEST_FILL_RUNNING));
}

/* The end. */

static void set_free(struct guest_fill *fill)
{
        bool is_awaited = fill->is_awaited;

        fill->state = GUEST_FILL_FREE;
        fill->is_awaited = false;
        fill->job.generation = 0;
        if (is_awaited)
                operation_end_part(operation_of(fill));
}

static void on_ended(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_fill *fill = userdata;

        (void)mover, (void)done; /* gone with the mover is gone as well */
        set_free(fill);
        fill->then(fill->job.guest);
}

static void end(struct guest_fill *fill)
{
        struct guest_job *job = &fill->job;

        fill->state = GUEST_FILL_ENDING;
        if (!copy_job_is_there(job) ||
            mover_job_end(job->device->mover, job->id, on_ended, fill) < 0)
                set_free(fill);
}

/* What was given may be why, whoever gave it: the next time it makes memory of its own. */
static void take_no_gifts(const struct guest_job *job)
{
        for (size_t i = job->first; i < job->first + job->n; i++)
                job->guest->takes_no_gifts |= job->guest->memory[i].gift == GUEST_GIFT_HELD;
}

static void fail(struct guest_fill *fill, int error, const struct mover_done *done)
{
        fill->has_failed = true;
        if (error != -ECONNRESET)
                take_no_gifts(&fill->job);
        copy_fail(&fill->job, error, done);
        end(fill);
}

/* Copying. */

static void note_filled(const struct guest_job *job)
{
        struct guest_memory *memory = job->guest->memory;

        for (size_t i = job->first; i < job->first + job->n; i++)
                if (memory[i].gift == GUEST_GIFT_HELD)
                        memory[i].gift = GUEST_GIFT_FILLED;
}

static void on_run(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest_fill *fill = userdata;

        (void)mover;
        if (done->error) {
                fail(fill, done->error, done);
        } else {
                copy_job_note_run(&fill->job, done);
                note_filled(&fill->job);
                report(fill, "part is filled");
                operation_pass(operation_of(fill), "arrived");
                end(fill);
        }
        fill->then(fill->job.guest);
}

static int run(struct guest_fill *fill)
{
        CLEANUP(job_lists_deinit) struct job_lists lists = { 0 };
        struct guest_job *job = &fill->job;
        int r = job_lists_make(&lists, job);

        if (r == 0)
                r = copy_job_begin_in(job);
        if (r == 0)
                r = mover_job_run(job->device->mover, job->id, lists.sizes, lists.targets, on_run,
                                  fill);
        return r;
}

static void start(struct guest_fill *fill)
{
        int r = run(fill);

        if (r < 0) {
                fail(fill, r, NULL);
                return;
        }
        fill->state = GUEST_FILL_RUNNING;
        report(fill, "part is being filled");
}

/* The pool. */

static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct guest_fill *fill = userdata;
        const struct device *device = fill->job.device;

        (void)reservation;
        copy_pool_end_wait(operation_of(fill));
        if (error && (!device->mover || mover_is_lost(device->mover)))
                error = -ECONNRESET;
        if (error)
                fail(fill, error, NULL);
        else
                start(fill);
        fill->then(fill->job.guest);
}

static void prepare(struct guest_fill *fill)
{
        struct guest *guest = fill->job.guest;
        struct operation *operation = operation_of(fill);
        bool is_ready = false;
        int r = -ESTALE;

        if (guest->reservation)
                r = pool_prepare(operation->instance->manager->pool, guest->reservation,
                                 fill->job.device->index, on_prepared, fill, &is_ready);
        if (r < 0)
                fail(fill, r, NULL);
        else if (is_ready)
                start(fill);
        else
                copy_pool_begin_wait(operation);
}

/* Beginning. */

bool filling_may_begin(const struct guest *guest)
{
        return count(guest, GUEST_FILL_FREE) > 0 && count(guest, GUEST_FILL_PREPARING) == 0;
}

void filling_begin(struct guest *guest, size_t first, size_t n, void (*then)(struct guest *guest))
{
        struct guest_fill *fill = guest->participant->arrival.fill;

        while (fill->state != GUEST_FILL_FREE)
                fill++;
        *fill = (struct guest_fill){
                .job = { .guest = guest,
                         .first = first,
                         .n = n,
                         .device = guest->instance->operation->target.device[0] },
                .then = then,
                .state = GUEST_FILL_PREPARING,
        };
        prepare(fill);
}

bool filling_is_copying(const struct guest *guest)
{
        return count(guest, GUEST_FILL_PREPARING) + count(guest, GUEST_FILL_RUNNING) > 0;
}

bool filling_is_busy(const struct guest *guest)
{
        return count(guest, GUEST_FILL_FREE) < GUEST_FILLS;
}

/* Of those behind it some may be there; they are filled once more. */
size_t filling_forget_failed(struct guest *guest, size_t n_begun)
{
        for (size_t i = 0; i < GUEST_FILLS; i++) {
                struct guest_fill *fill = &guest->participant->arrival.fill[i];

                if (fill->has_failed && fill->job.first < n_begun)
                        n_begun = fill->job.first;
                fill->has_failed = false;
        }
        return n_begun;
}

void filling_end(struct operation *operation)
{
        struct guest *guest;

        list_for_each(guest, &operation->instance->guests, link)
                for (size_t i = 0; guest->participant && i < GUEST_FILLS; i++) {
                        struct guest_fill *fill = &guest->participant->arrival.fill[i];

                        if (fill->state == GUEST_FILL_FREE)
                                continue;
                        fill->is_awaited = true;
                        operation_begin_part(operation);
                }
}
