/* SPDX-License-Identifier: Apache-2.0 */
/* Schedulers of devices; those of GPU instances are with them. */
#include "conformance/rows.h"

void play_schedulers(struct run *run)
{
        /* clang-format off */
        HOSTING_ROWS(nvmlDeviceGetVgpuSchedulerCapabilities, OUT(scheduler_caps))
        ROW(nvmlDeviceGetVgpuSchedulerCapabilities, INVALID_ARGUMENT, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetVgpuSchedulerCapabilities, SUCCESS, HOST, (s->device, OUT(scheduler_caps)), NOW(scheduler_caps).maxTimeslice == 30000000)

        HOSTING_ROWS(nvmlDeviceGetVgpuSchedulerState, OUT(scheduler))
        ROW(nvmlDeviceGetVgpuSchedulerState, INVALID_ARGUMENT, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetVgpuSchedulerState, NOT_SUPPORTED, HOST, (s->mig, OUT(scheduler)))
        ROW(nvmlDeviceGetVgpuSchedulerState, SUCCESS, HOST, (s->device, OUT(scheduler)), NOW(scheduler).schedulerPolicy == 1)
        HOSTING_ROWS(nvmlDeviceGetVgpuSchedulerState_v2, IN(scheduler_v2, { .engineId = 1 }))
        ROW(nvmlDeviceGetVgpuSchedulerState_v2, INVALID_ARGUMENT, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetVgpuSchedulerState_v2, INVALID_ARGUMENT, HOST, (s->device, IN(scheduler_v2, { .engineId = 4 })))
        ROW(nvmlDeviceGetVgpuSchedulerState_v2, NOT_SUPPORTED, HOST, (s->mig, IN(scheduler_v2, { .engineId = 1 })))
        ROW(nvmlDeviceGetVgpuSchedulerState_v2, SUCCESS, HOST, (s->device, IN(scheduler_v2, { .engineId = 3 })), NOW(scheduler_v2).schedulerPolicy == 1)

        HOSTING_ROWS(nvmlDeviceGetVgpuSchedulerLog, OUT(log))
        ROW(nvmlDeviceGetVgpuSchedulerLog, INVALID_ARGUMENT, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetVgpuSchedulerLog, NOT_SUPPORTED, HOST, (s->mig, OUT(log)))
        ROW(nvmlDeviceGetVgpuSchedulerLog, SUCCESS, HOST, (s->device, OUT(log)), NOW(log).entriesCount == 0)
        HOSTING_ROWS(nvmlDeviceGetVgpuSchedulerLog_v2, IN(log_v2, { .engineId = 1 }))
        ROW(nvmlDeviceGetVgpuSchedulerLog_v2, INVALID_ARGUMENT, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetVgpuSchedulerLog_v2, INVALID_ARGUMENT, HOST, (s->device, IN(log_v2, { .engineId = 0 })))
        ROW(nvmlDeviceGetVgpuSchedulerLog_v2, NOT_SUPPORTED, HOST, (s->mig, IN(log_v2, { .engineId = 1 })))
        ROW(nvmlDeviceGetVgpuSchedulerLog_v2, SUCCESS, HOST, (s->device, IN(log_v2, { .engineId = 1 })), NOW(log_v2).entriesCount == 0)

        HOSTING_ROWS(nvmlDeviceSetVgpuSchedulerState, &(nvmlVgpuSchedulerSetState_t){ .schedulerPolicy = 2 })
        CHANGE_ROWS(nvmlDeviceSetVgpuSchedulerState, s->device, &(nvmlVgpuSchedulerSetState_t){ .schedulerPolicy = 2 })
        ROW(nvmlDeviceSetVgpuSchedulerState, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceSetVgpuSchedulerState, INVALID_ARGUMENT, HOST, (s->device, &(nvmlVgpuSchedulerSetState_t){ .schedulerPolicy = 0 }))
        ROW(nvmlDeviceSetVgpuSchedulerState, INVALID_ARGUMENT, HOST, (s->device, &(nvmlVgpuSchedulerSetState_t){ .schedulerPolicy = 4 }))
        ROW(nvmlDeviceSetVgpuSchedulerState, INVALID_ARGUMENT, HOST, (s->device, &(nvmlVgpuSchedulerSetState_t){ 2, 3, { { 0, 0 } } }))
        ROW(nvmlDeviceSetVgpuSchedulerState, NOT_SUPPORTED, HOST, (s->mig, &(nvmlVgpuSchedulerSetState_t){ .schedulerPolicy = 2 }))
        HOSTING_ROWS(nvmlDeviceSetVgpuSchedulerState_v2, &(nvmlVgpuSchedulerState_v2_t){ 1, 2, 0, 0 })
        CHANGE_ROWS(nvmlDeviceSetVgpuSchedulerState_v2, s->device, &(nvmlVgpuSchedulerState_v2_t){ 1, 2, 0, 0 })
        ROW(nvmlDeviceSetVgpuSchedulerState_v2, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceSetVgpuSchedulerState_v2, INVALID_ARGUMENT, HOST, (s->device, &(nvmlVgpuSchedulerState_v2_t){ 0, 2, 0, 0 }))
        ROW(nvmlDeviceSetVgpuSchedulerState_v2, INVALID_ARGUMENT, HOST, (s->device, &(nvmlVgpuSchedulerState_v2_t){ 1, 4, 0, 0 }))
        ROW(nvmlDeviceSetVgpuSchedulerState_v2, NOT_SUPPORTED, HOST, (s->mig, &(nvmlVgpuSchedulerState_v2_t){ 1, 2, 0, 0 }))
        /* clang-format on */
}
