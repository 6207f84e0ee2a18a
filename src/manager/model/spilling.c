/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/spilling.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/log.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/reading.h"
#include "manager/model/reserve.h"
#include "manager/model/spilled.h"
#include "manager/model/spilling-internal.h"
#include "spill/spill-directory.h"
#include "spill/spill.h"

int spilling_open(struct manager *manager, struct failure *failure)
{
        const char *path = manager->options->spill_directory;
        int directory = -1, r = 0;

        list_init(&manager->spillings);
        if (path[0])
                r = spill_directory_open(&directory, path, failure);
        return r < 0 ? r : spill_new(&manager->spill, manager->event, directory);
}

static void free_spilling(struct spilling *spilling)
{
        if (spilling->guest)
                spilling->guest->spilling = NULL;
        list_remove(&spilling->link);
        fd_close(spilling->fd);
        free(spilling);
}

void spilling_close(struct manager *manager)
{
        struct spilling *spilling, *after;

        if (!manager->spill)
                return;
        manager->spill = spill_free(manager->spill);
        reading_close(manager);
        list_for_each_safe(spilling, after, &manager->spillings, link)
                free_spilling(spilling);
}

/* Is it what was copied, and would it stay where it is? */
static bool is_current(const struct spilling *spilling)
{
        const struct guest *guest = spilling->guest;

        return guest && !guest_is_dead(guest) && guest->reservation &&
               !guest->instance->operation && !guest->instance->image &&
               instance_is_off(guest->instance) &&
               pool_get_generation(guest->reservation) == spilling->generation;
}

static int settle(struct spilling *spilling, const struct spill_result *result)
{
        struct guest *guest = spilling->guest;
        struct instance *instance;
        int r = result->error;

        if (r == 0 && !is_current(spilling))
                r = -ECANCELED;
        if (r < 0)
                return r;
        instance = guest->instance;
        r = spilled_set(guest, TAKE_FD(spilling->fd), spilling->begin);
        if (r < 0)
                return r;
        log_event_of(guest->payer, LOG_LEVEL_INFO, "memory went to the spill",
                     "vgpu=%s pid=%d bytes=%" PRIu64 " seconds=%.3f", instance->name,
                     (int)guest->pid, spilling->bytes, (double)result->took_ns / 1e9);
        observer_tell_changed(&instance->manager->observers);
        return 0;
}

static void log_failure(const struct spilling *spilling, const struct spill_result *result,
                        int error)
{
        const char *message = result->error ? result->reason.message : strerror(-error);
        char quoted[LOG_QUOTED_MAX];

        log_event_of(spilling->owner, LOG_LEVEL_WARNING,
                     "memory stays in the pool: it could not go to the spill",
                     "vgpu=%s bytes=%" PRIu64 " reason=%s",
                     spilling->guest ? spilling->guest->instance->name : "-", spilling->bytes,
                     log_quote(quoted, message));
}

/* A disk that does not take what was promised is counted on for nothing more, until it takes something again. */
static void note_disk(struct manager *manager, int error)
{
        bool had_failed = manager->spill_failure[0] != '\0';

        if (error == -ECANCELED || error == -ENOSPC)
                return;
        snprintf(manager->spill_failure, sizeof(manager->spill_failure), "%s",
                 error ? strerror(-error) : "");
        if (error && !had_failed)
                log_event(LOG_LEVEL_ERROR, "the disk of the spill fails; no more is promised on it",
                          "directory=%s error=\"%s\"", manager->options->spill_directory,
                          strerror(-error));
        else if (!error && had_failed)
                log_event(LOG_LEVEL_NOTICE, "the disk of the spill works again", "directory=%s",
                          manager->options->spill_directory);
}

static void on_written(const struct spill_result *result, void *userdata)
{
        struct spilling *spilling = userdata;
        struct manager *manager = spilling->manager;
        spilling_done_fn done = spilling->done;
        int r = settle(spilling, result);

        note_disk(manager, result->error);
        if (r < 0 && r != -ECANCELED)
                log_failure(spilling, result, r);
        free_spilling(spilling);
        done(manager, r);
}

static int begin_copy(struct spilling *spilling)
{
        const struct guest *guest = spilling->guest;
        struct pool *pool = spilling->manager->pool;
        CLEANUP(freep) struct spill_extent *places = NULL;
        struct spill_order order = { .fd = spilling->fd, .begin = spilling->begin };
        const struct pool_extent *extents = pool_get_extents(guest->reservation, &order.n_extents);

        places = calloc(order.n_extents, sizeof(*places));
        if (!places)
                return -ENOMEM;
        for (size_t i = 0; i < order.n_extents; i++)
                places[i] = (struct spill_extent){ pool_get_slab(pool, extents[i].slab),
                                                   extents[i].offset, extents[i].length };
        order.extents = places;
        spilled_make_mark(guest, spilling->generation, &order.mark);
        return spill_begin(spilling->manager->spill, &spilling->copy, &order, on_written, spilling);
}

/* In the room that is held for the vGPU. Without any, or if it is in too many pieces, the disk must have more. */
static int open_file(struct spilling *spilling)
{
        const struct instance *instance = spilling->guest->instance;
        uint64_t begin = reserve_find_place(instance, spilling->bytes);

        if (!begin)
                return spill_make_file(spilling->manager->spill, &spilling->fd);
        spilling->fd = fcntl(instance->reserve->fd, F_DUPFD_CLOEXEC, 3);
        if (spilling->fd < 0)
                return -errno;
        spilling->reserve = instance->reserve;
        spilling->begin = begin;
        return 0;
}

int spilling_begin(struct guest *guest, spilling_done_fn done)
{
        struct spilling *spilling = calloc(1, sizeof(*spilling));
        struct manager *manager = guest->instance->manager;
        int r;

        if (!spilling)
                return -ENOMEM;
        *spilling = (struct spilling){ .manager = manager,
                                       .guest = guest,
                                       .owner = guest->instance->owner,
                                       .fd = -1,
                                       .bytes = pool_get_length(guest->reservation),
                                       .generation = pool_get_generation(guest->reservation),
                                       .done = done };
        list_append(&manager->spillings, &spilling->link);
        guest->spilling = spilling;
        r = open_file(spilling);
        if (r == 0)
                r = begin_copy(spilling);
        if (r < 0)
                free_spilling(spilling);
        return r;
}

void spilling_leave(struct guest *guest)
{
        if (!guest->spilling)
                return;
        spill_cancel(guest->spilling->copy);
        guest->spilling->guest = NULL;
        guest->spilling = NULL;
}

bool spilling_is_idle(const struct manager *manager)
{
        return list_is_empty(&manager->spillings);
}
