/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about a GPU instance (MIG) as a place for vGPUs, and set on it. */
#include "conformance/rows.h"

#define IDS(field, room) IN(field, { 0x01000010, room, o->now.ids })

static void play_lists(struct run *run)
{
        /* clang-format off */
        GPU_INSTANCE_ROWS(nvmlGpuInstanceGetCreatableVgpus, IDS(types, 16))
        ROW(nvmlGpuInstanceGetCreatableVgpus, NOT_SUPPORTED, HOST, (s->gi_bare, IN(types, { .version = 1 })))
        ROW(nvmlGpuInstanceGetCreatableVgpus, ARGUMENT_VERSION_MISMATCH, HOST, (s->gi, IN(types, { .version = 1 })))
        ROW(nvmlGpuInstanceGetCreatableVgpus, INSUFFICIENT_SIZE, HOST, (s->gi, IN(types, { .version = 0x01000010 })), NOW(types).vgpuCount == 1)
        ROW(nvmlGpuInstanceGetCreatableVgpus, SUCCESS, HOST, (s->gi, IDS(types, 16)), NOW(ids)[0] == SCENE_MIG_TYPE)
        GPU_INSTANCE_ROWS(nvmlGpuInstanceGetActiveVgpus, IDS(active, 16))
        ROW(nvmlGpuInstanceGetActiveVgpus, ARGUMENT_VERSION_MISMATCH, HOST, (s->gi, IN(active, { .version = 1 })))
        ROW(nvmlGpuInstanceGetActiveVgpus, INSUFFICIENT_SIZE, HOST, (s->gi, IN(active, { .version = 0x01000010 })), NOW(active).vgpuCount == 1)
        ROW(nvmlGpuInstanceGetActiveVgpus, SUCCESS, HOST, (s->gi, IDS(active, 16)), NOW(ids)[0] == SCENE_MIGGED)
        ROW(nvmlGpuInstanceGetActiveVgpus, SUCCESS, HOST, (s->gi_empty, IN(active, { .version = 0x01000010 })), NOW(active).vgpuCount == 0)

        GPU_INSTANCE_ROWS(nvmlGpuInstanceGetVgpuTypeCreatablePlacements, IN(places_gi, { 0x01000020, SCENE_MIG_TYPE, 16, o->now.ids, 0 }))
        ROW(nvmlGpuInstanceGetVgpuTypeCreatablePlacements, ARGUMENT_VERSION_MISMATCH, HOST, (s->gi, IN(places_gi, { .version = 1 })))
        ROW(nvmlGpuInstanceGetVgpuTypeCreatablePlacements, NOT_SUPPORTED, HOST, (s->gi_empty, IN(places_gi, { 0x01000020, SCENE_MIG_TYPE, 16, o->now.ids, 0 })))
        ROW(nvmlGpuInstanceGetVgpuTypeCreatablePlacements, INVALID_ARGUMENT, HOST, (s->gi, IN(places_gi, { 0x01000020, s->type, 16, o->now.ids, 0 })))
        ROW(nvmlGpuInstanceGetVgpuTypeCreatablePlacements, INSUFFICIENT_SIZE, HOST, (s->gi, IN(places_gi, { 0x01000020, SCENE_MIG_TYPE, 0, NULL, 0 })), NOW(places_gi).count == 1)
        ROW(nvmlGpuInstanceGetVgpuTypeCreatablePlacements, SUCCESS, HOST, (s->gi, IN(places_gi, { 0x01000020, SCENE_MIG_TYPE, 16, o->now.ids, 0 })), NOW(ids)[0] == 8)

        GPU_INSTANCE_ROWS(nvmlGpuInstanceGetVgpuHeterogeneousMode, IN(mixing, { .version = 0x01000008 }))
        ROW(nvmlGpuInstanceGetVgpuHeterogeneousMode, ARGUMENT_VERSION_MISMATCH, HOST, (s->gi, IN(mixing, { .version = 8 })))
        ROW(nvmlGpuInstanceGetVgpuHeterogeneousMode, SUCCESS, HOST, (s->gi, IN(mixing, { .version = 0x01000008 })), NOW(mixing).mode == 1)
        ROW(nvmlGpuInstanceGetVgpuHeterogeneousMode, SUCCESS, HOST, (s->gi_empty, IN(mixing, { .version = 0x01000008 })), NOW(mixing).mode == 0)
        GPU_INSTANCE_ROWS(nvmlGpuInstanceSetVgpuHeterogeneousMode, IN(mixing, { 0x01000008, 1 }))
        CHANGE_ROWS(nvmlGpuInstanceSetVgpuHeterogeneousMode, s->gi, IN(mixing, { 0x01000008, 1 }))
        ROW(nvmlGpuInstanceSetVgpuHeterogeneousMode, IN_USE, BUSY, (s->gi, IN(mixing, { 0x01000008, 1 })))
        ROW(nvmlGpuInstanceSetVgpuHeterogeneousMode, INVALID_ARGUMENT, HOST, (s->gi, IN(mixing, { 0x01000008, 2 })))
        ROW(nvmlGpuInstanceSetVgpuHeterogeneousMode, ARGUMENT_VERSION_MISMATCH, HOST, (s->gi, IN(mixing, { 8, 1 })))
        /* clang-format on */
}

static void play_gpu_instance_schedulers(struct run *run)
{
        /* clang-format off */
        GPU_INSTANCE_ROWS(nvmlGpuInstanceGetVgpuSchedulerState, IN(scheduler_gi, { .version = 0x01000018, .engineId = 1 }))
        ROW(nvmlGpuInstanceGetVgpuSchedulerState, ARGUMENT_VERSION_MISMATCH, HOST, (s->gi, IN(scheduler_gi, { .version = 1 })))
        ROW(nvmlGpuInstanceGetVgpuSchedulerState, INVALID_ARGUMENT, HOST, (s->gi, IN(scheduler_gi, { .version = 0x01000018 })))
        ROW(nvmlGpuInstanceGetVgpuSchedulerState, SUCCESS, HOST, (s->gi, IN(scheduler_gi, { .version = 0x01000018, .engineId = 1 })), NOW(scheduler_gi).schedulerPolicy == 1)
        GPU_INSTANCE_ROWS(nvmlGpuInstanceGetVgpuSchedulerState_v2, IN(scheduler_v2, { .engineId = 1 }))
        ROW(nvmlGpuInstanceGetVgpuSchedulerState_v2, SUCCESS, HOST, (s->gi, IN(scheduler_v2, { .engineId = 1 })), NOW(scheduler_v2).schedulerPolicy == 1)
        GPU_INSTANCE_ROWS(nvmlGpuInstanceGetVgpuSchedulerLog, IN(log_gi, { .version = 0x010025a0, .engineId = 1 }))
        ROW(nvmlGpuInstanceGetVgpuSchedulerLog, ARGUMENT_VERSION_MISMATCH, HOST, (s->gi, IN(log_gi, { .version = 1 })))
        ROW(nvmlGpuInstanceGetVgpuSchedulerLog, INVALID_ARGUMENT, HOST, (s->gi, IN(log_gi, { .version = 0x010025a0 })))
        ROW(nvmlGpuInstanceGetVgpuSchedulerLog, SUCCESS, HOST, (s->gi, IN(log_gi, { .version = 0x010025a0, .engineId = 1 })), NOW(log_gi).entriesCount == 0)
        GPU_INSTANCE_ROWS(nvmlGpuInstanceGetVgpuSchedulerLog_v2, IN(log_v2, { .engineId = 1 }))
        ROW(nvmlGpuInstanceGetVgpuSchedulerLog_v2, SUCCESS, HOST, (s->gi, IN(log_v2, { .engineId = 1 })), NOW(log_v2).entriesCount == 0)

        GPU_INSTANCE_ROWS(nvmlGpuInstanceSetVgpuSchedulerState, &(nvmlVgpuSchedulerState_v1_t){ 0x01000018, 1, 2, 0, { { 0, 0 } } })
        CHANGE_ROWS(nvmlGpuInstanceSetVgpuSchedulerState, s->gi, &(nvmlVgpuSchedulerState_v1_t){ 0x01000018, 1, 2, 0, { { 0, 0 } } })
        ROW(nvmlGpuInstanceSetVgpuSchedulerState, ARGUMENT_VERSION_MISMATCH, HOST, (s->gi, &(nvmlVgpuSchedulerState_v1_t){ .version = 1 }))
        ROW(nvmlGpuInstanceSetVgpuSchedulerState, INVALID_ARGUMENT, HOST, (s->gi, &(nvmlVgpuSchedulerState_v1_t){ 0x01000018, 0, 2, 0, { { 0, 0 } } }))
        GPU_INSTANCE_ROWS(nvmlGpuInstanceSetVgpuSchedulerState_v2, &(nvmlVgpuSchedulerState_v2_t){ 1, 2, 0, 0 })
        CHANGE_ROWS(nvmlGpuInstanceSetVgpuSchedulerState_v2, s->gi, &(nvmlVgpuSchedulerState_v2_t){ 1, 2, 0, 0 })
        ROW(nvmlGpuInstanceSetVgpuSchedulerState_v2, INVALID_ARGUMENT, HOST, (s->gi, &(nvmlVgpuSchedulerState_v2_t){ 1, 0, 0, 0 }))
        /* clang-format on */
}

void play_gpu_instances(struct run *run)
{
        play_lists(run);
        play_gpu_instance_schedulers(run);
}
