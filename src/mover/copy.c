/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/copy.h"

#include <errno.h>

#include "base/size.h"
#include "mover/driver.h"

/* 1.2 ms of a PCIe 5 bus: progress is smooth, and the calls cost nothing beside it. */
#define PIECE_BYTES (64 * MIB)

/* Marks (events) of so many bytes each under way at once: the bus never waits for us to wake up. */
#define MARKS_MAX 8

struct copy {
        CUevent event[MARKS_MAX]; /* used in turn: mark i has event i % n_events */
        size_t n_events; /* as many as there was memory for; 0: each mark is waited for at once */
        uint64_t end[MARKS_MAX];     /* bytes that are done when the event is */
        uint64_t n_set, n_passed;    /* marks */
        uint64_t n_queued, n_marked; /* bytes; before the last mark */
        const struct copy_control *control;
};

/* Those that are not there yet. */
static int make_events(struct copy *copy, struct mover_done *done)
{
        int r = 0;

        while (copy->n_events < MARKS_MAX && r == 0) {
                r = DRIVER_CALL(done, cuEventCreate, &copy->event[copy->n_events],
                                CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
                copy->n_events += r == 0;
        }
        return r;
}

static int copy_init(struct copy *copy, struct mover_done *done)
{
        struct device *device = copy->control->device;
        int r = make_events(copy, done);

        if (r == -ENOMEM && device) {
                driver_forget(done);
                device_lend_margin(device);
                r = make_events(copy, done);
                device_return_margin(device);
        }
        if (r != -ENOMEM)
                return r;
        driver_forget(done);
        return 0;
}

/* Nothing is under way on the memory when this returns, whatever failed. */
static void copy_deinit(struct copy *copy)
{
        driver.cuStreamSynchronize(copy->control->stream);
        for (size_t i = 0; i < copy->n_events; i++)
                driver.cuEventDestroy_v2(copy->event[i]);
}

static int pass_mark(struct copy *copy, struct mover_done *done)
{
        size_t slot = copy->n_passed % copy->n_events;
        int r;

        r = DRIVER_CALL(done, cuEventSynchronize, copy->event[slot]);
        if (r < 0)
                return r;

        copy->n_passed++;
        return copy->control->progress(copy->end[slot], copy->control->userdata);
}

static int pass_at_once(struct copy *copy, struct mover_done *done)
{
        int r = DRIVER_CALL(done, cuStreamSynchronize, copy->control->stream);

        copy->n_marked = copy->n_queued;
        return r < 0 ? r : copy->control->progress(copy->n_marked, copy->control->userdata);
}

static int set_mark(struct copy *copy, struct mover_done *done)
{
        size_t slot;
        int r;

        if (copy->n_events == 0)
                return pass_at_once(copy, done);
        slot = copy->n_set % copy->n_events;
        r = DRIVER_CALL(done, cuEventRecord, copy->event[slot], copy->control->stream);
        if (r < 0)
                return r;

        copy->n_set++;
        copy->end[slot] = copy->n_queued;
        copy->n_marked = copy->n_queued;
        return 0;
}

static int queue_copy(struct copy *copy, enum copy_direction direction,
                      const struct copy_part *part, uint64_t offset, uint64_t length,
                      struct mover_done *done)
{
        switch (direction) {
        case COPY_TO_HOST:
                return DRIVER_CALL(done, cuMemcpyDtoHAsync_v2, part->host + offset,
                                   part->device + offset, length, copy->control->stream);
        case COPY_TO_DEVICE:
                return DRIVER_CALL(done, cuMemcpyHtoDAsync_v2, part->device + offset,
                                   part->host + offset, length, copy->control->stream);
        case COPY_BETWEEN_DEVICES:
                if (copy->control->from_context)
                        return DRIVER_CALL(done, cuMemcpyPeerAsync, part->device + offset,
                                           copy->control->to_context, part->from + offset,
                                           copy->control->from_context, length,
                                           copy->control->stream);
                return DRIVER_CALL(done, cuMemcpyDtoDAsync_v2, part->device + offset,
                                   part->from + offset, length, copy->control->stream);
        }
        __builtin_unreachable();
}

static int copy_one(struct copy *copy, enum copy_direction direction, const struct copy_part *part,
                    struct mover_done *done)
{
        int r = 0;

        if (copy->control->wait && part->host)
                r = copy->control->wait(part, done, copy->control->userdata);
        for (uint64_t offset = 0; offset < part->length && r == 0; offset += PIECE_BYTES) {
                uint64_t rest = part->length - offset;
                uint64_t length = rest < PIECE_BYTES ? rest : PIECE_BYTES;

                if (*copy->control->stop)
                        return 0;
                r = queue_copy(copy, direction, part, offset, length, done);
                if (r < 0)
                        return r;
                copy->n_queued += length;
                if (copy->n_queued - copy->n_marked < PIECE_BYTES)
                        continue;
                r = set_mark(copy, done);
                if (r == 0 && copy->n_events > 0 && copy->n_set - copy->n_passed == copy->n_events)
                        r = pass_mark(copy, done);
        }
        return r;
}

static int copy_all(struct copy *copy, enum copy_direction direction, const struct copy_part *parts,
                    size_t n_parts, struct mover_done *done)
{
        int r = 0;

        for (size_t i = 0; i < n_parts && r == 0 && !*copy->control->stop; i++)
                r = copy_one(copy, direction, &parts[i], done);
        if (copy->n_marked < copy->n_queued && r == 0)
                r = set_mark(copy, done);
        while (copy->n_passed < copy->n_set && r == 0)
                r = pass_mark(copy, done);
        return r;
}

int copy_run(enum copy_direction direction, const struct copy_part *parts, size_t n_parts,
             const struct copy_control *control, uint64_t *ret_copied, struct mover_done *done)
{
        struct copy copy = { .control = control };
        int r;

        r = copy_init(&copy, done);
        if (r == 0)
                r = copy_all(&copy, direction, parts, n_parts, done);
        copy_deinit(&copy);
        if (r == 0)
                *ret_copied = copy.n_queued;
        return r;
}
