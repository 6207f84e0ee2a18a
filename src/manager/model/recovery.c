/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/place-text.h"
#include "manager/model/recovery-internal.h"
#include "manager/model/spill-use.h"
#include "wire/keeper.h"

void recovery_memory_label(char label[KEEPER_LABEL_MAX], const char *prefix,
                           const struct guest *guest, const struct guest_memory *memory)
{
        snprintf(label, KEEPER_LABEL_MAX, "%s%s/%d/%" PRIx64 "/%" PRIx64, prefix,
                 guest->instance->uuid, (int)guest->pid, memory->address, memory->size);
}

/*
 * That of the first is the UUID alone, as older managers know it. The others go by their ids: a device, and its
 * part, may be gone when the next manager starts.
 */
void recovery_page_label(char label[KEEPER_LABEL_MAX], const struct instance *instance,
                         const struct instance_part *part)
{
        if (part->id == instance->id)
                snprintf(label, KEEPER_LABEL_MAX, RECOVERY_PAGE "%s", instance->uuid);
        else
                snprintf(label, KEEPER_LABEL_MAX, RECOVERY_PAGE "%s/%" PRIu32, instance->uuid,
                         part->id);
}

static void slab_label(char label[KEEPER_LABEL_MAX], uint32_t slab)
{
        snprintf(label, KEEPER_LABEL_MAX, RECOVERY_SLAB "%" PRIu32, slab);
}

/* Pages. */

static int put_page(struct instance *instance, const struct instance_part *part)
{
        char label[KEEPER_LABEL_MAX];

        recovery_page_label(label, instance, part);
        return keeper_put(instance->manager->keeper, label, part->page.fd);
}

int recovery_put_pages(struct instance *instance)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = put_page(instance, &instance->part[i]);
        return r;
}

void recovery_drop_pages(struct instance *instance)
{
        char label[KEEPER_LABEL_MAX];

        for (size_t i = 0; i < instance->n_parts; i++) {
                recovery_page_label(label, instance, &instance->part[i]);
                (void)keeper_drop(instance->manager->keeper, label);
        }
}

static int get_page(struct instance *instance, struct instance_part *part)
{
        struct page *page = &part->page;
        char label[KEEPER_LABEL_MAX];
        int fd, r;

        recovery_page_label(label, instance, part);
        fd = keeper_find(instance->manager->keeper, label);
        if (fd >= 0) {
                r = page_adopt(page, fd, instance->frame_buffer);
                if (r != -EPROTO)
                        return r;
        }
        r = page_create(page, instance->frame_buffer);
        return r < 0 ? r : put_page(instance, part);
}

int recovery_get_pages(struct instance *instance)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = get_page(instance, &instance->part[i]);
        return r;
}

/* Processes and memory. */

static int put_process(const struct guest *guest)
{
        struct store_process process = {
                .instance = guest->instance->id,
                .pid = guest->pid,
                .start_time = guest->start_time,
                .slot = guest->slot,
                .context = guest->context.state | (guest_is_away(guest) ? RECOVERY_ABSENT : 0),
        };

        place_format(&guest->context.place, process.context_device);
        place_format(&guest->context.target, process.context_target);
        return store_put_process(guest->instance->manager->store, &process);
}

void recovery_note_stored(struct guest *guest)
{
        guest->context.stored.state = guest->context.state;
        guest->context.stored.place = guest->context.place;
        guest->context.stored.target = guest->context.target;
}

int recovery_store_process(struct guest *guest)
{
        int r = put_process(guest);

        if (r == 0)
                recovery_note_stored(guest);
        return r;
}

int recovery_store_memory(const struct guest *guest)
{
        CLEANUP(freep)
        struct store_allocation *allocations = calloc(guest->n_memory + 1, sizeof(*allocations));
        CLEANUP(freep) struct store_extent *extents = NULL;
        const struct pool_extent *reserved = NULL;
        size_t n_extents = 0;

        if (guest->reservation)
                reserved = pool_get_extents(guest->reservation, &n_extents);
        extents = calloc(n_extents + 1, sizeof(*extents));
        if (!allocations || !extents)
                return -ENOMEM;
        if (!guest->reservation && guest->spilled) {
                extents[0] = (struct store_extent){ .slab = SPILLED_SLAB,
                                                    .offset = guest->spilled->begin,
                                                    .length = guest->spilled->bytes,
                                                    .generation = guest->spilled->generation };
                n_extents = 1;
        }

        for (size_t i = 0; i < guest->n_memory; i++)
                allocations[i] =
                        (struct store_allocation){ guest->memory[i].address, guest->memory[i].size,
                                                   guest->memory[i].part };
        for (size_t i = 0; reserved && i < n_extents; i++)
                extents[i] = (struct store_extent){ reserved[i].slab, reserved[i].offset,
                                                    reserved[i].length,
                                                    pool_get_generation(guest->reservation) };
        return store_put_memory(
                guest->instance->manager->store, guest->instance->id, guest->pid,
                &(struct store_memory){ allocations, guest->n_memory, extents, n_extents });
}

static int exported_fd(const struct guest *guest, const struct guest_memory *memory)
{
        (void)guest;
        return memory->source;
}

static bool has_exported(const struct guest_memory *memory)
{
        return memory->source >= 0;
}

static bool has_parked(const struct guest_memory *memory)
{
        return memory->is_parked;
}

/* Any slab of the reservation: it is the label that says what is to be known. */
static int parked_fd(const struct guest *guest, const struct guest_memory *memory)
{
        const struct pool_extent *extents;
        size_t n = 0;

        (void)memory;
        if (!guest->reservation)
                return -1;
        extents = pool_get_extents(guest->reservation, &n);
        return n > 0 ? pool_get_slab(guest->instance->manager->pool, extents[0].slab) : -1;
}

/* Parked memory whose reservation could not be adopted has a label, which is dropped, and no descriptor. */
static const struct kind {
        const char *prefix;
        bool (*has)(const struct guest_memory *memory);
        int (*fd)(const struct guest *guest, const struct guest_memory *memory);
} exported = { RECOVERY_MEMORY, has_exported, exported_fd },
  parked = { RECOVERY_PARKED, has_parked, parked_fd };

/* Shows what the guest has of a kind to @tell, as many at once as the keeper takes. */
static int tell_memory(struct guest *guest, const struct kind *kind, size_t first, size_t n_memory,
                       int (*tell)(struct keeper *, const struct keeper_item *, size_t))
{
        struct keeper_item items[KEEPER_BATCH_MAX];
        char labels[KEEPER_BATCH_MAX][KEEPER_LABEL_MAX];
        size_t n = 0;
        int r = 0;

        for (size_t i = first; r == 0 && i < first + n_memory; i++) {
                if (kind->has(&guest->memory[i])) {
                        recovery_memory_label(labels[n], kind->prefix, guest, &guest->memory[i]);
                        items[n] = (struct keeper_item){ labels[n],
                                                         kind->fd(guest, &guest->memory[i]) };
                        n++;
                }
                if (n < KEEPER_BATCH_MAX && i + 1 < first + n_memory)
                        continue;
                r = tell(guest->instance->manager->keeper, items, n);
                n = 0;
        }
        return r;
}

int recovery_put_memory(struct guest *guest)
{
        int r = tell_memory(guest, &exported, 0, guest->n_memory, keeper_put_batch);

        return r < 0 ? r : recovery_store_memory(guest);
}

void recovery_drop_memory(struct guest *guest)
{
        recovery_drop_part(guest, 0, guest->n_memory);
}

void recovery_drop_part(struct guest *guest, size_t first, size_t n)
{
        (void)tell_memory(guest, &exported, first, n, keeper_drop_batch);
        (void)tell_memory(guest, &parked, first, n, keeper_drop_batch);
}

void recovery_drop_sources(struct guest *guest)
{
        recovery_drop_memory(guest);
        for (size_t i = 0; i < guest->n_memory; i++) {
                guest_close_source(guest, &guest->memory[i]);
                guest->memory[i].is_parked = false;
        }
}

int recovery_put_parked(struct guest *guest, size_t first, size_t n)
{
        int r;

        for (size_t i = first; i < first + n; i++)
                guest->memory[i].is_parked = true;
        r = tell_memory(guest, &parked, first, n, keeper_put_batch);
        (void)tell_memory(guest, r == 0 ? &exported : &parked, first, n, keeper_drop_batch);
        for (size_t i = first; i < first + n; i++)
                guest->memory[i].is_parked = r == 0;
        return r;
}

/* The whole of an instance, when nothing goes on with it. */

int recovery_put_state(const struct instance *instance, uint32_t state, const struct place *place)
{
        struct store *store = instance->manager->store;
        int r = store_set_instance(store, instance->id, state, place->device[0]->uuid);

        for (size_t i = 1; r == 0 && i < instance->n_parts; i++)
                r = store_set_part(store, instance->part[i].id, place->device[i]->uuid);
        return r;
}

static int put_settled(struct instance *instance)
{
        const struct place place = instance_place(instance);
        const struct store_memory nothing = { 0 };
        struct store *store = instance->manager->store;
        const struct guest *guest;
        int r = recovery_put_state(instance, instance->state, &place);

        if (r == 0)
                r = store_remove_operation(store, instance->id);
        list_for_each(guest, &instance->guests, link) {
                if (r < 0 || guest_is_dead(guest) || guest->slot == UINT32_MAX)
                        continue;
                r = put_process(guest);
                if (r == 0 && !instance_is_off(instance) && !guest_is_away(guest))
                        r = store_put_memory(store, instance->id, guest->pid, &nothing);
        }
        return r;
}

/* On the device it needs nothing of this; and nobody looks for it any more. */
static void let_memory_go(struct guest *guest)
{
        recovery_drop_memory(guest);
        guest_forget_memory(guest);
        guest->is_remembered = false;
        clean_copy_put_back_unlisted(guest);
}

int recovery_store_instance(struct instance *instance)
{
        struct store *store = instance->manager->store;
        struct guest *guest;
        int r = store_begin(store);

        if (r == 0)
                r = put_settled(instance);
        if (r == 0)
                r = store_commit(store);
        if (r < 0) {
                store_rollback(store);
                return r;
        }
        list_for_each(guest, &instance->guests, link) {
                recovery_note_stored(guest);
                if (!instance_is_off(instance) && !guest_is_away(guest))
                        let_memory_go(guest);
        }
        recovery_sync_slabs(instance->manager);
        return 0;
}

static void plan_label(char label[KEEPER_LABEL_MAX], const char *prefix, const struct guest *guest)
{
        snprintf(label, KEEPER_LABEL_MAX, "%s%s/%d", prefix, guest->instance->uuid,
                 (int)guest->pid);
}

struct plan_labels {
        char process[KEEPER_LABEL_MAX], plan[KEEPER_LABEL_MAX];
};

static void make_plan_labels(struct plan_labels *labels, const struct guest *guest)
{
        plan_label(labels->process, KEEPER_PROCESS, guest);
        plan_label(labels->plan, KEEPER_PLAN, guest);
}

int recovery_put_plan(const struct guest *guest, int plan, int process)
{
        struct plan_labels labels;
        const struct keeper_item items[] = { { labels.process, process }, { labels.plan, plan } };

        make_plan_labels(&labels, guest);
        return keeper_put_batch(guest->instance->manager->keeper, items, 2);
}

void recovery_drop_plan(const struct guest *guest)
{
        struct plan_labels labels;
        const struct keeper_item items[] = { { labels.process, -1 }, { labels.plan, -1 } };

        make_plan_labels(&labels, guest);
        (void)keeper_drop_batch(guest->instance->manager->keeper, items, 2);
}

int recovery_put_slabs(struct guest *guest)
{
        struct manager *manager = guest->instance->manager;
        const struct pool_extent *extents;
        char label[KEEPER_LABEL_MAX];
        size_t n;
        int r = 0;

        extents = pool_get_extents(guest->reservation, &n);
        for (size_t i = 0; r == 0 && i < n; i++) {
                slab_label(label, extents[i].slab);
                if (keeper_find(manager->keeper, label) < 0)
                        r = keeper_put(manager->keeper, label,
                                       pool_get_slab(manager->pool, extents[i].slab));
        }
        return r;
}

/* Dropping what nobody needs. */

static int drop_idle_slab(const char *label, int fd, void *userdata)
{
        struct manager *manager = userdata;

        (void)fd;
        if (!pool_is_in_use(manager->pool,
                            (uint32_t)strtoul(label + strlen(RECOVERY_SLAB), NULL, 10)))
                (void)keeper_drop(manager->keeper, label);
        return 0;
}

void recovery_sync_slabs(struct manager *manager)
{
        (void)keeper_list(manager->keeper, RECOVERY_SLAB, drop_idle_slab, manager);
}
