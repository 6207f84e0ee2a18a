/* SPDX-License-Identifier: Apache-2.0 */
/* What the meter shows on the board: samples, and the accounts. */

#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/manager.h"
#include "manager/meter-internal.h"
#include "manager/publisher.h"
#include "meter/account-ring.h"

/* False: the vGPU is not on the board (yet); what is missed is written when it is. */
static bool get_ring(struct account_ring *ring, struct instance *instance)
{
        struct publisher *publisher = instance->manager->publisher;

        *ring = (struct account_ring){
                .board = publisher ? publisher_get_board(publisher) : NULL,
                .slot = instance->board_slot,
                .instance = instance->id,
                .accounting = &instance->meter.accounting,
        };
        if (!ring->board || ring->slot == UINT32_MAX) {
                instance->meter.must_republish = true;
                return false;
        }
        if (instance->meter.must_republish)
                account_ring_write(ring);
        instance->meter.must_republish = false;
        return true;
}

int meter_board_start(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct account_ring ring;

        if (get_ring(&ring, instance))
                return account_ring_start(&ring, &guest->meter.record);
        return accounting_start(&instance->meter.accounting, &guest->meter.record);
}

void meter_board_end(struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct account_ring ring;

        if (get_ring(&ring, instance))
                account_ring_end(&ring, guest->meter.record.serial);
        else
                accounting_end(&instance->meter.accounting, guest->meter.record.serial);
}

void meter_board_update(struct instance *instance)
{
        struct account_ring ring;

        if (get_ring(&ring, instance))
                account_ring_update(&ring);
}

static struct board_sample make_sample(const struct instance *instance, uint32_t pid,
                                       const uint32_t *percent, uint64_t at_us)
{
        return (struct board_sample){
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

static void sample_instance(struct board *board, struct instance *instance, uint64_t at_us)
{
        struct board_sample sample = make_sample(instance, 0, instance->meter.percent, at_us);
        const struct guest *guest;

        (void)board_append_sample(board, instance->board_slot, &sample);
        list_for_each(guest, &instance->guests, link) {
                if (guest->meter.record.serial == 0 || guest->board_slot == UINT32_MAX)
                        continue;
                sample = make_sample(instance, (uint32_t)guest->pid, guest->meter.percent, at_us);
                (void)board_append_process_sample(board, guest->board_slot, &sample);
        }
}

void meter_board_sample(struct meter *meter)
{
        struct publisher *publisher = meter->manager->publisher;
        struct instance *instance;
        uint64_t at_us;

        if (!publisher)
                return;
        at_us = wall_stamp(&meter->stamps, &meter->wall) * 1000;
        list_for_each(instance, &meter->manager->instances, link) {
                if (instance->board_slot != UINT32_MAX)
                        sample_instance(publisher_get_board(publisher), instance, at_us);
                meter_board_update(instance);
        }
}
