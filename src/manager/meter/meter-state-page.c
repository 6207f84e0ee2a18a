/* SPDX-License-Identifier: Apache-2.0 */
/* What the meter shows on the state page: samples, and the accounts. */

#include "manager/meter/meter-internal.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "meter/account-ring.h"

/* False: the vGPU is not on the state page (yet); what is missed is written when it is. */
static bool get_ring(struct account_ring *ring, struct instance *instance)
{
        struct state_page *state_page = instance->manager->state_page;

        *ring = (struct account_ring){
                .state_page = state_page,
                .slot = instance->part[0].state_slot,
                .instance = instance->id,
                .accounting = &instance->meter.accounting,
        };
        if (!ring->state_page || ring->slot == UINT32_MAX) {
                instance->meter.must_republish = true;
                return false;
        }
        if (instance->meter.must_republish)
                account_ring_write(ring);
        instance->meter.must_republish = false;
        return true;
}

int meter_page_start(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct account_ring ring;

        if (get_ring(&ring, instance))
                return account_ring_start(&ring, &guest->meter.record);
        return accounting_start(&instance->meter.accounting, &guest->meter.record);
}

void meter_page_end(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct account_ring ring;

        if (get_ring(&ring, instance))
                account_ring_end(&ring, guest->meter.record.serial);
        else
                accounting_end(&instance->meter.accounting, guest->meter.record.serial);
}

void meter_page_update(struct instance *instance)
{
        struct account_ring ring;

        if (get_ring(&ring, instance))
                account_ring_update(&ring);
}

static struct state_sample make_sample(const struct instance *instance, uint32_t pid,
                                       const uint32_t *percent, uint64_t at_us)
{
        return (struct state_sample){
                .timestamp_us = at_us,
                .instance = instance->id,
                .pid = pid,
                .gpu = percent[METER_SM],
                .memory = percent[METER_MEMORY],
                .encoder = percent[METER_ENCODER],
                .decoder = percent[METER_DECODER],
                .jpeg = percent[METER_JPEG],
                .ofa = percent[METER_OFA],
        };
}

static bool is_idle(const struct guest *guest)
{
        for (int engine = 0; engine < METER_ENGINES; engine++)
                if (guest->meter.percent[engine])
                        return false;
        return true;
}

/* Most processes have no work most of the time: that is said once, not in each sample. */
static bool has_news(const struct guest *guest)
{
        return !guest->meter.was_idle || !is_idle(guest);
}

static void sample_instance(struct state_page *state_page, struct instance *instance,
                            uint64_t at_us)
{
        struct state_sample sample = make_sample(instance, 0, instance->meter.percent, at_us);
        struct guest *guest;

        (void)state_append_sample(state_page, instance->part[0].state_slot, &sample);
        list_for_each(guest, &instance->guests, link) {
                if (guest->meter.record.serial == 0 || guest->record[0].state_slot == UINT32_MAX ||
                    !has_news(guest))
                        continue;
                sample = make_sample(instance, (uint32_t)guest->pid, guest->meter.percent, at_us);
                guest->meter.was_idle =
                        state_append_process_sample(state_page, guest->record[0].state_slot,
                                                    &sample) != STATE_NO_NUMBER &&
                        is_idle(guest);
        }
}

void meter_page_sample(struct instance *instance, uint64_t at_us)
{
        struct state_page *state_page = instance->manager->state_page;

        if (!state_page)
                return;
        if (instance->part[0].state_slot != UINT32_MAX)
                sample_instance(state_page, instance, at_us);
        meter_page_update(instance);
}
