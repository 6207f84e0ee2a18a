/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets the room of devices: what comes out of the policy is done. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/size.h"
#include "daemon/log.h"
#include "manager/model/backlog.h"
#include "manager/model/ceiling.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/promise.h"
#include "manager/model/residency-view.h"
#include "manager/model/way-back.h"
#include "manager/operation/admission.h"
#include "manager/operation/handover.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "manager/residency/residency-internal.h"
#include "scheduler/stay.h"

/* Coming back may take as long as a resume by hand. */
#define COME_TIMEOUT_MS 10000

/* So long the driver may need until it says that memory is free which was given back. */
#define LATE_NS (NS_PER_S / 2)

/* So long it must be that all others together are not enough. */
#define DENY_NS (NS_PER_S / 2)

/* What an attempt needs more after one that had not enough, and the most of it; beyond the first, no more than the quota. */
#define EXTRA_FIRST (16 * MIB)
#define EXTRA_PART  8 /* of the device */

struct player {
        struct stay stay;
        struct instance *instance;
};

/* What is decided together. */
struct round {
        struct residency *residency;
        uint64_t group;      /* devices */
        const int64_t *free; /* of each */
        uint64_t now;
        struct player *players;
        size_t n;
};

static void find_players(struct round *round, struct stay **stays)
{
        const struct residency *residency = round->residency;
        struct instance *instance;

        round->n = 0;
        list_for_each(instance, &residency->manager->instances, link) {
                if (!(residency_get_devices(instance) & round->group) ||
                    !residency_is_played(instance))
                        continue;
                if (!instance->operation && !instance_is_off(instance))
                        residency_look_at_work(instance, round->now);
                round->players[round->n] =
                        (struct player){ residency_get_stay(instance), instance };
                stays[round->n] = &round->players[round->n].stay;
                round->n++;
        }
}

/* What comes out. */

static void hold(struct instance *instance, size_t part, uint64_t bytes)
{
        struct device *device = instance->part[part].device;
        struct room_promise *promise = &instance->part[part].residency.promise;

        if (!promise_is_overcommitted(device))
                return;
        if (room_is_to(promise, &device->room) && promise->bytes == bytes)
                return;
        room_promise(&device->room, promise, bytes);
        ceiling_look(device);
}

static void let_go(struct instance *instance, size_t part)
{
        struct room_promise *promise = &instance->part[part].residency.promise;

        if (!promise->room)
                return;
        room_forget(promise);
        ceiling_look(instance->part[part].device);
}

void residency_forget_promises(struct instance *instance)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                room_forget(&instance->part[i].residency.promise);
}

static void come(struct instance *instance, bool is_early)
{
        const struct operation_request request = { .timeout_ms = COME_TIMEOUT_MS,
                                                   .is_by_itself = true,
                                                   .is_early = is_early };
        struct residency_instance *mine = &instance->residency;
        uint64_t waited_ns = clock_now(CLOCK_MONOTONIC) - mine->wanted_ns;
        struct failure failure = { 0 };
        int r;

        log_event_of(instance->owner, LOG_LEVEL_INFO, "comes in by demand", "vgpu=%s waited=%.3f",
                     instance->name, (double)waited_ns / NS_PER_S);
        residency_forget_promises(
                instance); /* the operation makes its own, before anybody can take it */
        r = operation_start(instance, &operation_resume, &request, &failure);
        mine->is_coming = r == 0;
        if (r == 0)
                return;
        (void)failure_from_errno(&failure, r, "coming in");
        residency_fail(instance, false, failure.message);
}

/* An undo that goes on asks the driver again by itself. */
static void go_back(struct instance *instance)
{
        if (instance->operation)
                return;
        log_event_of(instance->owner, LOG_LEVEL_INFO, "goes back: there is room", "vgpu=%s",
                     instance->name);
        residency_forget_promises(
                instance); /* the operation makes its own, before anybody can take it */
        backlog_retry(instance);
        instance->residency.is_coming = instance->operation != NULL;
        if (!instance->operation)
                residency_fail(instance, false, "the undoing of its operation cannot begin");
        for (size_t i = 0; i < instance->n_parts; i++)
                ceiling_look(instance->part[i].device);
}

/* What it was let have before, if it was, has not been enough. */
static void take_turn(struct instance *instance)
{
        struct residency_instance *mine = &instance->residency;

        if (mine->is_coming)
                residency_note_lack(instance, instance->operation->admission.part);
        mine->is_coming = true;
        residency_forget_promises(
                instance); /* the operation makes its own, before anybody can take it */
        admission_take_turn(instance->operation);
}

/* What is promised to many that ask and take nothing is held back from all others: small quotas may have little of it. */
static uint64_t get_most_extra(const struct instance *instance, const struct device *device)
{
        uint64_t most = device->memory_total / EXTRA_PART;
        uint64_t own = instance->frame_buffer > EXTRA_FIRST ? instance->frame_buffer : EXTRA_FIRST;

        return most < own ? most : own;
}

/* If what there is has not been enough for its allocation, it needs more the next time. */
static void answer(struct instance *instance, size_t number, const char *denial)
{
        struct instance_part *part = &instance->part[number];
        struct residency_part *mine = &part->residency;
        uint64_t most = get_most_extra(instance, part->device);

        if (denial)
                log_event_of_program(
                        &(struct log_program){ instance->owner, instance->id, instance->name },
                        LOG_LEVEL_NOTICE, "an allocation is refused",
                        "vgpu=%s device=%u reason=\"%s\"", instance->name, part->device->index,
                        denial);
        mine->extra = mine->extra ? 2 * mine->extra : EXTRA_FIRST;
        if (mine->extra > most)
                mine->extra = most;
        instance->residency.sums.waited_ns += clock_now(CLOCK_MONOTONIC) - mine->asks_ns;
        mine->asks_ns = mine->stuck_ns = 0;
        mine->answered_ns = clock_now(CLOCK_MONOTONIC);
        page_answer(&part->page, denial != NULL);
}

/* What is missing there for it when all the others have left; without those that cannot, if they do not @count. */
static int64_t get_lack(const struct round *round, const struct player *player, size_t part,
                        bool count_held)
{
        uint32_t device = player->stay.part[part].device;
        int64_t lack = (int64_t)player->stay.part[part].needs - round->free[device];

        for (size_t i = 0; i < round->n; i++) {
                const struct stay *other = &round->players[i].stay;

                if (other == &player->stay || other->place == STAY_AWAY ||
                    (!count_held && other->is_held))
                        continue;
                for (size_t k = 0; k <= other->n_more; k++)
                        if (other->part[k].device == device)
                                lack -= (int64_t)other->part[k].bytes;
        }
        return lack;
}

static bool has_coming(const struct round *round, const struct device *device)
{
        for (size_t i = 0; i < round->n; i++)
                if (round->players[i].stay.place == STAY_COMING &&
                    instance_is_on(round->players[i].instance, device))
                        return true;
        return false;
}

/* A process of it did not go along, and has its memory until it runs again, or ends. */
static bool has_failed_there(const struct instance *instance, const struct device *device)
{
        return instance->state == STATE_FAILED && !list_is_empty(&instance->guests) &&
               instance_is_on(instance, device);
}

/* Also one that the policy does not look at: a command is busy with it, or it has failed. */
static bool has_others_busy(const struct device *device)
{
        const struct instance *other;

        list_for_each(other, &device->manager->instances, link)
                if ((other->operation && operation_is_at(other->operation, device) &&
                     !(residency_is_played(other) && instance_is_on(other, device))) ||
                    has_failed_there(other, device))
                        return true;
        return false;
}

/* Not at once: what has been given back may not be free yet. */
static bool is_stuck_for_long(struct instance_part *part, bool is_in_vain, uint64_t now)
{
        struct residency_part *mine = &part->residency;

        if (!is_in_vain || has_others_busy(part->device))
                mine->stuck_ns = 0;
        else if (mine->stuck_ns == 0)
                mine->stuck_ns = now;
        return mine->stuck_ns && now - mine->stuck_ns >= DENY_NS;
}

/* If it would be too much without all the others, whatever they hold, waiting is in vain. */
static void deny(const struct round *round, const struct player *player, size_t part)
{
        struct instance_part *of = &player->instance->part[part];
        bool is_in_vain = !has_coming(round, of->device) && get_lack(round, player, part, true) > 0;

        if (is_stuck_for_long(of, is_in_vain, round->now))
                answer(player->instance, part,
                       "the device has not as much even without the others");
}

/* The first of its parts with that verdict. */
static size_t find_part(const struct player *player, enum stay_verdict verdict)
{
        size_t part = 0;

        while (part < player->stay.n_more && player->stay.part[part].verdict != verdict)
                part++;
        return part;
}

static void hold_all(const struct player *player)
{
        for (size_t i = 0; i <= player->stay.n_more; i++)
                hold(player->instance, i, player->stay.part[i].needs);
}

static void let_go_all(struct instance *instance)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                let_go(instance, i);
}

/* It is told how much there is, and how much it takes. What has failed on that device itself knows that better. */
static void end_turn(const struct round *round, const struct player *player, size_t part)
{
        struct operation *operation = player->instance->operation;
        const struct stay_part *of = &player->stay.part[part];
        uint64_t free = round->residency->look[of->device].memory_free;
        int64_t left = round->free[of->device] > 0 ? round->free[of->device] : 0;

        if (operation->admission.part != part)
                admission_note_lack(operation, part, free,
                                    free > (uint64_t)left ? free - (uint64_t)left : 0, of->needs);
        admission_give_up(operation);
}

/* One that is stopped leaves when it runs again, so waiting for that is not in vain. */
static bool may_run_again(const struct round *round, const struct device *device)
{
        for (size_t i = 0; i < round->n; i++)
                if (round->players[i].instance->residency.is_stopped &&
                    instance_is_on(round->players[i].instance, device))
                        return true;
        return false;
}

/* One that cannot come even some day. */
static void stay_away(const struct round *round, const struct player *player)
{
        struct instance *instance = player->instance;
        size_t part = find_part(player, STAY_STUCK);
        bool is_in_vain = !may_run_again(round, instance->part[part].device);

        let_go_all(instance);
        residency_note_stuck(instance, part, get_lack(round, player, part, false));
        if (residency_awaits_turn(instance) &&
            is_stuck_for_long(&instance->part[part], is_in_vain, round->now))
                end_turn(round, player, part);
}

static void carry_out_return(const struct round *round, const struct player *player)
{
        struct instance *instance = player->instance;

        switch (player->stay.verdict) {
        case STAY_COMES:
                if (residency_awaits_turn(instance))
                        take_turn(instance);
                else if (way_back_lacks_room(instance))
                        go_back(instance);
                else
                        come(instance, false);
                break;
        case STAY_HELD:
                hold_all(player);
                if (instance_is_off(instance) && handover_may_begin(instance))
                        come(instance, true);
                break;
        case STAY_LATER:
                let_go_all(instance);
                residency_note_later(instance, find_part(player, STAY_LATER));
                break;
        case STAY_STUCK:
                stay_away(round, player);
                break;
        case STAY_NOTHING:
                break;
        }
}

/* Of an allocation on one of its devices. */
static void carry_out_growth(const struct round *round, const struct player *player, size_t part)
{
        struct instance *instance = player->instance;

        switch (player->stay.part[part].verdict) {
        case STAY_COMES:
                hold(instance, part, player->stay.part[part].needs);
                answer(instance, part, NULL);
                break;
        case STAY_HELD:
                hold(instance, part, player->stay.part[part].needs);
                break;
        case STAY_LATER:
                let_go(instance, part);
                residency_note_later(instance, part);
                break;
        case STAY_STUCK:
                let_go(instance, part);
                residency_note_stuck(instance, part, get_lack(round, player, part, false));
                deny(round, player, part);
                break;
        case STAY_NOTHING:
                break;
        }
}

static void carry_out(const struct round *round, const struct player *player)
{
        const struct stay *stay = &player->stay;

        for (size_t i = 0; i <= stay->n_more; i++) {
                if (stay->part[i].verdict != STAY_STUCK)
                        player->instance->part[i].residency.stuck_ns = 0;
                if (stay->part[i].verdict == STAY_HELD)
                        residency_note_leaving(player->instance, i);
                else if (stay->part[i].verdict != STAY_STUCK && stay->part[i].verdict != STAY_LATER)
                        residency_note_no_reason(player->instance, i);
        }
        if (stay->place == STAY_AWAY) {
                carry_out_return(round, player);
                return;
        }
        for (size_t i = 0; i <= stay->n_more; i++)
                carry_out_growth(round, player, i);
}

/* What was left a moment ago. */

/*
 * Measured on an H200: of four vGPUs two left for one, because the memory of the first was not free yet by what the
 * driver said when that one had left.
 */
static uint64_t get_late(const struct residency_look *look, uint64_t now)
{
        uint64_t came =
                look->memory_free > look->free_before ? look->memory_free - look->free_before : 0;
        bool is_late = now - look->late_ns < LATE_NS && look->late_bytes > came;

        return is_late ? look->late_bytes - came : 0;
}

/* As if somebody were leaving. */
static size_t find_late(const struct round *round, struct stay *late, struct stay **stays)
{
        size_t n = 0;

        for (uint32_t i = 0; i < round->residency->manager->n_devices; i++) {
                uint64_t bytes = get_late(&round->residency->look[i], round->now);

                if (!(round->group >> i & 1) || bytes == 0)
                        continue;
                late[n] = (struct stay){ .place = STAY_LEAVING,
                                         .class = STAY_INTERACTIVE,
                                         .weight = 1,
                                         .part[0] = { .device = i, .bytes = bytes } };
                stays[n] = &late[n];
                n++;
        }
        return n;
}

static void take_late(struct residency *residency, const struct stay *stay)
{
        for (size_t i = 0; i <= stay->n_more; i++) {
                const struct stay_part *part = &stay->part[i];
                struct residency_look *look = &residency->look[part->device];
                enum stay_verdict verdict =
                        stay->place == STAY_AWAY ? stay->verdict : part->verdict;

                if (verdict == STAY_COMES)
                        look->late_bytes -=
                                part->needs < look->late_bytes ? part->needs : look->late_bytes;
        }
}

void residency_note_left(struct residency *residency, const struct instance *instance)
{
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        for (size_t i = 0; i < instance->n_parts; i++) {
                struct residency_look *look = &residency->look[instance->part[i].device->index];

                if (now - look->late_ns >= LATE_NS)
                        look->late_bytes = 0;
                look->late_bytes += instance->part[i].residency.leaving_bytes;
                look->late_ns = now;
        }
}

static bool has_leaving(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                for (size_t i = 0; i < instance->n_parts; i++)
                        if (instance->part[i].device == device &&
                            instance->part[i].residency.leaving_bytes)
                                return true;
        return false;
}

static void leave(const struct round *round, const struct player *player)
{
        struct instance *instance = player->instance;

        if (!promise_is_any_overcommitted(instance)) {
                residency_leave(instance, false, "another vGPU has work");
                return;
        }
        for (size_t i = 0; i < instance->n_parts; i++) {
                struct residency_look *look =
                        &round->residency->look[instance->part[i].device->index];

                if (get_late(look, round->now) == 0 && !has_leaving(instance->part[i].device))
                        look->free_before = look->memory_free;
                instance->part[i].residency.leaving_bytes = player->stay.part[i].bytes;
        }
        residency_leave(instance, instance->n_parts == 1, "another vGPU has work");
        for (size_t i = 0; i < instance->n_parts && !instance->residency.is_leaving; i++)
                instance->part[i].residency.leaving_bytes = 0;
}

static void carry_out_all(const struct round *round)
{
        for (size_t i = 0; i < round->n; i++) {
                const struct player *player = &round->players[i];

                player->instance->residency.was_cut = player->stay.was_cut;
                if (player->stay.is_chosen)
                        leave(round, player);
        }
        for (size_t i = 0; i < round->n; i++) {
                take_late(round->residency, &round->players[i].stay);
                carry_out(round, &round->players[i]);
        }
}

/* Of those that are to leave: then others are. Asked only of them, for it takes a look at the process. */
static bool has_stopped(const struct round *round)
{
        bool has = false;

        for (size_t i = 0; i < round->n; i++)
                has |= round->players[i].stay.is_chosen &&
                       residency_look_at_stopped(round->players[i].instance);
        return has;
}

void residency_decide(struct residency *residency, uint64_t group, const int64_t *free,
                      uint64_t now)
{
        const struct manager *manager = residency->manager;
        size_t n = list_count(&manager->instances);
        CLEANUP(freep) struct player *players = calloc(n + 1, sizeof(*players));
        CLEANUP(freep) struct stay **stays = calloc(n + STATE_DEVICES_MAX, sizeof(struct stay *));
        struct round round = { residency, group, free, now, players, 0 };
        struct stay late[STATE_DEVICES_MAX];
        size_t n_tries = n; /* one that stops and runs in turn does not keep us busy */
        uint64_t next;

        if (!players || !stays)
                return;
        do {
                find_players(&round, stays);
                n = round.n + find_late(&round, late, &stays[round.n]);
                next = stay_decide(stays, n, free, manager->n_devices, now);
        } while (has_stopped(&round) && n_tries-- > 0);
        carry_out_all(&round);
        if (next != STAY_NEVER)
                residency_look_in(residency, next > now ? next - now : 0);
}

/* A device that fell off the bus. */

static void give_up_turn(struct instance *instance, const struct device *device)
{
        operation_fail(instance->operation, -ENODEV, "DriverFailed",
                       "'vgpu resume --device' brings it to another one",
                       "device %u fell off the bus", device->index);
        admission_give_up(instance->operation);
}

void residency_give_up(const struct device *device)
{
        struct instance *instance;

        list_for_each(instance, &device->manager->instances, link) {
                struct residency_instance *mine = &instance->residency;
                const struct instance_part *part = instance_find_part(instance, device);

                if (part && residency_awaits_turn(instance))
                        give_up_turn(instance, device);
                if (!part || instance->operation)
                        continue;
                if (mine->wanted_ns)
                        snprintf(mine->reason, sizeof(mine->reason),
                                 "device %u fell off the bus: 'vgpu resume --device' brings it to "
                                 "another one",
                                 device->index);
                else if (part->residency.asks_ns)
                        answer(instance, (size_t)(part - instance->part),
                               "the device fell off the bus");
        }
}
