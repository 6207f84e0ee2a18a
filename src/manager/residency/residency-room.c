/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets the room of a device. Where quotas are promised as they are, what is free is known from the books.
 * On an overcommitted device it is what vGPUs really hold that counts, so the driver is asked first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/size.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "manager/model/ceiling.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/promise.h"
#include "manager/operation/admission.h"
#include "manager/operation/handover.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "manager/residency/residency-internal.h"
#include "scheduler/stay.h"

#define NS_PER_MS     1000000u
#define NS_PER_SECOND 1000000000u

/* Coming back may take as long as a resume by hand. */
#define COME_TIMEOUT_MS 10000

/* Between two questions to the driver while somebody waits; and when an answer will not come any more. */
#define ASK_NS      (20 * NS_PER_MS)
#define ASK_LOST_NS (5 * (uint64_t)NS_PER_SECOND)

/* Without room for the mover's context there is little hope, and each question is a line of the log. */
#define NO_CONTEXT_NS NS_PER_SECOND

/* So long the driver may need until it says that memory is free which was given back. */
#define LATE_NS (NS_PER_SECOND / 2)

/* So long it must be that all others together are not enough. */
#define DENY_NS (NS_PER_SECOND / 2)

/* What an attempt needs more after one that had not enough, and the most of it. */
#define EXTRA_FIRST (16 * MIB)
#define EXTRA_PART  8 /* of the device */

/* In the terms of the policy. */

/* Which part of it is on @device: what it has on its others counts there. */
static size_t get_part(const struct instance *instance, const struct device *device)
{
        for (size_t i = 1; i < instance->n_parts; i++)
                if (instance->part[i].device == device)
                        return i;
        return 0;
}

static uint64_t movable_bytes(const struct guest *guest, size_t part)
{
        const struct instance *instance = guest->instance;
        struct page_use use;

        if (guest->n_memory > 0)
                return instance->n_parts == 1 ? guest->memory_bytes : guest_sum_memory(guest, part);
        guest_get_use_of(guest, &instance->part[part], &use);
        return use.movable;
}

/* What is free when it has left. While it leaves, that does not get less because some of it is free already. */
static uint64_t get_bytes(const struct instance *instance, const struct device *device)
{
        size_t part = get_part(instance, device);
        const struct guest *guest;
        uint64_t sum = 0;

        if (!promise_is_overcommitted(device))
                return instance->frame_buffer;
        if (instance->residency.leaving_bytes)
                return instance->residency.leaving_bytes;
        list_for_each(guest, &instance->guests, link) {
                if (!residency_takes_part(guest))
                        continue;
                sum += movable_bytes(guest, part);
                if (!instance->residency.keeps_context)
                        sum += footprint_get(guest, part, device);
        }
        return sum;
}

/* What it takes to go on: its allocations wait for it. */
static uint64_t get_wanted(const struct instance *instance, size_t part)
{
        struct page_claim claim;

        page_read_claim(&instance->part[part].page, instance->frame_buffer, &claim);
        return (claim.wanted < instance->frame_buffer ? claim.wanted : instance->frame_buffer) +
               instance->residency.extra;
}

/* What it takes of @device to come in and go on. */
static uint64_t get_return(const struct instance *instance, const struct device *device)
{
        size_t part = get_part(instance, device);
        uint64_t sum = get_wanted(instance, part);
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link) {
                if (!residency_takes_part(guest))
                        continue;
                sum += movable_bytes(guest, part);
                if (guest->context != GUEST_CONTEXT_RUNNING)
                        sum += footprint_get(guest, part, device);
        }
        return sum;
}

/* Off its device, and waiting for somebody to make it come back. */
static bool is_to_come(const struct instance *instance)
{
        return instance_is_off(instance) || residency_awaits_turn(instance);
}

static uint64_t get_needs(const struct instance *instance)
{
        if (!promise_is_overcommitted(instance_home(instance)))
                return instance->frame_buffer;
        return is_to_come(instance) ? get_return(instance, instance_home(instance))
                                    : get_wanted(instance, 0);
}

/* Those on the device without a share divide what is left. */
static uint32_t get_weight(const struct instance *instance)
{
        const struct instance *other;
        uint32_t shares = 0, n = 0;

        if (instance->share)
                return instance->share;
        list_for_each(other, &instance->manager->instances, link) {
                if (instance_home(other) != instance_home(instance))
                        continue;
                shares += other->share;
                n += other->share == 0;
        }
        return shares + n < 100 ? (100 - shares) / n : 1;
}

static enum stay_place get_place(const struct instance *instance)
{
        if (!instance->operation || residency_awaits_turn(instance))
                return is_to_come(instance) ? STAY_AWAY : STAY_HERE;
        return instance->operation->kind == &operation_suspend ? STAY_LEAVING : STAY_COMING;
}

/*
 * Who could not come in does not send others away for that again at once; and not never, for the reason may be gone
 * and those that are there may stay for good.
 */
static bool is_modest(const struct instance *instance)
{
        const struct residency_instance *mine = &instance->residency;

        if (instance->image)
                return true;
        return mine->pause_ns > 0 && !mine->lacked_room &&
               clock_now(CLOCK_MONOTONIC) - mine->failed_ns < 2 * mine->pause_ns;
}

/*
 * One of several devices waits for room on its first one only: on its others it is in the way, and what it waits for
 * is decided without them.
 */
static bool is_bystander(const struct instance *instance, const struct device *device)
{
        return instance_home(instance) != device && residency_is_overcommitted(instance);
}

static uint64_t get_wants(const struct instance *instance, const struct device *device)
{
        if (is_bystander(instance, device))
                return 0;
        return is_to_come(instance) ? instance->residency.wanted_ns : instance->residency.asks_ns;
}

static struct stay get_stay(const struct instance *instance, const struct device *device)
{
        const struct residency_instance *mine = &instance->residency;
        char hold[sizeof(mine->reason)];

        residency_find_hold(instance, hold, sizeof(hold));
        return (struct stay){
                .after = mine->after_ns,
                .last_work = mine->last_work_ns,
                .since = mine->since_ns,
                .guaranteed = stay_get_guaranteed(mine->cost_ns,
                                                  instance->manager->options->swap_percent),
                .not_before = mine->not_before_ns,
                .is_held = hold[0] != '\0',
                .takes_turns = promise_is_overcommitted(device),
                .class = mine->is_interactive ? STAY_INTERACTIVE : STAY_BATCH,
                .weight = get_weight(instance),
                .place = get_place(instance),
                .wants = get_wants(instance, device),
                .part[0] = { .bytes = get_bytes(instance, device), .needs = get_needs(instance) },
                .is_modest = is_modest(instance),
                .was_cut = mine->was_cut,
        };
}

struct stay residency_get_stay(const struct instance *instance)
{
        return get_stay(instance, instance_home(instance));
}

/*
 * Does the policy look at it? Not at one that was suspended by hand, or is being: that may take as long as who
 * asked for it likes. Who is resumed by hand has a turn like all others.
 */
static bool is_played(const struct instance *instance, const struct device *device)
{
        const struct operation *operation = instance->operation;

        if (!instance_is_on(instance, device))
                return false;
        if (residency_awaits_turn(instance))
                return true;
        if (operation)
                return operation->is_by_itself && (operation->kind == &operation_suspend ||
                                                   operation->kind == &operation_resume);
        if (instance_is_off(instance))
                return instance_is_away(instance) && !is_bystander(instance, device);
        return instance->state == STATE_RUNNING &&
               (!instance->image || instance->residency.asks_ns);
}

struct player {
        struct stay stay;
        struct instance *instance;
};

static size_t find_players(const struct device *device, uint64_t now, struct player *players,
                           struct stay **stays)
{
        struct instance *instance;
        size_t n = 0;

        list_for_each(instance, &device->manager->instances, link) {
                if (!is_played(instance, device))
                        continue;
                if (!instance->operation && !instance_is_off(instance))
                        residency_look_at_work(instance, now);
                players[n] = (struct player){ get_stay(instance, device), instance };
                stays[n] = &players[n].stay;
                n++;
        }
        return n;
}

/* What comes out. */

static void hold(struct instance *instance, uint64_t bytes)
{
        struct device *device = instance_home(instance);
        struct room_promise *promise = &instance->residency.promise;

        if (!promise_is_overcommitted(device))
                return;
        if (room_is_to(promise, &device->room) && promise->bytes == bytes)
                return;
        room_promise(&device->room, promise, bytes);
        ceiling_look(device);
}

static void let_go(struct instance *instance)
{
        if (!instance->residency.promise.room)
                return;
        room_forget(&instance->residency.promise);
        ceiling_look(instance_home(instance));
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
                     instance->name, (double)waited_ns / NS_PER_SECOND);
        room_forget(&mine->promise); /* the operation makes its own, before anybody can take it */
        r = operation_start(instance, &operation_resume, &request, &failure);
        mine->is_coming = r == 0;
        if (r == 0)
                return;
        (void)failure_from_errno(&failure, r, "coming in");
        residency_fail(instance, false, failure.message);
}

/* What it was let have before, if it was, has not been enough. */
static void take_turn(struct instance *instance)
{
        struct residency_instance *mine = &instance->residency;

        if (mine->is_coming)
                residency_note_lack(instance);
        mine->is_coming = true;
        room_forget(&mine->promise); /* the operation makes its own, before anybody can take it */
        admission_take_turn(instance->operation);
}

/* If what there is has not been enough for its allocation, it needs more the next time. */
static void answer(struct instance *instance, const char *denial)
{
        struct residency_instance *mine = &instance->residency;

        if (denial)
                log_event_of(instance->owner, LOG_LEVEL_NOTICE, "an allocation is refused",
                             "vgpu=%s reason=\"%s\"", instance->name, denial);
        mine->extra = mine->extra ? 2 * mine->extra : EXTRA_FIRST;
        if (mine->extra > instance_home(instance)->memory_total / EXTRA_PART)
                mine->extra = instance_home(instance)->memory_total / EXTRA_PART;
        mine->sums.waited_ns += clock_now(CLOCK_MONOTONIC) - mine->asks_ns;
        mine->asks_ns = mine->stuck_ns = 0;
        page_answer(&instance->part[0].page, denial != NULL);
}

static void note(struct instance *instance, const char *reason)
{
        snprintf(instance->residency.reason, sizeof(instance->residency.reason), "%s", reason);
}

/* What of the device nobody has that vgpud knows: the driver's, and programs outside of all vGPUs. */
static uint64_t get_outside(const struct residency_look *look)
{
        const struct instance *instance;
        uint64_t known = look->memory_free + device_get_used(look->device);

        if (look->device->has_context)
                known += footprint_get_unknown(look->device);
        list_for_each(instance, &look->device->manager->instances, link) {
                size_t part = get_part(instance, look->device);
                const struct guest *guest;

                if (!instance_is_on(instance, look->device))
                        continue;
                /* It counts as what it will use, of which nothing is there before its turn. */
                if (residency_awaits_turn(instance) && !instance_is_off(instance))
                        known -= guests_get_used(instance);
                list_for_each(guest, &instance->guests, link)
                        if (guest->context == GUEST_CONTEXT_RUNNING)
                                known += footprint_get(guest, part, look->device);
        }
        return known < look->device->memory_total ? look->device->memory_total - known : 0;
}

/* Without them there would be room: it says so, for nothing that vgpud does will make them leave. */
static bool note_outside(const struct residency_look *look, struct instance *instance, int64_t lack)
{
        uint64_t outside = get_outside(look);
        char size[SIZE_TEXT_MAX];

        if (lack <= 0 || outside < (uint64_t)lack)
                return false;
        snprintf(
                instance->residency.reason, sizeof(instance->residency.reason),
                "programs outside of all vGPUs have about %s of device %u ('nvidia-smi' lists them)",
                size_format(size, outside), look->device->index);
        return true;
}

static bool note_held(struct instance *instance)
{
        const struct instance *other;

        list_for_each(other, &instance->manager->instances, link) {
                char hold[sizeof(instance->residency.reason)];

                if (other == instance || instance_is_off(other) ||
                    !instance_is_on(other, instance_home(instance)))
                        continue;
                residency_find_hold(other, hold, sizeof(hold));
                if (!hold[0])
                        continue;
                snprintf(instance->residency.reason, sizeof(instance->residency.reason),
                         "vGPU %.40s stays on the device: %.120s", other->name, hold);
                return true;
        }
        return false;
}

/* Who is in the way for good, if that can be said. @lack: what is missing if all leave that can. */
static void note_stuck(const struct residency_look *look, struct instance *instance, int64_t lack)
{
        if (!promise_is_overcommitted(instance_home(instance)))
                note(instance,
                     "its device has promised its memory to vGPUs that have work or do not "
                     "leave by themselves");
        else if (!note_outside(look, instance, lack) && !note_held(instance))
                note(instance, "its device has not enough memory that others could leave");
}

/* What is missing for it when all the others have left; without those that cannot, if they do not @count. */
static int64_t get_lack(const struct player *player, const struct player *players, size_t n,
                        int64_t free, bool count_held)
{
        int64_t lack = (int64_t)player->stay.part[0].needs - free;

        for (size_t i = 0; i < n; i++)
                if (&players[i] != player && players[i].stay.place != STAY_AWAY &&
                    (count_held || !players[i].stay.is_held))
                        lack -= (int64_t)players[i].stay.part[0].bytes;
        return lack;
}

/* Would it be too much without all the others, whatever they hold? Then waiting is in vain. */
static bool is_too_much(const struct player *player, const struct player *players, size_t n,
                        int64_t free)
{
        for (size_t i = 0; i < n; i++)
                if (&players[i] != player && players[i].stay.place == STAY_COMING)
                        return false;
        return get_lack(player, players, n, free, true) > 0;
}

/* Also one that the policy does not look at, because a command is busy with it. */
static bool has_others_busy(const struct instance *instance)
{
        const struct instance *other;

        list_for_each(other, &instance->manager->instances, link)
                if (other->operation && !is_played(other, instance_home(instance)) &&
                    operation_is_at(other->operation, instance_home(instance)))
                        return true;
        return false;
}

/* Not at once: what has been given back may not be free yet. */
static void deny(struct player *player, const struct player *players, size_t n, int64_t free)
{
        struct instance *instance = player->instance;
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        if (!is_too_much(player, players, n, free) || has_others_busy(instance))
                instance->residency.stuck_ns = 0;
        else if (instance->residency.stuck_ns == 0)
                instance->residency.stuck_ns = now;
        else if (now - instance->residency.stuck_ns >= DENY_NS)
                answer(instance, "the device has not as much even without the others");
}

/* Not at once, either. It says then how much there is, and how much it takes. */
static void end_turn(struct instance *instance)
{
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        if (has_others_busy(instance))
                instance->residency.stuck_ns = 0;
        else if (instance->residency.stuck_ns == 0)
                instance->residency.stuck_ns = now;
        else if (now - instance->residency.stuck_ns >= DENY_NS)
                admission_give_up(instance->operation);
}

static void carry_out(const struct residency_look *look, struct player *player,
                      const struct player *players, size_t n, int64_t free)
{
        struct instance *instance = player->instance;
        bool is_off = instance_is_off(instance);

        if (player->stay.verdict != STAY_STUCK)
                instance->residency.stuck_ns = 0;
        switch (player->stay.verdict) {
        case STAY_COMES:
                if (residency_awaits_turn(instance)) {
                        take_turn(instance);
                } else if (is_off) {
                        come(instance, false);
                } else {
                        hold(instance, player->stay.part[0].needs);
                        answer(instance, NULL);
                }
                break;
        case STAY_HELD:
                hold(instance, player->stay.part[0].needs);
                if (is_off && promise_is_overcommitted(instance_home(instance)) &&
                    handover_may_begin(instance))
                        come(instance, true);
                break;
        case STAY_LATER:
                let_go(instance);
                note(instance, "others have the memory of its device for now");
                break;
        case STAY_STUCK:
                let_go(instance);
                note_stuck(look, instance, get_lack(player, players, n, free, false));
                if (residency_awaits_turn(instance))
                        end_turn(instance);
                else if (!is_off)
                        deny(player, players, n, free);
                break;
        case STAY_NOTHING:
                break;
        }
}

/*
 * Measured on an H200: of four vGPUs two left for one, because the memory of the first was not free yet by what the
 * driver said when that one had left.
 */
static struct stay get_late(const struct residency_look *look, uint64_t now)
{
        uint64_t came =
                look->memory_free > look->free_before ? look->memory_free - look->free_before : 0;
        bool is_late = now - look->late_ns < LATE_NS && look->late_bytes > came;

        return (struct stay){ .place = STAY_LEAVING,
                              .class = STAY_INTERACTIVE,
                              .weight = 1,
                              .part[0].bytes = is_late ? look->late_bytes - came : 0 };
}

static void take_late(struct residency_look *look, const struct stay *stay)
{
        if (stay->verdict == STAY_COMES)
                look->late_bytes -= stay->part[0].needs < look->late_bytes ? stay->part[0].needs
                                                                           : look->late_bytes;
}

void residency_note_left(struct residency *residency, const struct instance *instance)
{
        struct residency_look *look = &residency->look[instance_home(instance)->index];
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        if (now - look->late_ns >= LATE_NS)
                look->late_bytes = 0;
        look->late_bytes += instance->residency.leaving_bytes;
        look->late_ns = now;
}

void residency_ask_again(struct residency *residency, const struct device *device)
{
        struct residency_look *look = &residency->look[device->index];

        if (!look->is_looking) /* else it will soon be told */
                look->asked_ns = 0;
}

static bool has_leaving(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (instance_is_on(instance, device) && instance->residency.leaving_bytes)
                        return true;
        return false;
}

static void leave(struct residency_look *look, struct player *player, uint64_t now)
{
        if (!promise_is_overcommitted(look->device)) {
                residency_leave(player->instance, false, "another vGPU has work");
                return;
        }
        if (get_late(look, now).part[0].bytes == 0 && !has_leaving(look->device))
                look->free_before = look->memory_free;
        player->instance->residency.leaving_bytes = player->stay.part[0].bytes;
        residency_leave(player->instance, true, "another vGPU has work");
        if (!player->instance->residency.is_leaving)
                player->instance->residency.leaving_bytes = 0;
}

static void decide(struct residency *residency, const struct device *device, int64_t free,
                   uint64_t now)
{
        struct residency_look *look = &residency->look[device->index];
        struct stay late = get_late(look, now);
        size_t n = list_count(&device->manager->instances);
        CLEANUP(freep) struct player *players = calloc(n + 1, sizeof(*players));
        CLEANUP(freep) struct stay **stays = calloc(n + 1, sizeof(struct stay *));
        uint64_t next;

        if (!players || !stays)
                return;
        n = find_players(device, now, players, stays);
        stays[n] = &late;
        next = stay_decide(stays, n + 1, &free, 1, now);
        for (size_t i = 0; i < n; i++) {
                players[i].instance->residency.was_cut = players[i].stay.was_cut;
                if (players[i].stay.is_chosen)
                        leave(look, &players[i], now);
        }
        for (size_t i = 0; i < n; i++) {
                take_late(look, &players[i].stay);
                carry_out(look, &players[i], players, n, free);
        }
        if (next != STAY_NEVER)
                residency_look_in(residency, next > now ? next - now : 0);
}

/* What is free. */

static int64_t get_free_by_books(const struct device *device)
{
        return (int64_t)device->memory_total - (int64_t)promise_get_sum(device, NULL);
}

/* What was promised to those who wait is what they are to be given. */
static int64_t get_promised_here(const struct device *device)
{
        const struct instance *instance;
        int64_t sum = 0;

        list_for_each(instance, &device->manager->instances, link)
                if (room_is_to(&instance->residency.promise, &device->room))
                        sum += (int64_t)instance->residency.promise.bytes;
        return sum;
}

/* One that has just begun to come in has not been promised yet what it takes. */
static bool is_unpromised(const struct instance *instance, const struct device *device)
{
        size_t part = get_part(instance, device);
        const struct guest *guest;

        if (!instance_is_on(instance, device) || !instance->operation ||
            residency_awaits_turn(instance) || instance->operation->step > 0 ||
            instance->operation->kind != &operation_resume)
                return false;
        list_for_each(guest, &instance->guests, link)
                if (guest->room[part].coming.room || guest->room[part].arriving.room)
                        return false;
        return true;
}

static int64_t get_unpromised(const struct device *device)
{
        const struct instance *instance;
        int64_t sum = 0;

        list_for_each(instance, &device->manager->instances, link)
                if (is_unpromised(instance, device))
                        sum += (int64_t)get_return(instance, device);
        return sum;
}

/* What the driver has said is of before if this is another number now. */
static uint64_t count_moves(const struct residency_look *look)
{
        const struct instance *instance;
        uint64_t n = look->residency->n_ends;

        list_for_each(instance, &look->residency->manager->instances, link)
                n += instance->operation != NULL;
        return n;
}

static void on_info(struct mover *mover, int error, const struct mover_info *info, void *userdata)
{
        struct residency_look *look = userdata;
        const struct device *device = look->device;

        (void)mover;
        look->is_looking = false;
        if (error)
                return;
        if (count_moves(look) != look->n_moves) {
                look->asked_ns = 0;
                residency_look_in(look->residency, 0);
                return;
        }
        look->memory_free = info->memory_free;
        decide(look->residency, device,
               room_balance(&device->room, info->memory_free, look->mark) +
                       get_promised_here(device) - get_unpromised(device),
               clock_now(CLOCK_MONOTONIC));
        observer_tell_changed(&device->manager->observers);
}

static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct residency_look *look = userdata;

        look->device->has_context |= done->error == 0;
        look->mark = room_mark(&look->device->room);
        if (done->error == 0 && mover_info(mover, on_info, look) == 0)
                return;
        look->not_before_ns = clock_now(CLOCK_MONOTONIC) + NO_CONTEXT_NS;
        look->is_looking = false;
}

static void ask(struct residency_look *look, uint64_t now)
{
        struct mover *mover;

        if (now - look->asked_ns < (look->is_looking ? ASK_LOST_NS : ASK_NS) ||
            now < look->not_before_ns)
                return;
        look->asked_ns = now;
        look->n_moves = count_moves(look);
        look->is_looking = device_get_mover(look->device, &mover) == 0 &&
                           mover_context(mover, true, on_context, look) == 0;
}

static void give_up_turn(struct instance *instance)
{
        operation_fail(instance->operation, -ENODEV, "DriverFailed",
                       "'vgpu resume --device' brings it to another one",
                       "device %u fell off the bus", instance_home(instance)->index);
        admission_give_up(instance->operation);
}

/* Who is off it loses nothing, and is told how to come in. An allocation on it would wait for ever. */
static void give_up(const struct device *device)
{
        struct instance *instance;

        list_for_each(instance, &device->manager->instances, link) {
                struct residency_instance *mine = &instance->residency;

                if (instance_home(instance) == device && residency_awaits_turn(instance))
                        give_up_turn(instance);
                if (instance_home(instance) != device || instance->operation)
                        continue;
                if (mine->wanted_ns)
                        snprintf(mine->reason, sizeof(mine->reason),
                                 "device %u fell off the bus: 'vgpu resume --device' brings it to "
                                 "another one",
                                 device->index);
                else if (mine->asks_ns)
                        answer(instance, "the device fell off the bus");
        }
}

static bool is_lost(struct device *device)
{
        if (fault_point("device.lost"))
                device->meter.is_lost = true;
        return device->meter.is_lost;
}

void residency_give_room(struct residency *residency, struct device *device, uint64_t now)
{
        struct residency_look *look = &residency->look[device->index];

        look->residency = residency;
        look->device = device;
        if (is_lost(device)) {
                give_up(device);
                return;
        }
        if (promise_is_overcommitted(device))
                ask(look, now);
        else
                decide(residency, device, get_free_by_books(device), now);
}
