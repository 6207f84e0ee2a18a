/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/shared.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/sharing.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/group.h"
#include "manager/operation/operation.h"

/* Whom one of the guests shares memory with that is not of the operation. */
struct outside {
        const struct operation *operation;
        const struct guest *partner; /* NULL: nobody */
};

/* Before it begins, all that will be of its group may not have begun either. */
static bool goes_along(const struct operation *operation, const struct instance *other)
{
        if (other == operation->instance)
                return true;
        return operation->instance->operation == operation ? group_has(operation, other)
                                                           : operation->request.group != 0;
}

static int look_outside(struct guest *partner, void *userdata)
{
        struct outside *outside = userdata;

        if (goes_along(outside->operation, partner->instance))
                return 0;
        outside->partner = partner;
        return 1;
}

/* There is no move of a group: it leaves, and comes back elsewhere. */
static int refuse_outside(const struct operation *operation, const struct guest *guest,
                          const struct guest *other, struct failure *failure)
{
        return failure_set(
                failure, -EOPNOTSUPP, "NotMovable",
                operation->kind->number == OPERATION_MIGRATE
                        ? "move all vGPUs whose processes share memory: suspend --group, "
                          "then resume --group --device"
                        : "--group takes along all vGPUs whose processes share memory",
                "process %d (%.40s) shares memory with process %d (%.40s) of vGPU %s",
                (int)guest->pid, guest->name, (int)other->pid, other->name, other->instance->name);
}

/*
 * A process that was moved to a device can import memory there only if its driver saw that device when it was
 * initialised: driver 580 answers 3 otherwise.
 */
static bool has_seen(const struct guest *guest, const struct device *device)
{
        for (size_t i = 0; i < GATE_SEEN_MAX && guest->seen[i]; i++)
                if (guest->seen[i] == gate_mark(device->uuid))
                        return true;
        return false;
}

/* NULL: it can share memory on all of them. */
static const struct device *find_unseen(const struct guest *guest, const struct place *place)
{
        for (size_t i = 0; i < GATE_DEVICES_MAX && place->device[i]; i++)
                if (!has_seen(guest, place->device[i]))
                        return place->device[i];
        return NULL;
}

static int take_partner(struct guest *partner, void *userdata)
{
        const struct guest **ret_partner = userdata;

        *ret_partner = partner;
        return 1;
}

/* "process 42 (train)"; of memory whose maker is no guest: "another process". */
#define PARTNER_MAX 80
static const char *describe_partner(char text[PARTNER_MAX], struct guest *guest)
{
        const struct guest *partner = NULL;

        if (sharing_each_partner(guest, take_partner, &partner) == 0)
                return "another process";
        snprintf(text, PARTNER_MAX, "process %d (%.40s)", (int)partner->pid, partner->name);
        return text;
}

static int refuse_move(const struct operation *operation, struct guest *guest,
                       const struct device *device, struct failure *failure)
{
        char partner[PARTNER_MAX];

        return failure_set(
                failure, -EOPNOTSUPP, "NotMovable",
                operation->kind->number == OPERATION_RESUME
                        ? "resume the vGPU on the device where it was; programs that are "
                          "started with OPENVGPU_ALL_DEVICES=1 can be moved"
                        : "suspend and resume work; to move programs that share memory, "
                          "start them with OPENVGPU_ALL_DEVICES=1",
                "process %d (%.40s) shares memory with %s, and cannot on device %u: its driver "
                "did not see that device when it was initialised",
                (int)guest->pid, guest->name, describe_partner(partner, guest), device->index);
}

static bool shares(const struct guest *guest)
{
        return sharing_is_any(guest) || guest->sharing.n_imports > 0;
}

int shared_check_image(const struct instance *instance, struct failure *failure)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest) && guest->presence != GUEST_JOINING && shares(guest))
                        return failure_set(failure, -EOPNOTSUPP, "NotMovable",
                                           "dump the vGPU by its name while it is suspended: that "
                                           "image has its GPU memory, for the same processes",
                                           "process %d (%.40s) shares memory with another process, "
                                           "and CRIU cannot make that anew",
                                           (int)guest->pid, guest->name);
        return 0;
}

static bool is_untold(const struct guest *guest)
{
        return !guest->sharing.has_told && !guest_is_dead(guest) &&
               guest->presence != GUEST_JOINING &&
               guest->presence != GUEST_ABSENT; /* who shares is never left behind */
}

const struct guest *shared_find_unheard(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (is_untold(guest) && (shares(guest) || !process_is_stopped(guest->pid)))
                        return guest;
        return NULL;
}

int shared_refuse_untold(const struct guest *guest, struct failure *failure)
{
        return failure_set(
                failure, -ETIMEDOUT, "TimedOut",
                "continue it (kill -CONT) if it is stopped, or end it, and try again",
                guest->n_connections == 0
                        ? "process %d (%.40s) of vGPU %s has not come back to vgpud yet, which was restarted"
                        : "process %d (%.40s) of vGPU %s has not told vgpud, which was restarted, "
                          "whether it shares memory",
                (int)guest->pid, guest->name, guest->instance->name);
}

/* What the driver of a process has seen its gate tells as it comes back. */
static int check_devices(const struct operation *operation, struct failure *failure)
{
        const struct guest *unheard = shared_find_unheard(operation->instance);
        const struct device *unseen;
        struct guest *guest;

        if (unheard) {
                (void)shared_refuse_untold(unheard, failure);
                return -EAGAIN;
        }
        operation_for_each_guest(guest, operation) {
                unseen = shares(guest) ? find_unseen(guest, &operation->target) : NULL;
                if (unseen)
                        return refuse_move(operation, guest, unseen, failure);
        }
        return 0;
}

/* That other vGPUs could come along helps nobody who cannot go there himself. */
int shared_check(struct operation *operation, struct failure *failure)
{
        struct outside outside = { .operation = operation };
        struct guest *guest;
        int r = 0;

        if (operation->request.will_detach && shared_check_image(operation->instance, failure) < 0)
                return -EOPNOTSUPP;
        if (!place_is_equal(&operation->target, &operation->source))
                r = check_devices(operation, failure);
        if (r < 0)
                return r;
        operation_for_each_guest(guest, operation)
                if (sharing_each_partner(guest, look_outside, &outside) != 0)
                        return refuse_outside(operation, guest, outside.partner, failure);
        return 0;
}

/* Between two looks whether all gates are back. */
#define LOOK_AGAIN_US 20000

static const struct guest *find_untold(const struct instance *instance, bool is_other)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (is_untold(guest) && !(is_other && guest->is_confined))
                        return guest;
        return NULL;
}

static bool may_share_with_others(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (!guest->is_confined)
                        return true;
        return false;
}

/*
 * Only processes of the same owner can have memory of ours, and none in a container: there the vGPUs of
 * many tenants have one owner, root, and whoever says nothing may hold up nobody else.
 */
const struct guest *shared_find_untold(const struct instance *instance)
{
        const struct guest *guest = find_untold(instance, false);
        const struct instance *other;

        if (guest || !may_share_with_others(instance))
                return guest;
        list_for_each(other, &instance->manager->instances, link)
                if (!guest && other->owner == instance->owner)
                        guest = find_untold(other, true);
        return guest;
}

static void fail(struct operation *operation, int error, const struct failure *failure)
{
        operation_fail(operation, error, failure->name, failure->hint, "%.400s", failure->message);
}

static void decide(struct operation *operation)
{
        struct failure failure = { 0 };
        int r = shared_check(operation, &failure);

        if (r < 0)
                fail(operation, r, &failure);
        else
                broadcast_ask_shared(operation);
}

static void fail_untold(struct operation *operation, const struct guest *guest)
{
        struct failure failure = { 0 };

        fail(operation, shared_refuse_untold(guest, &failure), &failure);
}

static int look_later(struct operation *operation);

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct operation *operation = userdata;
        const struct guest *untold = shared_find_untold(operation->instance);

        (void)source, (void)usec;
        operation->shared.timer = sd_event_source_disable_unref(operation->shared.timer);
        if (untold && clock_now(CLOCK_MONOTONIC) < operation->shared.deadline_ns &&
            look_later(operation) == 0)
                return 0;
        if (untold)
                fail_untold(operation, untold);
        else
                decide(operation);
        operation_end_part(operation);
        return 0;
}

static int look_later(struct operation *operation)
{
        int r = sd_event_add_time_relative(operation->instance->manager->event,
                                           &operation->shared.timer, CLOCK_MONOTONIC, LOOK_AGAIN_US,
                                           1000, on_look, operation);

        return r < 0 ? r : 0;
}

void shared_ask(struct operation *operation)
{
        const struct guest *untold = shared_find_untold(operation->instance);

        operation->shared.deadline_ns =
                clock_now(CLOCK_MONOTONIC) + operation->request.timeout_ms * (uint64_t)1000000;
        if (!untold)
                decide(operation);
        else if (look_later(operation) == 0)
                operation_begin_part(operation);
        else
                fail_untold(operation, untold);
}
