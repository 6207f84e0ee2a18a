/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/virtual.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "manager/model/device.h"
#include "manager/model/manager.h"
#include "manager/publish/virtual-device.h"
#include "manager/publish/virtual-internal.h"
#include "manager/publish/virtual-process.h"
#include "scenario/scenario.h"

DEFINE_CLEANUP(struct virtual_stage *, virtual_free);

/* Sessions. */

static void play_encoder_sessions(struct virtual_stage *stage, size_t index, bool is_there)
{
        const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[index];

        for (size_t i = 0; i < vgpu->n_encoder_sessions; i++) {
                const struct scenario_encoder_session *scripted = &vgpu->encoder_sessions[i];
                uint32_t slot = stage->vgpus[index].first_encoder_session + (uint32_t)i;
                struct state_encoder_session session = scripted->record;

                if (!is_there || !scenario_lives(&scripted->life, stage->at)) {
                        state_write_encoder_session(stage->state_page, slot, NULL);
                        continue;
                }
                session.instance = vgpu->id;
                session.device = vgpu->device;
                session.fps = (uint32_t)curve_get(&scripted->fps, stage->at);
                session.latency = (uint32_t)curve_get(&scripted->latency, stage->at);
                state_write_encoder_session(stage->state_page, slot, &session);
        }
}

static void play_capture_sessions(struct virtual_stage *stage, size_t index, bool is_there)
{
        const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[index];

        for (size_t i = 0; i < vgpu->n_capture_sessions; i++) {
                const struct scenario_capture_session *scripted = &vgpu->capture_sessions[i];
                uint32_t slot = stage->vgpus[index].first_capture_session + (uint32_t)i;
                struct state_capture_session session = scripted->record;

                if (!is_there || !scenario_lives(&scripted->life, stage->at)) {
                        state_write_capture_session(stage->state_page, slot, NULL);
                        continue;
                }
                session.instance = vgpu->id;
                session.device = vgpu->device;
                session.fps = (uint32_t)curve_get(&scripted->fps, stage->at);
                session.latency = (uint32_t)curve_get(&scripted->latency, stage->at);
                state_write_capture_session(stage->state_page, slot, &session);
        }
}

/* A vGPU. */

static void drop_vgpu(struct virtual_stage *stage, size_t index)
{
        struct state_sample sum = { 0 };
        uint64_t used = 0;

        if (!stage->vgpus[index].is_there)
                return;
        (void)virtual_play_processes(stage, index, false, &sum, &used);
        play_encoder_sessions(stage, index, false);
        play_capture_sessions(stage, index, false);
        state_write_instance(stage->state_page, (uint32_t)index, NULL);
        state_write_vm(stage->state_page, (uint32_t)index, NULL);
        stage->vgpus[index].is_there = false;
}

static void add_accounts(struct virtual_stage *stage, size_t index)
{
        const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[index];

        for (size_t i = 0; i < vgpu->n_accounts; i++) {
                struct state_account account = vgpu->accounts[i];

                account.instance = vgpu->id;
                state_append_account(stage->state_page, (uint32_t)index, &account);
        }
}

/* The guest's driver speaks all versions that the host supports, and takes the highest in force. */
static uint32_t negotiate_version(const struct virtual_stage *stage, size_t index)
{
        struct state_host host;

        if (stage->scenario->vgpus[index].guest_driver != STATE_GUEST_DRIVER_RUNNING ||
            !state_read_host(stage->state_page, 0, &host))
                return 0;
        return host.current_max;
}

static void come(struct virtual_stage *stage, size_t index)
{
        stage->vgpus[index].vgpu_version = negotiate_version(stage, index);
        stage->vgpus[index].is_there = true;
        add_accounts(stage, index);
}

static void fill_instance(const struct virtual_stage *stage, size_t index,
                          struct state_instance *ret_record)
{
        const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[index];

        *ret_record = (struct state_instance){
                .id = vgpu->id,
                .device = vgpu->device,
                .state = vgpu->state,
                .type_id = vgpu->type.id,
                .tenant_uid = vgpu->owner,
                .guest_driver = vgpu->guest_driver,
                .licence = vgpu->licence,
                .gpu_instance = vgpu->gpu_instance,
                .placement = vgpu->placement,
                .placement_size =
                        vgpu->placement == STATE_PLACEMENT_NONE ? 0 : vgpu->type.placement_size,
                .frame_rate_limit = vgpu->frame_rate_limit,
                .ecc = vgpu->ecc,
                .accounting = vgpu->accounting,
                .encoder_capacity = stage->vgpus[index].encoder_capacity,
                .vgpu_version = stage->vgpus[index].vgpu_version,
                .can_migrate = vgpu->can_migrate,
                .is_virtual = 1,
                .frame_buffer_quota = vgpu->type.frame_buffer,
                .runtime_state_size = vgpu->runtime_state_size,
                .created_ns = stage->start_us * 1000 + (uint64_t)(vgpu->life.from * 1e9),
        };
        memcpy(ret_record->uuid, vgpu->uuid, sizeof(ret_record->uuid));
        memcpy(ret_record->name, vgpu->name, sizeof(ret_record->name));
}

static void play_vgpu(struct virtual_stage *stage, size_t index)
{
        const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[index];
        struct state_sample sum = { .timestamp_us = stage->now_us, .instance = vgpu->id };
        struct virtual_device *device = &stage->devices[vgpu->device];
        uint64_t used = (uint64_t)curve_get(&vgpu->memory, stage->at);
        bool is_off = vgpu->state == STATE_SUSPENDED;
        struct state_instance record;

        if (!stage->vgpus[index].is_there)
                come(stage, index);
        fill_instance(stage, index, &record);
        virtual_get_sample(&vgpu->utilization, stage->at, &sum);
        record.n_processes = virtual_play_processes(stage, index, !is_off, &sum, &used);
        play_encoder_sessions(stage, index, !is_off);
        play_capture_sessions(stage, index, !is_off);
        if (!is_off) {
                record.frame_buffer_used =
                        used < vgpu->type.frame_buffer ? used : vgpu->type.frame_buffer;
                record.utilization_gpu = sum.gpu;
                record.utilization_memory = sum.memory;
                record.utilization_encoder = sum.encoder;
                record.utilization_decoder = sum.decoder;
                record.utilization_jpeg = sum.jpeg;
                record.utilization_ofa = sum.ofa;
                state_append_sample(stage->state_page, (uint32_t)index, &sum);
                virtual_add_sample(&device->sum, &sum);
                device->used += record.frame_buffer_used;
        }
        device->n_instances++;
        state_write_vm(stage->state_page, (uint32_t)index, &vgpu->vm);
        state_write_instance(stage->state_page, (uint32_t)index, &record);
        if (!is_off)
                virtual_log_turn(stage, index, sum.gpu);
}

void virtual_play(struct virtual_stage *stage)
{
        const struct scenario *scenario = stage->scenario;
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        stage->period_ns = now - stage->start_ns - (uint64_t)(stage->at * 1e9);
        stage->at = (double)(now - stage->start_ns) / 1e9;
        stage->now_us = clock_now(CLOCK_REALTIME) / 1000;
        for (size_t i = 0; i < scenario->n_devices; i++)
                stage->devices[i] = (struct virtual_device){ 0 };
        for (size_t i = 0; i < scenario->n_vgpus; i++)
                if (scenario_lives(&scenario->vgpus[i].life, stage->at))
                        play_vgpu(stage, i);
                else
                        drop_vgpu(stage, i);
        for (size_t i = 0; i < scenario->n_devices; i++)
                virtual_play_device(stage, i);
}

/* Starting. */

static int make_vgpus(struct virtual_stage *stage)
{
        const struct scenario *scenario = stage->scenario;
        struct virtual_count *count = &stage->count;

        stage->vgpus = calloc(scenario->n_vgpus + 1, sizeof(*stage->vgpus));
        if (!stage->vgpus)
                return -ENOMEM;
        for (size_t i = 0; i < scenario->n_vgpus; i++) {
                const struct scenario_vgpu *vgpu = &scenario->vgpus[i];
                struct virtual_vgpu *own = &stage->vgpus[i];

                *own = (struct virtual_vgpu){ .encoder_capacity = vgpu->encoder_capacity,
                                              .first_process = count->processes,
                                              .first_encoder_session = count->encoder_sessions,
                                              .first_capture_session = count->capture_sessions };
                own->processes = calloc(vgpu->n_processes + 1, sizeof(*own->processes));
                if (!own->processes)
                        return -ENOMEM;
                count->vgpus++;
                count->processes += (uint32_t)vgpu->n_processes;
                count->encoder_sessions += (uint32_t)vgpu->n_encoder_sessions;
                count->capture_sessions += (uint32_t)vgpu->n_capture_sessions;
        }
        return count->encoder_sessions > STATE_ENCODER_SESSIONS_MAX ||
                               count->capture_sessions > STATE_CAPTURE_SESSIONS_MAX
                       ? -ENOSPC
                       : 0;
}

const struct virtual_count *virtual_get_count(const struct virtual_stage *stage)
{
        return &stage->count;
}

int virtual_start(struct virtual_stage **ret_stage, struct manager *manager,
                  struct state_page *state_page)
{
        CLEANUP(virtual_freep) struct virtual_stage *stage = calloc(1, sizeof(*stage));
        int r;

        if (!stage)
                return -ENOMEM;
        stage->manager = manager;
        stage->state_page = state_page;
        stage->scenario = manager->scenario;
        stage->start_ns = clock_now(CLOCK_MONOTONIC);
        stage->start_us = clock_now(CLOCK_REALTIME) / 1000;
        r = make_vgpus(stage);
        if (r == 0)
                r = virtual_put_host(stage);
        for (size_t i = 0; r == 0 && i < stage->scenario->n_devices; i++)
                r = virtual_put_device(stage, i);
        if (r < 0)
                return r;
        virtual_play(stage);
        *ret_stage = TAKE(stage);
        return 0;
}

struct virtual_stage *virtual_free(struct virtual_stage *stage)
{
        if (!stage)
                return NULL;
        for (size_t i = 0; stage->vgpus && i < stage->scenario->n_vgpus; i++)
                free(stage->vgpus[i].processes);
        for (size_t i = 0; i < STATE_DEVICES_MAX; i++)
                free(stage->next_event[i]);
        free(stage->vgpus);
        free(stage);
        return NULL;
}

/* What others ask. */

uint32_t virtual_find(const struct virtual_stage *stage, const char *text)
{
        char id[16];

        for (size_t i = 0; stage && i < stage->scenario->n_vgpus; i++) {
                const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[i];

                snprintf(id, sizeof(id), "%u", vgpu->id);
                if (strcmp(text, id) == 0 || strcmp(text, vgpu->uuid) == 0 ||
                    strcmp(text, vgpu->name) == 0)
                        return vgpu->id;
        }
        return 0;
}

void virtual_set_encoder_capacity(struct virtual_stage *stage, uint32_t id, uint32_t percent)
{
        for (size_t i = 0; i < stage->scenario->n_vgpus; i++)
                if (stage->scenario->vgpus[i].id == id)
                        stage->vgpus[i].encoder_capacity = percent;
        virtual_play(stage);
}
