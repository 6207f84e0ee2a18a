/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/guest.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"

struct guest *guest_find(struct instance *instance, pid_t pid)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->pid == pid && !guest_is_dead(guest))
                        return guest;
        return NULL;
}

bool guest_is_any(struct manager *manager, pid_t pid)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (guest_find(instance, pid))
                        return true;
        return false;
}

#define BIT(state) (1u << GUEST_##state)

static const uint32_t lives[] = {
        [GUEST_ALIVE] = BIT(LEAVING),
        [GUEST_LEAVING] = BIT(DEAD),
        [GUEST_DEAD] = BIT(BURIED),
        [GUEST_BURIED] = 0,
};

void guest_set_life(struct guest *guest, enum guest_life life)
{
        assert(lives[guest->life] & 1u << life);
        guest->life = life;
}

static const uint32_t presences[] = {
        [GUEST_PRESENT] = BIT(PRESENT) | BIT(JOINING) | BIT(ABSENT),
        [GUEST_JOINING] = BIT(PRESENT),
        [GUEST_ABSENT] = BIT(PRESENT) | BIT(RETURNING),
        [GUEST_RETURNING] = BIT(PRESENT) | BIT(ABSENT),
};

void guest_set_presence(struct guest *guest, enum guest_presence presence)
{
        assert(presences[guest->presence] & 1u << presence);
        guest->presence = presence;
}

bool guest_is_away(const struct guest *guest)
{
        return guest->presence == GUEST_ABSENT || guest->presence == GUEST_RETURNING;
}

bool guest_wants_device(const struct guest *guest)
{
        return !guest_is_dead(guest) &&
               ((guest->presence == GUEST_JOINING && guest->gate) || guest->residency.is_wanting);
}

bool guest_is_replaced(const struct guest *guest)
{
        uint64_t program;

        return guest->program != 0 && process_get_program(guest->pid, &program) == 0 &&
               program != guest->program;
}

/* The connection of a gate ends with its image. */
bool guest_has_ended(const struct guest *guest)
{
        struct pollfd end = { .fd = guest->pidfd, .events = POLLIN };

        return poll(&end, 1, 0) > 0 || (!guest->gate && guest_is_replaced(guest));
}

bool guest_is_elsewhere(const struct instance *here, pid_t pid)
{
        struct instance *instance;
        const struct guest *guest;

        list_for_each(instance, &here->manager->instances, link) {
                guest = instance == here ? NULL : guest_find(instance, pid);
                if (guest && !guest_has_ended(guest))
                        return true;
        }
        return false;
}

size_t guests_count(const struct instance *instance)
{
        const struct guest *guest;
        size_t n = 0;

        list_for_each(guest, &instance->guests, link)
                n += !guest_is_dead(guest);
        return n;
}

void guest_get_use_of(const struct guest *guest, const struct instance_part *part,
                      struct page_use *ret_use)
{
        *ret_use = (struct page_use){ 0 };
        if (guest->slot != UINT32_MAX)
                page_read(&part->page, guest->slot, guest->instance->frame_buffer, ret_use);
}

uint64_t guest_count_refusals(const struct guest *guest)
{
        struct page_use use;
        uint64_t n = 0;

        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                guest_get_use_of(guest, &guest->instance->part[i], &use);
                n += use.refused;
        }
        return n;
}

void guest_look_at_refusals(struct guest *guest)
{
        uint64_t n = guest_count_refusals(guest);

        if (n == 0 || n / 2 < guest->n_refused_told)
                return;
        guest->n_refused_told = n;
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_OVER_QUOTA);
}

void guest_get_use(const struct guest *guest, struct page_use *ret_use)
{
        const struct instance *instance = guest->instance;

        guest_get_use_of(guest, &instance->part[0], ret_use);
        for (size_t i = 1; i < instance->n_parts; i++) {
                struct page_use use;

                guest_get_use_of(guest, &instance->part[i], &use);
                ret_use->movable += use.movable;
                ret_use->fixed += use.fixed;
                ret_use->peak += use.peak;
                ret_use->launches += use.launches;
                ret_use->holds |= use.holds;
        }
}

uint64_t guests_get_used_of(const struct instance *instance, const struct instance_part *part)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link) {
                struct page_use use;

                if (guest_is_dead(guest))
                        continue;
                guest_get_use_of(guest, part, &use);
                sum += use.movable + use.fixed;
        }
        return sum < instance->frame_buffer ? sum : instance->frame_buffer; /* they may lie */
}

uint64_t guests_get_used(const struct instance *instance)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < instance->n_parts; i++)
                sum += guests_get_used_of(instance, &instance->part[i]);
        return sum;
}

uint32_t guests_count_whole(const struct instance *instance, enum instance_page_whole whole)
{
        const struct guest *guest;
        struct page_use use;
        uint32_t n = 0;

        list_for_each(guest, &instance->guests, link) {
                if (guest_is_dead(guest))
                        continue;
                guest_get_use_of(guest, &instance->part[0], &use);
                n += whole == INSTANCE_PAGE_UNWHOLE ? instance_page_is_unwhole(use.whole)
                                                    : use.whole == (uint32_t)whole;
        }
        return n;
}

const char *guests_find_container(const struct instance *instance)
{
        const char *container = NULL;
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link) {
                if (container && strcmp(container, guest->container) != 0)
                        return "";
                container = guest->container;
        }
        return container ? container : "";
}

/* Memory. */

uint64_t guest_sum_memory(const struct guest *guest, size_t part)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < guest->n_memory; i++)
                if (guest->memory[i].part == part)
                        sum += guest->memory[i].size;
        return sum;
}

size_t guest_find_memory(const struct guest *guest, uint64_t address)
{
        size_t low = 0, high = guest->n_memory;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (guest->memory[middle].address < address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

bool guest_lacks_sources(const struct guest *guest)
{
        for (size_t i = 0; i < guest->n_memory; i++)
                if (guest->memory[i].source < 0)
                        return true;
        return false;
}

/* The keeper's table has a duplicate of each that was exported. */
#define SOURCE_COST 2
#define TARGET_COST 1

static int charge_memory(struct guest *guest, uint64_t n, struct failure *failure)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = n } };

        return account_take(guest->instance->manager->accounts, &guest->memory_charge, guest->payer,
                            &cost, failure);
}

int guest_charge_source(struct guest *guest, struct failure *failure)
{
        return charge_memory(guest, SOURCE_COST, failure);
}

/* An undo brings back what its user had, a part at a time: that is not refused. */
int guest_charge_target(struct guest *guest, struct failure *failure)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = TARGET_COST } };

        if (!guest->instance->course.is_undoing)
                return charge_memory(guest, TARGET_COST, failure);
        return account_force(guest->instance->manager->accounts, &guest->memory_charge,
                             guest->payer, &cost);
}

int guest_take_source(struct guest *guest, struct guest_memory *memory)
{
        account_give(&guest->memory_charge, ACCOUNT_DESCRIPTORS, SOURCE_COST);
        return TAKE_FD(memory->source);
}

void guest_close_source(struct guest *guest, struct guest_memory *memory)
{
        if (memory->source >= 0)
                fd_close(guest_take_source(guest, memory));
}

void guest_close_target(struct guest *guest, struct guest_memory *memory)
{
        if (memory->target < 0)
                return;
        memory->target = fd_close(memory->target);
        memory->gift = GUEST_GIFT_NONE;
        account_give(&guest->memory_charge, ACCOUNT_DESCRIPTORS, TARGET_COST);
}

bool guest_is_valid(const struct guest *guest)
{
        return (!guest->participant || guest->instance->operation) &&
               context_is_valid(&guest->context);
}

void guest_forget_memory(struct guest *guest)
{
        for (size_t i = 0; i < guest->n_memory; i++) {
                guest_close_source(guest, &guest->memory[i]);
                guest_close_target(guest, &guest->memory[i]);
        }
        free(guest->memory);
        guest->memory = NULL;
        guest->n_memory = 0;
        guest->memory_bytes = 0;
}
