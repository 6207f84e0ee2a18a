/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/arrival.h"

#include <errno.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/clock.h"
#include "base/size.h"
#include "daemon/process.h"
#include "manager/guests/guest-request.h"
#include "manager/model/ceiling.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/filling.h"
#include "manager/operation/handover.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/*
 * A part is that much of a guest's memory at most. While one is copied, less than half of that is waited for, if more
 * becomes free. The first one is smaller: it is there soon, and two that are copied at the same time do not end so.
 */
#define PARTS 16
#define FIRST 4 /* of a part */

/* What those that leave may need for the driver's own use, before they have let go of any. */
#define SPARED      (256 * MIB)
#define SPARED_PART 16 /* of the device */

/* Between two looks for room, while something is copied and while nothing is. */
#define LOOK_US      4000
#define LOOK_IDLE_US 1000

/* When nobody makes any more room, how long it may still be lacking. */
#define LACK_NS 2000000000u

/*
 * The gate keeps a descriptor of each gift, and its process has a thousand or so. Smaller ones are not worth one; nor
 * must what fits far behind be given, while nothing is free for that which comes before: so many parts at most.
 */
#define GIFTS_MAX   256
#define GIFT_PART   1024 /* of the guest's memory, at least */
#define GIFTS_AHEAD 4

static void go_on(struct guest *guest);

static bool is_stopping(const struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;

        return guest_is_dead(guest) || operation->error || operation->standing.fate == GROUP_BROKEN;
}

static uint64_t part_bytes(const struct guest *guest)
{
        return guest->memory_bytes / PARTS /
               (guest->participant->arrival.n_created == 0 ? FIRST : 1);
}

/* Waiting for room. */

/* For others to leave: that is their turn, and not what it costs to come (stay.h). */
static void begin_wait(struct guest *guest)
{
        if (guest->participant->arrival.waits_since_ns == 0 && !filling_is_copying(guest))
                guest->participant->arrival.waits_since_ns = clock_now(CLOCK_MONOTONIC);
}

static void end_wait(struct guest *guest)
{
        if (guest->participant->arrival.waits_since_ns)
                guest->instance->operation->measured.room_ns +=
                        clock_now(CLOCK_MONOTONIC) - guest->participant->arrival.waits_since_ns;
        guest->participant->arrival.waits_since_ns = 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct guest *guest = userdata;

        (void)source, (void)usec;
        guest->participant->arrival.timer =
                sd_event_source_disable_unref(guest->participant->arrival.timer);
        go_on(guest);
        return 0;
}

static void fail_room(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;

        lack_fail_taken(operation, operation->target.device[0], guest);
}

static void wait_for_room(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        uint64_t now = clock_now(CLOCK_MONOTONIC);
        int r = 0;

        begin_wait(guest);
        if (handover_is_under_way(operation->target.device[0]))
                guest->participant->arrival.lack_ns = 0;
        else if (guest->participant->arrival.lack_ns == 0)
                guest->participant->arrival.lack_ns = now;
        if (guest->participant->arrival.lack_ns &&
            now - guest->participant->arrival.lack_ns >= LACK_NS)
                fail_room(guest);
        else
                r = sd_event_add_time_relative(operation->instance->manager->event,
                                               &guest->participant->arrival.timer, CLOCK_MONOTONIC,
                                               filling_is_copying(guest) ? LOOK_US : LOOK_IDLE_US,
                                               1, on_time, guest);
        if (r < 0)
                operation_fail_errno(operation, r, "waiting for room");
}

/* Creating. */

/* How many allocations come next, into @room bytes. */
static size_t choose(const struct guest *guest, uint64_t room)
{
        size_t first = guest->participant->arrival.n_created, n = 0;
        uint64_t sum = 0;

        while (first + n < guest->n_memory && guest->memory[first + n].gift == GUEST_GIFT_NONE &&
               guest->memory[first + n].size <= room - sum &&
               (n == 0 || sum + guest->memory[first + n].size <= part_bytes(guest)))
                sum += guest->memory[first + n++].size;
        if (first + n < guest->n_memory && guest->memory[first + n].gift == GUEST_GIFT_NONE &&
            sum < part_bytes(guest) / 2 && sum + guest->memory[first + n].size > room &&
            filling_is_copying(guest) &&
            handover_is_under_way(guest->instance->operation->target.device[0]))
                return 0; /* a larger part will do better */
        return n;
}

static void close_targets(struct guest *guest, size_t first, size_t n)
{
        for (size_t i = first; i < first + n; i++)
                guest_close_target(guest, &guest->memory[i]);
}

static void note_created(struct guest *guest, size_t n)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += guest->memory[guest->participant->arrival.n_created + i].size;
        guest->participant->arrival.n_created += n;
        guest->participant->arrival.lack_ns = 0;
        room_turn_part(&guest->room[0].arriving, sum);
        operation_report_part(guest->instance->operation, "part is created",
                              guest->participant->arrival.n_created - n, n,
                              filling_is_copying(guest));
        operation_pass(guest->instance->operation, "arriving");
}

static void on_created(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = guest->instance->operation;
        size_t n = guest->participant->arrival.n_creating;

        (void)userdata;
        guest->participant->arrival.n_creating = 0;
        if (answer->error == 0) {
                note_created(guest, n);
        } else if (answer->driver_code == CUDA_ERROR_OUT_OF_MEMORY && guest->gate &&
                   !is_stopping(guest)) {
                close_targets(guest, guest->participant->arrival.n_created, n);
                wait_for_room(guest); /* a stranger was faster */
        } else if (broadcast_failed(operation, guest, answer)) {
                broadcast_fail(operation, guest, answer);
        }
        go_on(guest);
}

static void create(struct guest *guest, size_t n)
{
        const struct guest_memory *first = &guest->memory[guest->participant->arrival.n_created];
        const struct guest_memory *last = first + n - 1;

        end_wait(guest);
        close_targets(guest, guest->participant->arrival.n_created, n);
        guest->participant->arrival.n_creating = n;
        guest_request_range(guest, GATE_CREATE,
                            (struct gate_range){ first->address, last->address + last->size },
                            BROADCAST_ANSWER_MS, on_created, NULL);
}

/* Looking. */

static uint64_t count_spared(const struct device *device)
{
        uint64_t part = device->memory_total / SPARED_PART;

        if (!handover_is_ahead(device))
                return 0;
        return part < SPARED ? part : SPARED;
}

/* What the driver has free, but for what others than those that hand over were promised. */
static uint64_t count_room(const struct operation *operation, uint64_t free)
{
        const struct room *room = &operation->target.device[0]->room;
        uint64_t own = handover_get_lent(operation->target.device[0]);
        struct guest *guest;
        int64_t left;

        operation_for_each_guest(guest, operation)
                if (room_is_to(&guest->room[0].arriving, room) &&
                    guest->room[0].arriving.state == ROOM_OWED)
                        own += guest->room[0].arriving.bytes;
        left = room_balance(room, free, operation->admission.look.mark) + (int64_t)own -
               (int64_t)operation->admission.look.pending -
               (int64_t)count_spared(operation->target.device[0]);
        return left > 0 ? (uint64_t)left : 0;
}

static void fail(struct operation *operation, int error)
{
        if (error == -ECONNRESET)
                operation_lost_mover(operation, operation->target.device[0]);
        else
                operation_fail_errno(operation, error, "asking for free memory");
}

static void on_info(struct mover *mover, int error, const struct mover_info *info, void *userdata)
{
        struct guest *guest = userdata;
        struct operation *operation = guest->instance->operation;
        size_t n = 0;

        (void)mover;
        guest->participant->arrival.is_looking = false;
        if (error) {
                fail(operation, error);
        } else if (!is_stopping(guest)) {
                n = choose(guest, count_room(operation, info->memory_free));
                ceiling_settle(operation->target.device[0], info->memory_free, 0,
                               &operation->admission.look);
                if (n > 0)
                        create(guest, n);
                else
                        wait_for_room(guest);
        }
        go_on(guest);
}

/* What is free is only known with a context. */
static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct guest *guest = userdata;
        struct operation *operation = guest->instance->operation;
        int r = done->error;

        ceiling_freeze(operation->target.device[0], &operation->admission.look);
        if (r == 0)
                r = mover_info(mover, on_info, guest);
        if (r == 0)
                return;
        guest->participant->arrival.is_looking = false;
        fail(operation, r);
        go_on(guest);
}

static void look(struct guest *guest)
{
        struct operation *operation = guest->instance->operation;
        struct mover *mover;
        int r;

        if (is_stopping(guest) || guest->participant->arrival.is_looking ||
            guest->participant->arrival.is_mapping || guest->participant->arrival.n_creating > 0 ||
            guest->participant->arrival.timer ||
            guest->participant->arrival.n_created == guest->n_memory)
                return;
        r = device_get_mover(operation->target.device[0], &mover);
        if (r == 0)
                r = mover_context(mover, on_context, guest);
        guest->participant->arrival.is_looking = r == 0;
        if (r < 0)
                fail(operation, r);
}

/* Filling. */

/* The size of a part, too: of several that are copied at the same time none is done long after the others. */
static size_t count_next(const struct guest *guest)
{
        size_t first = guest->participant->arrival.n_begun, n = 0;
        uint64_t sum = 0;

        while (first + n < guest->participant->arrival.n_created &&
               (n == 0 || sum + guest->memory[first + n].size <= part_bytes(guest)))
                sum += guest->memory[first + n++].size;
        return n;
}

static void fill(struct guest *guest)
{
        while (!is_stopping(guest) && filling_may_begin(guest)) {
                size_t first = guest->participant->arrival.n_begun, n = count_next(guest);

                if (n == 0)
                        return;
                end_wait(guest); /* something was given to it */
                guest->participant->arrival.n_begun += n;
                filling_begin(guest, first, n, go_on);
        }
}

/* Gifts. */

static size_t count_gifts(const struct guest *guest)
{
        size_t n = 0;

        for (size_t i = 0; i < guest->n_memory; i++)
                n += guest->memory[i].gift != GUEST_GIFT_NONE;
        return n;
}

/* Not every container has an id that is found; in one the number of a user says nothing. */
static bool are_in_one_place(const struct guest *giver, const struct guest *guest)
{
        return strcmp(giver->container, guest->container) == 0 &&
               (guest->container[0] != '\0' || (!giver->is_confined && !guest->is_confined));
}

/* Whose memory may be the other's as it is: who could look into the other anyway. */
static bool may_give(const struct guest *giver, const struct guest *guest)
{
        return !guest->takes_no_gifts && giver->uid == guest->uid &&
               giver->instance->owner == guest->instance->owner && are_in_one_place(giver, guest);
}

/* What it can be for @guest; NULL: nothing. */
static struct guest_memory *find_place(const struct guest *guest, uint64_t size)
{
        uint64_t ahead = 0;
        bool has_gap = false;

        if (size < guest->memory_bytes / GIFT_PART || count_gifts(guest) == GIFTS_MAX)
                return NULL;
        for (size_t i =
                     guest->participant->arrival.n_created + guest->participant->arrival.n_creating;
             i < guest->n_memory && ahead <= GIFTS_AHEAD * part_bytes(guest); i++) {
                struct guest_memory *memory = &guest->memory[i];

                if (memory->gift == GUEST_GIFT_NONE && memory->is_plain && memory->size == size)
                        return memory;
                has_gap |= memory->gift == GUEST_GIFT_NONE;
                ahead += has_gap ? memory->size : 0;
        }
        return NULL;
}

/* Whoever joined as root may have become another user since. */
static bool is_still_of_its_user(const struct guest *guest)
{
        uid_t user;

        return process_get_user(guest->pid, &user) == 0 && user == guest->uid;
}

/* It is in use already, and was promised to the one that leaves as well: handover_get_lent(). */
static bool take(struct guest *guest, struct guest *giver, struct guest_memory *memory)
{
        struct guest_memory *place = find_place(guest, memory->size);
        struct failure failure = { 0 };

        if (!place)
                return false;
        if (!is_still_of_its_user(giver) || !is_still_of_its_user(guest) ||
            !process_is_beside(giver->pid, guest->pid)) {
                guest->takes_no_gifts = true; /* nor is that asked for each piece */
                return false;
        }
        if (guest_charge_target(guest, &failure) < 0)
                return false;
        guest_close_target(guest, place);
        place->target = guest_take_source(giver, memory);
        place->gift = GUEST_GIFT_HELD;
        room_turn_part(&guest->room[0].arriving, place->size);
        return true;
}

static bool take_from(struct operation *operation, struct guest *giver, struct guest_memory *memory)
{
        struct guest *guest;

        if (!memory->is_plain || memory->source < 0)
                return false;
        operation_for_each_guest(guest, operation)
                if (!guest->participant->arrival.is_over && !is_stopping(guest) &&
                    may_give(giver, guest) && take(guest, giver, memory))
                        return true;
        return false;
}

static bool has_filled_gift(const struct guest *guest)
{
        for (size_t i = 0; i < guest->n_memory; i++)
                if (guest->memory[i].gift == GUEST_GIFT_FILLED)
                        return true;
        return false;
}

static void on_mapped(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = guest->instance->operation;

        (void)userdata;
        guest->participant->arrival.is_mapping = false;
        guest->has_gifts |= answer->error == 0;
        for (size_t i = 0; answer->error == 0 && i < guest->n_memory; i++)
                if (guest->memory[i].gift == GUEST_GIFT_MAPPING)
                        guest->memory[i].gift = GUEST_GIFT_MAPPED;
        if (broadcast_failed(operation, guest, answer)) {
                guest->takes_no_gifts = true; /* the next time it makes memory of its own */
                broadcast_fail(operation, guest, answer);
        }
        go_on(guest);
}

/* Its gate does one thing at a time. */
static void map(struct guest *guest)
{
        if (is_stopping(guest) || guest->participant->arrival.is_mapping ||
            guest->participant->arrival.is_looking || guest->participant->arrival.n_creating > 0 ||
            !has_filled_gift(guest))
                return;
        guest->participant->arrival.is_mapping = true;
        guest_request_gifts(guest, BROADCAST_ANSWER_MS, on_mapped, NULL);
}

/* What is given is there as what is created is. */
static void pass_gifts(struct guest *guest)
{
        size_t *n = &guest->participant->arrival.n_created;

        if (guest->participant->arrival.n_creating > 0)
                return;
        for (; *n < guest->n_memory && guest->memory[*n].gift != GUEST_GIFT_NONE; (*n)++)
                guest->participant->arrival.lack_ns = 0;
}

/* One guest after another. */

static void next_guest(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (!guest->participant->arrival.is_over) {
                        go_on(guest);
                        return;
                }
        operation->taker = NULL;
        if (operation->error == 0 && operation->standing.fate != GROUP_BROKEN)
                broadcast_take(operation);
        operation_end_part(operation);
}

static void end(struct guest *guest)
{
        end_wait(guest);
        guest->participant->arrival.timer =
                sd_event_source_disable_unref(guest->participant->arrival.timer);
        guest->participant->arrival.is_over = true;
        if (!is_stopping(guest))
                guest->is_unfilled = false;
        next_guest(guest->instance->operation);
}

/* The mover may still be letting go of some. */
static bool has_all(const struct guest *guest)
{
        return guest->participant->arrival.n_begun == guest->n_memory &&
               !filling_is_copying(guest) && !guest->participant->arrival.is_mapping &&
               !has_filled_gift(guest);
}

static bool is_busy(const struct guest *guest)
{
        return guest->participant->arrival.is_looking || guest->participant->arrival.is_mapping ||
               guest->participant->arrival.n_creating > 0 || filling_is_busy(guest);
}

/* What can be done next for it is begun. Each of it comes back here, perhaps at once. */
static void go_on(struct guest *guest)
{
        if (guest->participant->arrival.is_over)
                return;
        pass_gifts(guest);
        fill(guest);
        map(guest);
        look(guest);
        if (guest->participant->arrival.is_over)
                return;
        if (is_stopping(guest) ? !is_busy(guest) : has_all(guest))
                end(guest);
}

/* The guest whose turn it is. */
static void go_on_with(struct operation *operation)
{
        struct guest *guest;

        operation_pass(operation, "arriving");
        operation_for_each_guest(guest, operation)
                if (!guest->participant->arrival.is_over) {
                        go_on(guest);
                        return;
                }
}

static const struct operation_taker taker = { .take = take_from, .go_on = go_on_with };

void arrival_begin(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                guest->participant->arrival.n_created = guest->participant->arrival.n_begun = 0;
}

void arrival_run(struct operation *operation)
{
        struct guest *guest;

        operation_begin_part(operation);
        operation->taker = &taker;
        operation_for_each_guest(guest, operation) {
                guest->participant->arrival.is_over = false;
                guest->participant->arrival.lack_ns = 0;
                guest->participant->arrival.n_begun =
                        filling_forget_failed(guest, guest->participant->arrival.n_begun);
        }
        next_guest(operation);
}
