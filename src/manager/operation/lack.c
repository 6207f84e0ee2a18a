/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/lack.h"

#include <errno.h>
#include <stdio.h>

#include "base/size.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"
#include "manager/operation/operation.h"

#define NS_PER_SECOND 1000000000u

/* In a message: so many vGPUs with their names. */
#define LISTED_MAX 3

#define HINT "end or suspend what is there, or choose another device"

/* Who has a claim to what is free. */
static void describe_claims(const struct lack *lack, char *text, size_t size)
{
        char owed[SIZE_TEXT_MAX], asked[SIZE_TEXT_MAX];

        size_format(owed, lack->owed);
        size_format(asked, lack->asked);
        if (lack->asked == 0)
                snprintf(text, size, "%s are promised to others", owed);
        else if (lack->owed == 0)
                snprintf(text, size, "%s are being allocated", asked);
        else
                snprintf(text, size, "%s are promised to others, %s are being allocated", owed,
                         asked);
}

void lack_describe(const struct lack *lack, uint32_t device, char ret_text[LACK_TEXT_MAX])
{
        char free[SIZE_TEXT_MAX], left[SIZE_TEXT_MAX], needed[SIZE_TEXT_MAX], claims[128];
        bool is_all = lack->owed >= lack->free || lack->asked >= lack->free - lack->owed;

        size_format(free, lack->free);
        size_format(needed, lack->needed);
        describe_claims(lack, claims, sizeof(claims));
        if (lack->owed == 0 && lack->asked == 0)
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

void lack_fail(struct operation *operation, const struct device *device, const struct lack *lack)
{
        char text[LACK_TEXT_MAX];

        lack_describe(lack, device->index, text);
        operation_fail(operation, -ENOSPC, "NoRoom", HINT, "%s", text);
}

static bool is_in_the_way(const struct instance *other, const struct operation *operation,
                          const struct device *device)
{
        bool waits = other->operation && (other->operation->admission.is_waiting ||
                                          other->operation->admission.awaits_turn);

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
                (double)waited_ns / NS_PER_SECOND, size_format(needed, bytes), device->index,
                others, reason[0] ? ": " : "", reason);
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
