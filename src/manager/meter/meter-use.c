/* SPDX-License-Identifier: Apache-2.0 */
/* When the next sample is due, and what a process used up to it. */

#include "base/clock.h"
#include "manager/meter/meter-internal.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"

void meter_add_use(struct guest *guest, size_t part, enum meter_engine engine, uint64_t ns)
{
        struct meter_guest_part *mine = &guest->meter.part[part];

        if (engine == METER_SM && guest->instance->part[part].device->meter.has_turns)
                mine->weight_ns += ns;
        else
                mine->new_ns[engine] += ns;
}

void meter_arm(struct meter *meter, uint64_t in_us, uint64_t accuracy_us)
{
        (void)sd_event_source_set_time_accuracy(meter->timer, accuracy_us);
        (void)sd_event_source_set_time_relative(meter->timer, in_us);
        (void)sd_event_source_set_enabled(meter->timer, SD_EVENT_ONESHOT);
}

/* The first after a pause: what was not sampled then is not part of the next period. */
void meter_wake(struct meter *meter)
{
        if (!meter->timer)
                return;
        meter->sampled_ns = clock_now(CLOCK_MONOTONIC);
        meter_arm(meter, METER_BUSY_US, 1000);
}
