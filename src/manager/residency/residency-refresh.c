/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/options.h"
#include "manager/model/clean-copy.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/refresh.h"
#include "manager/residency/residency-internal.h"
#include "scheduler/stay.h"

/* Without work for so long it may stay so for longer. Of one that leaves sooner: half of its time. */
#define QUIET_NS ((uint64_t)1000000000)

/* Between two looks whether one has work, or whether the device's mover is free for it. */
#define LOOK_NS ((uint64_t)250000000)

bool residency_may_refresh(const struct instance *instance)
{
        const struct guest *guest;

        if (instance->manager->options->refresh_rate == 0 || instance->state != STATE_RUNNING ||
            instance->n_parts > 1)
                return false;
        list_for_each(guest, &instance->guests, link)
                if (guest->refresh || clean_copy_get_length(guest) > 0)
                        return true;
        return false;
}

static uint64_t get_quiet_ns(const struct instance *instance)
{
        uint64_t half = instance->residency.after_ns / 2;

        return half > 0 && half < QUIET_NS ? half : QUIET_NS;
}

uint64_t residency_look_at_refresh(struct instance *instance, uint64_t now)
{
        struct guest *guest;

        if (instance->operation || !residency_may_refresh(instance))
                return STAY_NEVER;
        residency_look_at_work(instance, now);
        if (now - instance->residency.last_work_ns >= get_quiet_ns(instance))
                list_for_each(guest, &instance->guests, link)
                        if (residency_takes_part(guest) && refresh_is_due(guest, now) &&
                            refresh_start(guest))
                                break;
        return now + (get_quiet_ns(instance) < LOOK_NS ? get_quiet_ns(instance) : LOOK_NS);
}
