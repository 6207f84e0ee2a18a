/* SPDX-License-Identifier: Apache-2.0 */
/* What the meter shows on the state page: samples, and the accounts. */

#include "manager/meter/meter-internal.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "meter/account-ring.h"

/* False: the vGPU is not on the state page (yet); what is missed is written when it is. */
static bool get_ring(struct account_ring *ring, const struct manager *manager,
                     struct instance_part *part)
{
        *ring = (struct account_ring){
                .state_page = manager->state_page,
                .slot = part->state_slot,
                .instance = part->id,
                .accounting = &part->meter.accounting,
        };
        if (!ring->state_page || ring->slot == UINT32_MAX) {
                part->meter.must_republish = true;
                return false;
        }
        if (part->meter.must_republish)
                account_ring_write(ring);
        part->meter.must_republish = false;
        return true;
}

static int start(struct guest *guest, size_t part)
{
        struct instance *instance = guest->instance;
        const struct accounting_record record = meter_get_record(guest, part);
        struct account_ring ring;

        if (get_ring(&ring, instance->manager, &instance->part[part]))
                return account_ring_start(&ring, &record);
        return accounting_start(&instance->part[part].meter.accounting, &record);
}

int meter_page_start(struct guest *guest)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < guest->instance->n_parts; i++)
                r = start(guest, i);
        return r;
}

void meter_page_end(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct account_ring ring;

        for (size_t i = 0; i < instance->n_parts; i++)
                if (get_ring(&ring, instance->manager, &instance->part[i]))
                        account_ring_end(&ring, guest->meter.record.serial);
                else
                        accounting_end(&instance->part[i].meter.accounting,
                                       guest->meter.record.serial);
}

void meter_page_update(struct instance *instance)
{
        struct account_ring ring;

        for (size_t i = 0; i < instance->n_parts; i++)
                if (get_ring(&ring, instance->manager, &instance->part[i]))
                        account_ring_update(&ring);
}

static struct state_sample make_sample(const struct instance_part *part, uint32_t pid,
                                       const uint32_t *percent, uint64_t at_us)
{
        return (struct state_sample){
                .timestamp_us = at_us,
                .instance = part->id,
                .pid = pid,
                .gpu = percent[METER_SM],
                .memory = percent[METER_MEMORY],
                .encoder = percent[METER_ENCODER],
                .decoder = percent[METER_DECODER],
                .jpeg = percent[METER_JPEG],
                .ofa = percent[METER_OFA],
        };
}

static bool is_idle(const struct meter_guest_part *mine)
{
        for (int engine = 0; engine < METER_ENGINES; engine++)
                if (mine->percent[engine])
                        return false;
        return true;
}

/* Most processes have no work most of the time: that is said once, not in each sample. */
static bool has_news(const struct meter_guest_part *mine)
{
        return !mine->was_idle || !is_idle(mine);
}

static void sample_part(struct state_page *state_page, const struct instance *instance, size_t i,
                        uint64_t at_us)
{
        const struct instance_part *part = &instance->part[i];
        struct state_sample sample = make_sample(part, 0, part->meter.percent, at_us);
        struct guest *guest;

        (void)state_append_sample(state_page, part->state_slot, &sample);
        list_for_each(guest, &instance->guests, link) {
                struct meter_guest_part *mine = &guest->meter.part[i];

                if (!meter_has(guest) || guest->record[i].state_slot == UINT32_MAX ||
                    !has_news(mine))
                        continue;
                sample = make_sample(part, (uint32_t)guest->pid, mine->percent, at_us);
                mine->was_idle =
                        state_append_process_sample(state_page, guest->record[i].state_slot,
                                                    &sample) != STATE_NO_NUMBER &&
                        is_idle(mine);
        }
}

void meter_page_sample(struct instance *instance, uint64_t at_us)
{
        struct state_page *state_page = instance->manager->state_page;

        if (!state_page)
                return;
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].state_slot != UINT32_MAX)
                        sample_part(state_page, instance, i, at_us);
        meter_page_update(instance);
}
