/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/reading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/log.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"
#include "manager/model/spill-use.h"
#include "manager/model/spilled.h"
#include "spill/spill.h"

struct reading {
        struct manager *manager;
        struct guest *guest; /* NULL: it has ended */
        uint64_t generation; /* of what is in the file */
        struct pool_reservation *reservation;
        struct spill_copy *copy; /* NULL: the room is being prepared */
        bool must_end;
        reading_done_fn done;
};

bool reading_is_busy(const struct manager *manager)
{
        return manager->reading != NULL;
}

bool reading_is_of(const struct instance *instance)
{
        const struct reading *reading = instance->manager->reading;

        return reading && reading->guest && reading->guest->instance == instance;
}

static void free_reading(struct reading *reading)
{
        reading->manager->reading = NULL;
        pool_release(reading->manager->pool, reading->reservation);
        free(reading);
}

/* Is it still what was read? */
static bool is_current(const struct reading *reading)
{
        const struct guest *guest = reading->guest;

        return guest && !guest_is_dead(guest) && guest->spilled && !guest->spilled->ahead &&
               guest->spilled->generation == reading->generation;
}

/* Who needs the memory tries again, and says why it cannot be read. */
static void note_failure(const struct reading *reading, const struct spill_result *result)
{
        const struct guest *guest = reading->guest;
        char quoted[LOG_QUOTED_MAX];

        guest->spilled->is_unreadable = true;
        log_event_of(guest->payer, LOG_LEVEL_WARNING, "memory cannot be read ahead from the spill",
                     "vgpu=%s pid=%d reason=%s", guest->instance->name, (int)guest->pid,
                     log_quote(quoted, result->reason.message));
}

static void keep(struct reading *reading, const struct spill_result *result)
{
        struct guest *guest = reading->guest;
        uint64_t bytes = pool_get_length(reading->reservation);

        if (spilled_keep(guest, reading->reservation) < 0) {
                guest->spilled->is_unreadable = true; /* not again and again */
                return;
        }
        reading->reservation = NULL;
        log_event_of(guest->payer, LOG_LEVEL_INFO, "memory was read ahead from the spill",
                     "vgpu=%s pid=%d bytes=%" PRIu64 " seconds=%.3f", guest->instance->name,
                     (int)guest->pid, bytes, (double)result->took_ns / 1e9);
}

static void end(struct reading *reading, int error)
{
        struct instance *instance = reading->guest ? reading->guest->instance : NULL;
        struct manager *manager = reading->manager;
        reading_done_fn done = reading->done;

        free_reading(reading);
        done(manager, instance, error);
}

static void on_read(const struct spill_result *result, void *userdata)
{
        struct reading *reading = userdata;

        if (is_current(reading) && result->error == 0)
                keep(reading, result);
        else if (is_current(reading) && result->error != -ECANCELED)
                note_failure(reading, result);
        end(reading, result->error);
}

static int begin_copy(struct reading *reading)
{
        if (reading->must_end || !is_current(reading))
                return -ECANCELED;
        return spilled_begin_read(reading->guest, reading->reservation, &reading->copy, on_read,
                                  reading);
}

/* Zeroed and pinned first: zeroing what was read already would lose it. */
static void on_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct reading *reading = userdata;

        (void)reservation;
        if (error == 0)
                error = begin_copy(reading);
        if (error < 0)
                end(reading, error);
}

static int prepare(struct reading *reading)
{
        const struct guest *guest = reading->guest;
        struct pool *pool = reading->manager->pool;
        uint32_t device = instance_home(guest->instance)->index;
        char owner[POOL_OWNER_MAX];
        bool is_ready = false;
        int r;

        policy_name_owner(guest->instance, owner);
        r = pool_reserve_in(pool, &reading->reservation, owner, guest->instance->uuid, device,
                            guest->spilled->bytes);
        if (r == 0)
                r = pool_prepare(pool, reading->reservation, device, on_prepared, reading,
                                 &is_ready);
        return r == 0 && is_ready ? begin_copy(reading) : r;
}

int reading_begin(struct guest *guest, reading_done_fn done)
{
        struct manager *manager = guest->instance->manager;
        struct reading *reading;
        int r;

        if (manager->reading)
                return -EBUSY;
        reading = calloc(1, sizeof(*reading));
        if (!reading)
                return -ENOMEM;
        *reading = (struct reading){ .manager = manager,
                                     .guest = guest,
                                     .generation = guest->spilled->generation,
                                     .done = done };
        manager->reading = reading;
        r = prepare(reading);
        if (r < 0)
                free_reading(reading);
        return r;
}

bool reading_give_up(struct manager *manager)
{
        struct reading *reading = manager->reading;

        if (!reading)
                return false;
        reading->must_end = true;
        if (reading->copy)
                spill_cancel(reading->copy);
        return true;
}

void reading_leave(struct guest *guest)
{
        struct reading *reading = guest->instance->manager->reading;

        if (!reading || reading->guest != guest)
                return;
        reading->guest = NULL;
        (void)reading_give_up(reading->manager);
}

void reading_close(struct manager *manager)
{
        if (manager->reading)
                free_reading(manager->reading);
}
