/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/virtual-device.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/board.h"
#include "catalog/catalog.h"
#include "catalog/mig.h"
#include "manager/model/device.h"
#include "manager/model/manager.h"
#include "manager/publish/virtual-mig.h"
#include "manager/publish/virtual-scheduler.h"
#include "manager/setting/settings.h"
#include "scenario/link.h"
#include "scenario/scenario.h"

#define METADATA_ECC   1u
#define METADATA_SRIOV 2u

#define IRQ_FIRST 128u /* as a machine with many devices numbers message-signalled interrupts */

int virtual_put_host(struct virtual_stage *stage)
{
        state_write_host(stage->state_page, 0, &stage->scenario->host);
        return 0;
}

/* The record is there already: the simulated device's. */
static void put_record(struct virtual_stage *stage, size_t index)
{
        const struct scenario_device *device = &stage->scenario->devices[index];
        struct state_device record;

        if (!state_read_device(stage->state_page, (uint32_t)index, &record))
                return;
        record.is_sriov = device->is_sriov;
        record.is_heterogeneous =
                device->capability[STATE_CAN_MIX_SIZES] ? device->is_heterogeneous : STATE_NONE;
        record.mig = record.mig_pending = device->mig;
        record.ecc = device->ecc;
        record.ecc_pending = device->ecc_pending;
        record.accounting = device->accounting;
        record.can_migrate = device->can_migrate;
        state_write_device(stage->state_page, (uint32_t)index, &record);
}

static void put_detail(struct virtual_stage *stage, size_t index)
{
        const struct scenario_device *device = &stage->scenario->devices[index];
        const struct catalog_board *board = catalog_find_kind(device->kind);
        uint32_t word =
                (device->ecc == 1 ? METADATA_ECC : 0) | (device->is_sriov ? METADATA_SRIOV : 0);
        struct state_device_detail detail;

        if (!state_read_device_detail(stage->state_page, (uint32_t)index, &detail))
                return;
        memcpy(detail.capability, device->capability, sizeof(device->capability));
        detail.scheduler = device->limits;
        detail.n_cores = board->n_cores;
        detail.memory_bus_width = board->memory_bus_width;
        detail.max_mig_devices = device->mig == 1 ? 7 : 0;
        detail.bar1_total = catalog_get_bar1(board);
        detail.irq = device->irq ? device->irq : IRQ_FIRST + (uint32_t)index;
        memcpy(detail.serial, device->texts.serial, sizeof(detail.serial));
        memcpy(detail.vbios, device->texts.vbios, sizeof(detail.vbios));
        memcpy(detail.part_number, device->texts.part_number, sizeof(detail.part_number));
        snprintf(detail.metadata_text, sizeof(detail.metadata_text), "%04X%04X%08X",
                 device->record.pci_device_id >> 16, device->record.pci_subsystem_id >> 16, word);
        state_write_device_detail(stage->state_page, (uint32_t)index, &detail);
}

static int put_types(struct virtual_stage *stage, size_t index)
{
        CLEANUP(freep) struct catalog_type *types = calloc(STATE_OFFERS_MAX, sizeof(*types));

        if (!types)
                return -ENOMEM;
        return catalog_publish_types(stage->state_page, state_site_of_device((uint32_t)index),
                                     types,
                                     scenario_list_types(&stage->scenario->devices[index], types));
}

static void put_links(struct virtual_stage *stage, size_t index)
{
        struct state_links links;

        link_describe(&stage->scenario->devices[index], index, &links);
        state_write_links(stage->state_page, (uint32_t)index, &links);
}

static void promise(struct virtual_stage *stage, size_t index)
{
        struct device *device = &stage->manager->device[index];

        for (size_t i = 0; i < stage->scenario->n_vgpus; i++) {
                const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[i];

                if (vgpu->device == index && vgpu->state != STATE_SUSPENDED)
                        device->virtual_promised += vgpu->type.frame_buffer;
        }
}

static int put_events(struct virtual_stage *stage, size_t index)
{
        const struct scenario_device *device = &stage->scenario->devices[index];

        stage->next_event[index] = calloc(device->n_events + 1, sizeof(double));
        if (!stage->next_event[index])
                return -ENOMEM;
        for (size_t i = 0; i < device->n_events; i++)
                stage->next_event[index][i] = device->events[i].at;
        return 0;
}

int virtual_put_device(struct virtual_stage *stage, size_t index)
{
        const struct scenario_device *device = &stage->scenario->devices[index];
        int r;

        if (index >= stage->manager->n_devices)
                return -ENODEV;
        put_record(stage, index);
        put_detail(stage, index);
        state_write_features(stage->state_page, (uint32_t)index, &device->features);
        virtual_put_schedulers(stage, state_site_of_device((uint32_t)index), device->schedulers,
                               device->n_schedulers);
        put_links(stage, index);
        promise(stage, index);
        r = put_events(stage, index);
        if (r == 0)
                r = put_types(stage, index);
        return r == 0 ? virtual_put_mig(stage, index) : r;
}

/* As time goes by. */

static void play_events(struct virtual_stage *stage, size_t index)
{
        const struct scenario_device *scripted = &stage->scenario->devices[index];

        for (size_t i = 0; i < scripted->n_events; i++) {
                const struct scenario_event *event = &scripted->events[i];
                const struct state_event record = { .timestamp_us = stage->now_us,
                                                    .kind = event->kind,
                                                    .data = event->data,
                                                    .operational = event->operational };
                double *next = &stage->next_event[index][i];

                if (stage->at < *next)
                        continue;
                state_append_event(stage->state_page, (uint32_t)index, &record);
                /* Those that were missed, as when the manager was stopped, do not come in a heap. */
                *next = event->every > 0 ? *next + event->every : INFINITY;
                if (*next <= stage->at)
                        *next = stage->at + event->every;
        }
}

static uint32_t get_sensor(const struct curve *curve, double at)
{
        return curve->is_set ? (uint32_t)curve_get(curve, at) : STATE_NONE;
}

static void play_sensors(struct virtual_stage *stage, size_t index)
{
        const struct scenario_sensors *scripted = &stage->scenario->devices[index].sensors;
        struct state_sensors sensors = { 0 };
        struct state_sensors former = { 0 };

        (void)state_read_sensors(stage->state_page, (uint32_t)index, &former);
#define SENSOR(name) sensors.name = get_sensor(&scripted->name, stage->at);
        SCENARIO_SENSORS(SENSOR)
#undef SENSOR
#define COUNTER(name) sensors.name = (uint64_t)curve_get(&scripted->name, stage->at);
        SCENARIO_COUNTERS(COUNTER)
#undef COUNTER
        if (sensors.performance_state == STATE_NONE)
                sensors.performance_state = 0; /* every device has one */
        sensors.energy = former.energy;
        if (sensors.power != STATE_NONE) /* mW over ns: mJ */
                sensors.energy += sensors.power * stage->period_ns / 1000000000u;
        state_write_sensors(stage->state_page, (uint32_t)index, &sensors);
}

static void play_links(struct virtual_stage *stage, size_t index)
{
        const struct scenario_links *scripted = &stage->scenario->devices[index].links;
        struct state_links links;

        if (!state_read_links(stage->state_page, (uint32_t)index, &links) || !links.active)
                return;
        links.tx_rate = (uint64_t)curve_get(&scripted->tx, stage->at);
        links.rx_rate = (uint64_t)curve_get(&scripted->rx, stage->at);
        links.tx += links.tx_rate * stage->period_ns / 1000000000u;
        links.rx += links.rx_rate * stage->period_ns / 1000000000u;
        for (size_t i = 0; i < STATE_LINK_ERRORS; i++)
                links.errors[i] = (uint64_t)curve_get(&scripted->errors[i], stage->at);
        state_write_links(stage->state_page, (uint32_t)index, &links);
}

void virtual_play_device(struct virtual_stage *stage, size_t index)
{
        const struct scenario_device *scripted = &stage->scenario->devices[index];
        const struct virtual_device *sums = &stage->devices[index];
        struct device *device = &stage->manager->device[index];
        struct state_device record;

        device->virtual_used = sums->used;
        device->n_virtual = sums->n_instances;
        device->virtual_load = sums->sum;
        play_sensors(stage, index);
        play_links(stage, index);
        virtual_play_mig(stage, index);
        play_events(stage, index);
        if (scripted->lost_at < 0 || stage->at < scripted->lost_at ||
            !state_read_device(stage->state_page, (uint32_t)index, &record) || record.is_lost)
                return;
        record.is_lost = 1;
        state_write_device(stage->state_page, (uint32_t)index, &record);
}

/* The slice that it would have had: its share of the period under fixed and equal share. */
void virtual_log_turn(struct virtual_stage *stage, size_t vgpu, uint32_t percent)
{
        const struct scenario_vgpu *scripted = &stage->scenario->vgpus[vgpu];
        struct virtual_vgpu *own = &stage->vgpus[vgpu];
        uint32_t slot = state_slot_of_scheduler(state_site_of_device(scripted->device),
                                                STATE_ENGINE_GRAPHICS);
        uint64_t run = stage->period_ns * percent / 100;
        struct state_scheduler scheduler;
        struct state_turn turn;

        if (run == 0 || scripted->gpu_instance != STATE_NONE ||
            !state_read_scheduler(stage->state_page, slot, &scheduler))
                return;
        own->run_total_ns += run;
        turn = (struct state_turn){
                .timestamp = stage->now_us * 1000,
                .run = run,
                .run_total = own->run_total_ns,
                .target = scheduler.time_slice,
                .run_list = scripted->id,
                .weight = 1,
        };
        state_append_turn(stage->state_page, slot, &turn);
}
