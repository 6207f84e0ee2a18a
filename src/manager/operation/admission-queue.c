/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/admission-queue.h"

#include "base/clock.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/operation/operation.h"

static struct device *device_of(const struct operation *operation)
{
        return operation->target.device[operation->admission.part];
}

bool admission_queue_has(const struct operation *operation)
{
        return !list_is_empty(&operation->admission.link);
}

struct operation *admission_queue_get_first(struct device *device)
{
        return list_is_empty(&device->admissions)
                       ? NULL
                       : list_entry(device->admissions.next, struct operation, admission.link);
}

bool admission_queue_has_strangers_behind(const struct operation *operation)
{
        const struct operation *other;
        bool is_behind = false;

        list_for_each(other, &device_of(operation)->admissions, admission.link) {
                if (is_behind && other->instance->owner != operation->instance->owner)
                        return true;
                is_behind |= other == operation;
        }
        return false;
}

void admission_queue_let_others_pass(struct operation *first)
{
        uint64_t since_ns = first->admission.waiting_since_ns;

        if (since_ns == 0 || first != admission_queue_get_first(device_of(first)) ||
            !admission_queue_has_strangers_behind(first) ||
            clock_now(CLOCK_MONOTONIC) - since_ns < ADMISSION_QUEUE_FIRST_MOST_US * 1000ull)
                return;
        list_remove(&first->admission.link);
        list_append(&device_of(first)->admissions, &first->admission.link);
}
