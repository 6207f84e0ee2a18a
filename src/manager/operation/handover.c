/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/handover.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/log.h"
#include "manager/model/ceiling.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise.h"
#include "manager/model/recovery.h"
#include "manager/model/spill-use.h"
#include "manager/operation/operation.h"

/* Who leaves. */

/* What is copied must be all that there is: nothing of it stands elsewhere yet. */
bool handover_may(const struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;

        return operation->request.hands_over && operation->kind->number == OPERATION_SUSPEND &&
               !operation->is_undoing && clean_copy_is_whole(guest) &&
               pool_is_lone(guest->instance->manager->pool, guest->reservation);
}

static uint64_t sum_parked(const struct guest *guest)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < guest->n_memory; i++)
                if (guest->memory[i].is_parked)
                        sum += guest->memory[i].size;
        return sum;
}

static uint64_t sum_sizes(const struct guest *guest, size_t first, size_t n)
{
        uint64_t sum = 0;

        for (size_t i = first; i < first + n; i++)
                sum += guest->memory[i].size;
        return sum;
}

/* The room first: nobody shall take what is about to be free. */
static void promise(struct guest *guest, uint64_t bytes)
{
        struct device *device = guest->instance->operation->source.device[0];
        bool was_promised = guest->room[0].handed.room != NULL;

        room_promise(&device->room, &guest->room[0].handed, bytes);
        if (!was_promised)
                ceiling_look(device);
}

/* The slabs say from now on whose memory they have: that is asked before anything is copied back. */
static int note(struct guest *guest, size_t first, size_t n)
{
        int r = 0;

        if (first == 0)
                r = pool_stamp(guest->instance->manager->pool, guest->reservation, guest->pid,
                               guest->start_time);
        return r < 0 ? r : recovery_put_parked(guest, first, n);
}

/* Who comes takes it as it is, if it can: the driver need not clear it then, and make it anew. */
static void let_go(struct guest *guest, size_t first, size_t n)
{
        const struct operation *operation = guest->instance->operation;
        struct operation *early = handover_find_early(operation->source.device[0]);
        uint64_t given = 0;

        for (size_t i = first; i < first + n; i++) {
                if (early && early->taker && early->taker->take(early, guest, &guest->memory[i]))
                        given += guest->memory[i].size;
                else
                        guest_close_source(guest, &guest->memory[i]);
        }
        if (given == 0)
                return;
        log_event_of(guest->payer, LOG_LEVEL_DEBUG, "memory is given",
                     "vgpu=%s pid=%d to=%s bytes=%" PRIu64, operation->instance->name,
                     (int)guest->pid, early->instance->name, given);
        early->taker->go_on(early);
}

bool handover_pass(struct guest *guest, size_t first, size_t n)
{
        struct operation *operation = guest->instance->operation;
        uint64_t before = sum_parked(guest);
        int r;

        promise(guest, before + sum_sizes(guest, first, n));
        r = note(guest, first, n);
        if (r == 0) {
                let_go(guest, first, n);
                operation_pass(operation, "handed");
                return true;
        }
        log_event_of(guest->payer, LOG_LEVEL_WARNING, "memory is not handed over early",
                     "vgpu=%s pid=%d error=\"%s\"", operation->instance->name, (int)guest->pid,
                     strerror(-r));
        promise(guest, before);
        return false;
}

size_t handover_count(const struct guest *guest)
{
        size_t n = 0;

        while (n < guest->n_memory && guest->memory[n].is_parked)
                n++;
        return n;
}

bool handover_has_parked(const struct guest *guest)
{
        return sum_parked(guest) > 0;
}

static uint64_t sum_parked_of(const struct guest *guest, size_t part)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < guest->n_memory; i++)
                if (guest->memory[i].is_parked && guest->memory[i].part == part)
                        sum += guest->memory[i].size;
        return sum;
}

void handover_expect_guest_back(const struct operation *operation, struct guest *guest)
{
        const struct instance *instance = guest->instance;
        const struct place *source = &operation->source;

        for (size_t i = 0; i < instance->n_parts; i++) {
                struct room_promise *promise = &guest->room[i].handed;
                uint64_t bytes = sum_parked_of(guest, i);
                bool was_promised = promise->room != NULL;

                room_forget(promise);
                if (bytes > 0)
                        room_promise(&source->device[i]->room, promise, bytes);
                if (was_promised != (bytes > 0))
                        ceiling_look(source->device[i]);
        }
}

bool handover_is_valid(const struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;

        if (!operation || !operation->is_undoing || guest_is_dead(guest) ||
            operation->kind->number == OPERATION_RESUME)
                return true;
        for (size_t i = 0; i < guest->instance->n_parts; i++) {
                const struct room_promise *promise = &guest->room[i].handed;
                uint64_t bytes = sum_parked_of(guest, i);

                if (bytes > 0 && (!room_is_to(promise, &operation->source.device[i]->room) ||
                                  promise->bytes < bytes))
                        return false;
        }
        return true;
}

void handover_expect_back(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                handover_expect_guest_back(operation, guest);
}

void handover_end(struct operation *operation)
{
        struct guest *guest;

        list_for_each(guest, &operation->instance->guests, link)
                for (size_t i = 0; i < operation->instance->n_parts; i++)
                        room_forget(&guest->room[i].handed);
}

bool handover_has_passed(const struct operation *operation)
{
        const struct guest *guest;

        list_for_each(guest, &operation->instance->guests, link)
                if (!guest_is_dead(guest) && sum_parked(guest) > 0)
                        return true;
        return false;
}

/* Who comes. */

/* Until its end is recorded it may still need the room. */
static bool is_giving(const struct operation *operation, const struct device *device)
{
        return operation && operation->request.hands_over && !operation->is_undoing &&
               operation->source.device[0] == device &&
               operation->step <= operation_find_step(operation->kind, OPERATION_RECORDS);
}

uint64_t handover_get_lent(const struct device *device)
{
        const struct instance *instance;
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(instance, &device->manager->instances, link) {
                if (!is_giving(instance->operation, device))
                        continue;
                list_for_each(guest, &instance->guests, link)
                        if (room_is_to(&guest->room[0].handed, &device->room))
                                sum += guest->room[0].handed.bytes;
        }
        return sum;
}

/* Also one that is recorded and has not dropped all yet. */
bool handover_is_under_way(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (instance->operation && instance->operation->request.hands_over &&
                    !instance->operation->is_undoing &&
                    instance->operation->source.device[0] == device)
                        return true;
        return false;
}

bool handover_is_ahead(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (is_giving(instance->operation, device) &&
                    !handover_has_passed(instance->operation))
                        return true;
        return false;
}

struct operation *handover_find_early(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (instance->operation && instance->operation->request.is_early &&
                    instance->operation->target.device[0] == device)
                        return instance->operation;
        return NULL;
}

/* Does it stand still, so that its first part is free in a moment? */
static bool is_about_to_pass(const struct operation *operation)
{
        const struct guest *guest;

        if (operation->measured.drained_ns == 0 ||
            operation->step > operation_find_step(operation->kind, OPERATION_COPIES))
                return false;
        list_for_each(guest, &operation->instance->guests, link)
                if (!guest_is_dead(guest) && guest->reservation && handover_may(guest))
                        return true;
        return false;
}

/* Whoever leaves would wait for the disk, too. */
static bool is_on_disk(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (guest->spilled && !guest->spilled->ahead)
                        return true;
        return false;
}

bool handover_may_begin(const struct instance *instance)
{
        const struct device *device = instance_home(instance);
        bool has_context = instance->state == STATE_EVICTED, has_any = false;
        const struct instance *other;

        if (instance->n_parts > 1 || !promise_is_overcommitted(device))
                return false;
        list_for_each(other, &device->manager->instances, link) {
                const struct operation *operation = other->operation;

                if (!operation || !place_has(&operation->source, device) ||
                    operation->kind->number != OPERATION_SUSPEND)
                        continue;
                if (!is_giving(operation, device))
                        return false;
                if (!handover_has_passed(operation) &&
                    !(has_context && is_about_to_pass(operation)))
                        return false;
                has_any = true;
        }
        return has_any && !is_on_disk(instance) && !handover_find_early(device);
}

/* Waiting. */

/* What it has taken, those need who gave it, and it has the whole of it still in the pool. */
static bool is_to_let_go(const struct operation *other, const struct device *device)
{
        return other && other->kind->number == OPERATION_RESUME &&
               place_has(&other->target, device) && (other->request.is_early || other->is_recovery);
}

static bool waits_for_room(const struct operation *operation)
{
        const struct instance *instance;

        list_for_each(instance, &operation->source.device[0]->manager->instances, link)
                if (instance->operation != operation &&
                    is_to_let_go(instance->operation, operation->source.device[0]))
                        return true;
        return false;
}

static bool waits_for_givers(const struct operation *operation)
{
        const struct instance *instance;

        list_for_each(instance, &operation->target.device[0]->manager->instances, link)
                if (is_giving(instance->operation, operation->target.device[0]) &&
                    handover_has_passed(instance->operation))
                        return true;
        return false;
}

bool handover_must_wait(const struct operation *operation)
{
        if (operation->phase == OPERATION_RUNS || operation->step >= operation->kind->n_steps)
                return false;
        if (operation->is_undoing)
                return operation->kind->number == OPERATION_SUSPEND &&
                       handover_has_passed(operation) && waits_for_room(operation);
        return operation->request.is_early &&
               (operation->kind->steps[operation->step].flags & OPERATION_RECORDS) &&
               waits_for_givers(operation);
}
