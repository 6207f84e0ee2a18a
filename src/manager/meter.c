/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/meter.h"

#include "manager/device.h"
#include "manager/guest.h"
#include "manager/instance.h"

void meter_set_turns(struct device *device, bool has_turns)
{
        device->has_turns = has_turns;
}

void meter_add_gpu_time(struct guest *guest, uint64_t ns, uint64_t at_ns)
{
        (void)at_ns;
        guest->meter.busy_ns[METER_SM] += ns;
}

void meter_add_turn(struct instance *instance, uint64_t ns, uint64_t at_ns)
{
        (void)at_ns;
        instance->meter.turn_ns += ns;
}
