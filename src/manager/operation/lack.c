/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/lack.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/size.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"
#include "manager/operation/operation.h"

/* In a message: so many vGPUs with their names. */
#define LISTED_MAX 3

#define HINT "end or suspend what is there, or choose another device"

/* Who has a claim to what is free. */
static void describe_claims(const struct lack *lack, char *text, size_t size)
{
        const char *to = lack->to[0] ? lack->to : "others";
        char owed[SIZE_TEXT_MAX], asked[SIZE_TEXT_MAX];

        size_format(owed, lack->owed);
        size_format(asked, lack->asked);
        if (lack->asked == 0)
                snprintf(text, size, "%s are promised to %s", owed, to);
        else if (lack->owed == 0)
                snprintf(text, size, "%s are being allocated", asked);
        else
                snprintf(text, size, "%s are promised to %s, %s are being allocated", owed, to,
                         asked);
}

/* By these numbers it would have it. */
static bool is_enough(const struct lack *lack)
{
        return lack->owed <= lack->free && lack->asked <= lack->free - lack->owed &&
               lack->needed <= lack->free - lack->owed - lack->asked;
}

static void describe_enough(const struct lack *lack, uint32_t device, const char *free,
                            const char *needed, char ret_text[LACK_TEXT_MAX])
{
        if (lack->is_refused)
                snprintf(ret_text, LACK_TEXT_MAX,
                         "the driver of device %u says that %s are free, and does not give the %s "
                         "that are needed",
                         device, free, needed);
        else
                snprintf(ret_text, LACK_TEXT_MAX,
                         "others got the room of device %u first: %s are needed, and %s were free",
                         device, needed, free);
}

void lack_describe(const struct lack *lack, uint32_t device, char ret_text[LACK_TEXT_MAX])
{
        char free[SIZE_TEXT_MAX], left[SIZE_TEXT_MAX], needed[SIZE_TEXT_MAX], claims[288];
        bool is_all = lack->owed >= lack->free || lack->asked >= lack->free - lack->owed;

        size_format(free, lack->free);
        size_format(needed, lack->needed);
        describe_claims(lack, claims, sizeof(claims));
        if (is_enough(lack))
                describe_enough(lack, device, free, needed, ret_text);
        else if (lack->owed == 0 && lack->asked == 0)
                snprintf(ret_text, LACK_TEXT_MAX, "device %u has %s free, %s are needed", device,
                         free, needed);
        else if (is_all)
                snprintf(ret_text, LACK_TEXT_MAX,
                         "device %u has %s free, %s, so nothing is left, %s are needed", device,
                         free, claims, needed);
        else
                snprintf(ret_text, LACK_TEXT_MAX,
                         "device %u has %s free, of which %s and %s are left, %s are needed",
                         device, free, claims,
                         size_format(left, lack->free - lack->owed - lack->asked), needed);
}

static bool has_promise(const struct instance *instance, const struct room *room)
{
        const struct guest *guest;
        bool has = false;

        for (size_t i = 0; i < instance->n_parts; i++) {
                has |= room_is_to(&instance->part[i].residency.promise, room);
                list_for_each(guest, &instance->guests, link)
                        has |= room_is_to(&guest->room[i].coming, room) ||
                               room_is_to(&guest->room[i].arriving, room) ||
                               room_is_to(&guest->room[i].returning, room) ||
                               room_is_to(&guest->room[i].handed, room);
        }
        return has;
}

/* "vGPU one", "vGPUs one, two and others". */
static void name_promised(const struct operation *operation, const struct room *room, char *text,
                          size_t size)
{
        const struct instance *other, *named[LISTED_MAX];
        size_t n = 0, at;

        list_for_each(other, &operation->instance->manager->instances, link) {
                if (other == operation->instance || !has_promise(other, room))
                        continue;
                if (n < LISTED_MAX)
                        named[n] = other;
                n++;
        }
        if (n == 0)
                return;
        at = (size_t)snprintf(text, size, n > 1 ? "vGPUs " : "vGPU ");
        for (size_t i = 0; i < n && i < LISTED_MAX; i++)
                at += (size_t)snprintf(text + at, size - at, "%s%.40s",
                                       i == 0 ? "" : (i + 1 == n ? " and " : ", "), named[i]->name);
        if (n > LISTED_MAX)
                (void)snprintf(text + at, size - at, " and others");
}

void lack_fail(struct operation *operation, const struct device *device, struct lack *lack)
{
        char text[LACK_TEXT_MAX];

        if (lack->owed > 0)
                name_promised(operation, &device->room, lack->to, sizeof(lack->to));
        lack_describe(lack, device->index, text);
        operation_fail(operation, -ENOSPC, "NoRoom", HINT, "%s", text);
}

static bool is_in_the_way(const struct instance *other, const struct operation *operation,
                          const struct device *device)
{
        bool waits = other->operation && other->operation->admission.waiting_since_ns > 0;

        return other != operation->instance && instance_is_on(other, device) && !waits &&
               !instance_is_off(other) && !list_is_empty(&other->guests);
}

static size_t count_others(const struct operation *operation, const struct device *device)
{
        const struct instance *other;
        size_t n = 0;

        list_for_each(other, &device->manager->instances, link)
                n += is_in_the_way(other, operation, device);
        return n;
}

/* ", where vGPUs second, third and 2 more are"; "" if there is nobody. */
static void list_others(const struct operation *operation, const struct device *device, char *text,
                        size_t size)
{
        size_t n_left = count_others(operation, device), n = 0, at;
        const struct instance *other;

        text[0] = '\0';
        if (n_left == 0)
                return;
        at = (size_t)snprintf(text, size, ", where %s ", n_left > 1 ? "vGPUs" : "vGPU");
        list_for_each(other, &device->manager->instances, link) {
                if (n == LISTED_MAX || !is_in_the_way(other, operation, device))
                        continue;
                at += (size_t)snprintf(text + at, size - at, "%s%.40s",
                                       n == 0 ? "" : (n_left > 1 ? ", " : " and "), other->name);
                n++;
                n_left--;
        }
        if (n_left > 0)
                at += (size_t)snprintf(text + at, size - at, " and %zu more", n_left);
        (void)snprintf(text + at, size - at, n + n_left > 1 ? " are" : " is");
}

void lack_fail_turn(struct operation *operation, size_t part, uint64_t bytes, uint64_t waited_ns)
{
        const struct instance *instance = operation->instance;
        const struct device *device = operation->target.device[part];
        bool has_reason = instance->part[part].residency.reason != 0;
        const char *reason = has_reason ? instance->residency.reason : "";
        char others[256], needed[SIZE_TEXT_MAX];

        list_others(operation, device, others, sizeof(others));
        operation_fail(
                operation, -ENOSPC, "NoRoom",
                "wait longer ('--timeout SECONDS'), or suspend, continue or end who is there",
                "vGPU %s waited %.1f s in vain for %s of device %u%s%s%s", instance->name,
                (double)waited_ns / NS_PER_S, size_format(needed, bytes), device->index, others,
                reason[0] ? ": " : "", reason);
}

void lack_fail_taken(struct operation *operation, const struct device *device,
                     const struct guest *guest)
{
        operation_fail(operation, -ENOSPC, "NoRoom", HINT,
                       "device %u has not the room that others left for process %d (%.40s): "
                       "somebody has taken some of it",
                       device->index, (int)guest->pid, guest->name);
}

void lack_fail_memory(struct operation *operation, const struct guest *guest)
{
        operation_fail(operation, -ENOSPC, "NoRoom", HINT,
                       "somebody has taken memory of the device that process %d (%.40s) needs",
                       (int)guest->pid, guest->name);
}

void lack_fail_context(struct operation *operation, const struct device *device,
                       const struct guest *guest)
{
        operation_fail(operation, -ENOSPC, "NoRoom", HINT,
                       "device %u has too little free memory for the context of process "
                       "%d (%.40s)",
                       device->index, (int)guest->pid, guest->name);
}

void lack_fail_copy(struct operation *operation, const struct device *device)
{
        operation_fail(operation, -ENOSPC, "NoRoom", HINT,
                       "device %u has too little free memory for the copy", device->index);
}

void lack_fail_mover(struct operation *operation, const struct device *device)
{
        operation_fail(operation, -ENOSPC, "NoRoom",
                       "end a program there, or let it give back memory",
                       "device %u has no room for the context of its mover, which copies the "
                       "memory there",
                       device->index);
}

void lack_fail_return(struct operation *operation, const struct device *device,
                      const struct guest *guest)
{
        operation_fail(operation, -ENOSPC, "NoRoom",
                       "end or suspend what is there, or start vgpud with a larger --pool-limit",
                       "device %u has no room to bring the memory of process %d back, and neither "
                       "has the pool",
                       device->index, (int)guest->pid);
}

void lack_fail_pool(struct operation *operation, uint64_t bytes, const char *why)
{
        const struct instance *instance = operation->instance;
        struct failure failure = { 0 };
        char owner[POOL_OWNER_MAX];

        policy_name_owner(instance, owner);
        if (policy_check_pool(instance, owner, bytes, &failure) == 0)
                (void)failure_from_errno(&failure, -ENOSPC, "reserving memory of the pool");
        operation_fail(operation, -ENOSPC, "PoolTooSmall", failure.hint, "vGPU %s: %.300s%s%.80s",
                       instance->name, failure.message, why ? "; " : "", why ? why : "");
}
