/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/spilled.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/recovery-internal.h"
#include "manager/model/recovery.h"
#include "manager/model/spill-use.h"
#include "wire/keeper.h"

static void make_label(char label[KEEPER_LABEL_MAX], const struct guest *guest)
{
        snprintf(label, KEEPER_LABEL_MAX, RECOVERY_SPILLED "%s/%d/%" PRIx64, guest->instance->uuid,
                 (int)guest->pid, guest->spilled->generation);
}

void spilled_make_mark(const struct guest *guest, uint64_t generation, struct spill_mark *ret_mark)
{
        *ret_mark = (struct spill_mark){ .generation = generation,
                                         .start_time = guest->start_time,
                                         .pid = guest->pid };
        snprintf(ret_mark->vgpu, sizeof(ret_mark->vgpu), "%s", guest->instance->uuid);
}

void spilled_forget(struct guest *guest)
{
        if (!guest->spilled)
                return;
        pool_release(guest->instance->manager->pool, guest->spilled->ahead);
        fd_close(guest->spilled->fd);
        free(TAKE(guest->spilled));
}

/* The pool has taken the room for something that is needed. */
static void on_given_up(void *userdata)
{
        struct guest *guest = userdata;

        guest->spilled->ahead = NULL;
}

int spilled_keep(struct guest *guest, struct pool_reservation *reservation)
{
        int r = pool_spare(guest->instance->manager->pool, reservation, guest->instance->owner,
                           on_given_up, guest);

        if (r == 0)
                guest->spilled->ahead = reservation;
        return r;
}

int spilled_take(struct guest *guest, struct pool_reservation **ret_reservation)
{
        int r = 0;

        if (guest->spilled->ahead)
                r = pool_need(guest->instance->manager->pool, guest->spilled->ahead);
        *ret_reservation = r == 0 ? TAKE(guest->spilled->ahead) : NULL;
        return r;
}

int spilled_begin_read(struct guest *guest, const struct pool_reservation *reservation,
                       struct spill_copy **ret_copy, spill_done_fn done, void *userdata)
{
        struct manager *manager = guest->instance->manager;
        CLEANUP(freep) struct spill_extent *places = NULL;
        struct spill_order order = { .is_read = true,
                                     .fd = guest->spilled->fd,
                                     .begin = guest->spilled->begin };
        const struct pool_extent *extents = pool_get_extents(reservation, &order.n_extents);

        places = calloc(order.n_extents, sizeof(*places));
        if (!places)
                return -ENOMEM;
        for (size_t i = 0; i < order.n_extents; i++)
                places[i] = (struct spill_extent){ pool_get_slab(manager->pool, extents[i].slab),
                                                   extents[i].offset, extents[i].length };
        order.extents = places;
        spilled_make_mark(guest, guest->spilled->generation, &order.mark);
        return spill_begin(manager->spill, ret_copy, &order, done, userdata);
}

void spilled_drop(struct guest *guest)
{
        char label[KEEPER_LABEL_MAX];

        if (!guest->spilled)
                return;
        make_label(label, guest);
        (void)keeper_drop(guest->instance->manager->keeper, label);
        spilled_forget(guest);
}

static int make(struct guest *guest, int fd, uint64_t begin, uint64_t bytes, uint64_t generation)
{
        guest->spilled = calloc(1, sizeof(*guest->spilled));
        if (!guest->spilled) {
                fd_close(fd);
                return -ENOMEM;
        }
        *guest->spilled = (struct spilled){
                .fd = fd, .begin = begin, .bytes = bytes, .generation = generation
        };
        return 0;
}

/* The keeper has it before the store says so. */
static int record(struct guest *guest)
{
        struct pool_reservation *reservation = TAKE(guest->reservation);
        char label[KEEPER_LABEL_MAX];
        int r;

        make_label(label, guest);
        r = keeper_put(guest->instance->manager->keeper, label, guest->spilled->fd);
        (void)fault_point("spill.kept"); /* to kill */
        if (r == 0)
                r = recovery_store_memory(guest);
        (void)fault_point("spill.recorded");
        guest->reservation = reservation;
        return r;
}

int spilled_set(struct guest *guest, int fd, uint64_t begin)
{
        struct manager *manager = guest->instance->manager;
        int r = make(guest, fd, begin, pool_get_length(guest->reservation),
                     pool_get_generation(guest->reservation));

        if (r == 0)
                r = record(guest);
        if (r < 0) {
                spilled_drop(guest);
                return r;
        }
        if (spilled_keep(guest, guest->reservation) < 0)
                pool_release(manager->pool, guest->reservation);
        guest->reservation = NULL;
        recovery_sync_slabs(manager);
        return 0;
}

int spilled_adopt(struct guest *guest, const struct store_extent *stored)
{
        char label[KEEPER_LABEL_MAX];
        int fd, r = make(guest, -1, stored->offset, stored->length, stored->generation);

        if (r < 0)
                return r;
        make_label(label, guest);
        fd = keeper_find(guest->instance->manager->keeper, label);
        guest->spilled->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (guest->spilled->fd >= 0)
                return 0;
        r = fd < 0 ? -ENOENT : -errno;
        spilled_forget(guest);
        return r;
}

static int drop_ownerless(const char *label, int fd, void *userdata)
{
        struct manager *manager = userdata;
        const struct instance *instance;
        char own[KEEPER_LABEL_MAX];
        const struct guest *guest;

        (void)fd;
        list_for_each(instance, &manager->instances, link)
                list_for_each(guest, &instance->guests, link) {
                        if (!guest->spilled)
                                continue;
                        make_label(own, guest);
                        if (strcmp(own, label) == 0)
                                return 0;
                }
        (void)keeper_drop(manager->keeper, label);
        return 0;
}

void spilled_drop_ownerless(struct manager *manager)
{
        (void)keeper_list(manager->keeper, RECOVERY_SPILLED, drop_ownerless, manager);
}
