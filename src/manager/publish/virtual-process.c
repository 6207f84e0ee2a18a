/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/virtual-process.h"

#include <string.h>

#include "scenario/scenario.h"

static uint32_t get_percent(const struct curve *curve, double at)
{
        double value = curve_get(curve, at);

        return value >= 100 ? 100 : (uint32_t)(value + 0.5);
}

void virtual_get_sample(const struct scenario_utilization *utilization, double at,
                        struct state_sample *ret_sample)
{
        ret_sample->gpu = get_percent(&utilization->gpu, at);
        ret_sample->memory = get_percent(&utilization->memory, at);
        ret_sample->encoder = get_percent(&utilization->encoder, at);
        ret_sample->decoder = get_percent(&utilization->decoder, at);
        ret_sample->jpeg = get_percent(&utilization->jpeg, at);
        ret_sample->ofa = get_percent(&utilization->ofa, at);
}

static uint32_t add_percent(uint32_t a, uint32_t b)
{
        return a + b > 100 ? 100 : a + b;
}

void virtual_add_sample(struct state_sample *sum, const struct state_sample *sample)
{
        sum->gpu = add_percent(sum->gpu, sample->gpu);
        sum->memory = add_percent(sum->memory, sample->memory);
        sum->encoder = add_percent(sum->encoder, sample->encoder);
        sum->decoder = add_percent(sum->decoder, sample->decoder);
        sum->jpeg = add_percent(sum->jpeg, sample->jpeg);
        sum->ofa = add_percent(sum->ofa, sample->ofa);
}

/*
 * The records after @process' come one place forward, and it gets the last place: those that ended are
 * told in the order of their ends, and no record may cost another one its place in the ring.
 */
static void take_last_place(struct virtual_stage *stage, size_t vgpu,
                            struct virtual_process *process)
{
        uint64_t last = state_count_account(stage->state_page, (uint32_t)vgpu) - 1;
        struct state_account record;

        for (uint64_t number = process->account_number; number < last; number++) {
                bool is_there =
                        state_read_account(stage->state_page, (uint32_t)vgpu, number + 1, &record);

                state_write_account(stage->state_page, (uint32_t)vgpu, number,
                                    is_there ? &record : NULL);
        }
        for (size_t i = 0; i < stage->scenario->vgpus[vgpu].n_processes; i++) {
                struct virtual_process *other = &stage->vgpus[vgpu].processes[i];

                if (other->has_account && other->account_number > process->account_number)
                        other->account_number--;
        }
        process->account_number = last;
}

/* A process that runs has an account that changes; when it ends, it becomes the last of the ring. */
static void keep_account(struct virtual_stage *stage, size_t vgpu, struct virtual_process *process,
                         const struct state_process *record, bool is_running)
{
        struct state_account *account = &process->account;
        uint32_t slot = (uint32_t)vgpu;

        if (!process->has_account && !is_running)
                return;
        if (is_running) {
                account->n_samples++;
                account->sum_gpu += record->utilization_gpu;
                account->sum_memory += record->utilization_memory;
                account->utilization_gpu = (uint32_t)(account->sum_gpu / account->n_samples);
                account->utilization_memory = (uint32_t)(account->sum_memory / account->n_samples);
                if (record->memory_used > account->max_memory)
                        account->max_memory = record->memory_used;
        }
        account->is_running = is_running;
        if (!process->has_account) {
                process->account_number = state_append_account(stage->state_page, slot, account);
                process->has_account = true;
                return;
        }
        if (!is_running) {
                account->time_ms = stage->now_us / 1000 - account->start_us / 1000;
                take_last_place(stage, vgpu, process);
                process->has_account = false;
        }
        state_write_account(stage->state_page, slot, process->account_number, account);
}

static void end_process(struct virtual_stage *stage, size_t vgpu, struct virtual_process *process,
                        uint32_t slot)
{
        if (!process->is_running)
                return;
        keep_account(stage, vgpu, process, NULL, false);
        state_write_process(stage->state_page, slot, NULL);
        process->is_running = false;
}

static void begin_process(struct virtual_stage *stage, const struct scenario_vgpu *vgpu,
                          const struct scenario_process *scripted, struct virtual_process *process)
{
        process->is_running = true;
        process->start_us = stage->now_us;
        process->account = (struct state_account){
                .instance = vgpu->id,
                .pid = scripted->pid,
                .start_us = stage->now_us,
        };
}

/* Returns what it uses. */
static struct state_sample play_process(struct virtual_stage *stage, size_t index,
                                        const struct scenario_process *scripted,
                                        struct virtual_process *process, uint32_t slot)
{
        const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[index];
        struct state_sample sample = { .timestamp_us = stage->now_us,
                                       .instance = vgpu->id,
                                       .pid = scripted->pid };
        struct state_process record;

        if (!process->is_running)
                begin_process(stage, vgpu, scripted, process);
        virtual_get_sample(&scripted->utilization, stage->at, &sample);
        record = (struct state_process){
                .pid = scripted->pid,
                .instance = vgpu->id,
                .device = vgpu->device,
                .utilization_gpu = sample.gpu,
                .utilization_memory = sample.memory,
                .utilization_encoder = sample.encoder,
                .utilization_decoder = sample.decoder,
                .utilization_jpeg = sample.jpeg,
                .utilization_ofa = sample.ofa,
                .kind = scripted->kind,
                .memory_used = (uint64_t)curve_get(&scripted->memory, stage->at),
                .start_ns = process->start_us * 1000,
        };
        memcpy(record.name, scripted->name, sizeof(record.name));
        state_write_process(stage->state_page, slot, &record);
        state_append_process_sample(stage->state_page, slot, &sample);
        if (vgpu->accounting == 1)
                keep_account(stage, index, process, &record, true);
        process->memory_used = record.memory_used;
        return sample;
}

/* All processes of a vGPU, that is there or not. */
uint32_t virtual_play_processes(struct virtual_stage *stage, size_t index, bool is_there,
                                struct state_sample *sum, uint64_t *used)
{
        const struct scenario_vgpu *vgpu = &stage->scenario->vgpus[index];
        struct virtual_vgpu *own = &stage->vgpus[index];
        uint32_t n = 0;

        for (size_t i = 0; i < vgpu->n_processes; i++) {
                struct virtual_process *process = &own->processes[i];
                uint32_t slot = own->first_process + (uint32_t)i;
                struct state_sample sample;

                if (!is_there || !scenario_lives(&vgpu->processes[i].life, stage->at)) {
                        end_process(stage, index, process, slot);
                        continue;
                }
                sample = play_process(stage, index, &vgpu->processes[i], process, slot);
                virtual_add_sample(sum, &sample);
                *used += process->memory_used;
                n++;
        }
        return n;
}
