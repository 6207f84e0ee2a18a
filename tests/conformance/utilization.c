/* SPDX-License-Identifier: Apache-2.0 */
/* Utilization of vGPUs and their processes, old calls and new. */
#include "conformance/rows.h"

#define SAMPLES      0, OUT(value_type), IN(count, 8), NOW(samples)
#define FUTURE       0x7fffffffffffffffull
#define INFOS(...)   IN(infos, { .version = 0x01000020, __VA_ARGS__ })
#define ROOM         .vgpuInstanceCount = 8, .vgpuUtilArray = o->now.info
#define P_INFOS(...) IN(process_infos, { .version = 0x01000018, __VA_ARGS__ })
#define P_ROOM       .vgpuProcessCount = 8, .vgpuProcUtilArray = o->now.process_info

void play_utilization(struct run *run)
{
        /* clang-format off */
        HOSTING_ROWS(nvmlDeviceGetVgpuUtilization, SAMPLES)
        ROW(nvmlDeviceGetVgpuUtilization, NOT_SUPPORTED, HOST, (s->bare, 0, NULL, NULL, NULL))
        ROW(nvmlDeviceGetVgpuUtilization, INVALID_ARGUMENT, HOST, (s->device, 0, NULL, IN(count, 8), NOW(samples)))
        ROW(nvmlDeviceGetVgpuUtilization, INVALID_ARGUMENT, HOST, (s->device, 0, OUT(value_type), NULL, NOW(samples)))
        ROW(nvmlDeviceGetVgpuUtilization, INVALID_ARGUMENT, HOST, (s->device, 0, OUT(value_type), IN(count, 0), NOW(samples)))
        ROW(nvmlDeviceGetVgpuUtilization, INSUFFICIENT_SIZE, HOST, (s->device, 0, OUT(value_type), IN(count, 0), NULL), NOW(count) == 4 && NOW(value_type) == 1)
        ROW(nvmlDeviceGetVgpuUtilization, INSUFFICIENT_SIZE, HOST, (s->device, 0, OUT(value_type), IN(count, 3), NOW(samples)), NOW(count) == 4)
        ROW(nvmlDeviceGetVgpuUtilization, NOT_FOUND, HOST, (s->device, FUTURE, OUT(value_type), IN(count, 8), NOW(samples)))
        ROW(nvmlDeviceGetVgpuUtilization, SUCCESS, HOST, (s->empty, 0, OUT(value_type), IN(count, 0), NULL), NOW(count) == 0)
        ROW(nvmlDeviceGetVgpuUtilization, SUCCESS, HOST, (s->device, SAMPLES), NOW(count) == 4 && NOW(samples)[0].smUtil.uiVal == 20)

        HOSTING_ROWS(nvmlDeviceGetVgpuInstancesUtilizationInfo, INFOS(ROOM))
        ROW(nvmlDeviceGetVgpuInstancesUtilizationInfo, INVALID_ARGUMENT, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetVgpuInstancesUtilizationInfo, ARGUMENT_VERSION_MISMATCH, HOST, (s->bare, IN(infos, { .version = 1 })))
        ROW(nvmlDeviceGetVgpuInstancesUtilizationInfo, INVALID_ARGUMENT, HOST, (s->device, INFOS(.vgpuUtilArray = o->now.info)))
        ROW(nvmlDeviceGetVgpuInstancesUtilizationInfo, INSUFFICIENT_SIZE, HOST, (s->device, INFOS(.vgpuInstanceCount = 0)), NOW(infos).vgpuInstanceCount == 4)
        ROW(nvmlDeviceGetVgpuInstancesUtilizationInfo, INSUFFICIENT_SIZE, HOST, (s->device, INFOS(.vgpuInstanceCount = 1, .vgpuUtilArray = o->now.info)), NOW(infos).vgpuInstanceCount == 4)
        ROW(nvmlDeviceGetVgpuInstancesUtilizationInfo, NOT_FOUND, HOST, (s->device, INFOS(ROOM, .lastSeenTimeStamp = FUTURE)))
        ROW(nvmlDeviceGetVgpuInstancesUtilizationInfo, SUCCESS, HOST, (s->empty, INFOS(.vgpuInstanceCount = 1)), NOW(infos).vgpuInstanceCount == 0)
        ROW(nvmlDeviceGetVgpuInstancesUtilizationInfo, SUCCESS, HOST, (s->device, INFOS(ROOM)), NOW(info)[0].vgpuInstance == FIXTURE_TRAIN)

        HOSTING_ROWS(nvmlDeviceGetVgpuProcessUtilization, 0, IN(count, 8), NOW(process_samples))
        ROW(nvmlDeviceGetVgpuProcessUtilization, NOT_SUPPORTED, HOST, (s->bare, 0, NULL, NULL))
        ROW(nvmlDeviceGetVgpuProcessUtilization, INVALID_ARGUMENT, HOST, (s->device, 0, NULL, NOW(process_samples)))
        ROW(nvmlDeviceGetVgpuProcessUtilization, INVALID_ARGUMENT, HOST, (s->device, 0, IN(count, 0), NOW(process_samples)))
        ROW(nvmlDeviceGetVgpuProcessUtilization, INSUFFICIENT_SIZE, HOST, (s->device, 0, IN(count, 0), NULL), NOW(count) == 2)
        ROW(nvmlDeviceGetVgpuProcessUtilization, NOT_FOUND, HOST, (s->device, FUTURE, IN(count, 8), NOW(process_samples)))
        ROW(nvmlDeviceGetVgpuProcessUtilization, SUCCESS, HOST, (s->empty, 0, IN(count, 0), NULL), NOW(count) == 0)
        ROW(nvmlDeviceGetVgpuProcessUtilization, SUCCESS, HOST, (s->device, 0, IN(count, 8), NOW(process_samples)), NOW(count) == 1 && NOW(process_samples)[0].pid == 4242)

        HOSTING_ROWS(nvmlDeviceGetVgpuProcessesUtilizationInfo, P_INFOS(P_ROOM))
        ROW(nvmlDeviceGetVgpuProcessesUtilizationInfo, INVALID_ARGUMENT, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetVgpuProcessesUtilizationInfo, ARGUMENT_VERSION_MISMATCH, HOST, (s->device, IN(process_infos, { .version = 1 })))
        ROW(nvmlDeviceGetVgpuProcessesUtilizationInfo, INSUFFICIENT_SIZE, HOST, (s->device, P_INFOS(.vgpuProcessCount = 0)), NOW(process_infos).vgpuProcessCount == 2)
        ROW(nvmlDeviceGetVgpuProcessesUtilizationInfo, NOT_FOUND, HOST, (s->device, P_INFOS(P_ROOM, .lastSeenTimeStamp = FUTURE)))
        ROW(nvmlDeviceGetVgpuProcessesUtilizationInfo, SUCCESS, HOST, (s->device, P_INFOS(P_ROOM)), NOW(process_info)[0].smUtil == 20)
        /* clang-format on */
}
