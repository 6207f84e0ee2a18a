/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about one vGPU, and set on it. */
#include "conformance/rows.h"

static void play_texts(struct run *run)
{
        /* clang-format off */
        INSTANCE_ROWS(nvmlVgpuInstanceGetVmID, NOW(text), 80, OUT(vm_id_type))
        ROW(nvmlVgpuInstanceGetVmID, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, 80, OUT(vm_id_type)))
        ROW(nvmlVgpuInstanceGetVmID, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NOW(text), 80, NULL))
        ROW(nvmlVgpuInstanceGetVmID, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, NOW(text), 4, OUT(vm_id_type)))
        ROW(nvmlVgpuInstanceGetVmID, SUCCESS, HOST, (FIXTURE_TRAIN, NOW(text), 5, OUT(vm_id_type)))

        INSTANCE_ROWS(nvmlVgpuInstanceGetUUID, NOW(text), 80)
        ROW(nvmlVgpuInstanceGetUUID, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, 80))
        ROW(nvmlVgpuInstanceGetUUID, NOT_FOUND, HOST, (SCENE_NOBODY, NOW(text), 1))
        ROW(nvmlVgpuInstanceGetUUID, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, NOW(text), 36))

        INSTANCE_ROWS(nvmlVgpuInstanceGetVmDriverVersion, NOW(text), 80)
        ROW(nvmlVgpuInstanceGetVmDriverVersion, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, 80))
        ROW(nvmlVgpuInstanceGetVmDriverVersion, NOT_FOUND, HOST, (SCENE_NOBODY, NOW(text), 1))
        ROW(nvmlVgpuInstanceGetVmDriverVersion, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, NOW(text), 5))
        ROW(nvmlVgpuInstanceGetVmDriverVersion, SUCCESS, HOST, (SCENE_STOPPED, NOW(text), 80), NOW(text)[0] == 'N')
        ROW(nvmlVgpuInstanceGetVmDriverVersion, SUCCESS, HOST, (FIXTURE_INFER, NOW(text), 80), NOW(text)[0] == 'N')

        INSTANCE_ROWS(nvmlVgpuInstanceGetMdevUUID, NOW(text), 80)
        ROW(nvmlVgpuInstanceGetMdevUUID, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, 80))
        ROW(nvmlVgpuInstanceGetMdevUUID, NOT_FOUND, HOST, (SCENE_NOBODY, NOW(text), 1))
        ROW(nvmlVgpuInstanceGetMdevUUID, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, NOW(text), 36))
        ROW(nvmlVgpuInstanceGetMdevUUID, NOT_SUPPORTED, HOST, (FIXTURE_INFER, NOW(text), 80))

        INSTANCE_ROWS(nvmlVgpuInstanceGetGpuPciId, NOW(text), IN(size, 32))
        ROW(nvmlVgpuInstanceGetGpuPciId, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, IN(size, 32)))
        ROW(nvmlVgpuInstanceGetGpuPciId, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NOW(text), NULL))
        ROW(nvmlVgpuInstanceGetGpuPciId, NOT_FOUND, HOST, (SCENE_NOBODY, NOW(text), IN(size, 1)))
        ROW(nvmlVgpuInstanceGetGpuPciId, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, NOW(text), IN(size, 16)), NOW(size) == 17)
        ROW(nvmlVgpuInstanceGetGpuPciId, DRIVER_NOT_LOADED, HOST, (SCENE_STOPPED, NOW(text), IN(size, 32)))
        ROW(nvmlVgpuInstanceGetGpuPciId, SUCCESS, HOST, (FIXTURE_INFER, NOW(text), IN(size, 32)), NOW(text)[9] == '0')
        /* clang-format on */
}

static void play_numbers(struct run *run)
{
        /* clang-format off */
        INSTANCE_ROWS(nvmlVgpuInstanceGetFbUsage, OUT(wide))
        ROW(nvmlVgpuInstanceGetFbUsage, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetFbUsage, SUCCESS, HOST, (FIXTURE_TRAIN, OUT(wide)), NOW(wide) == 6 * GIB)
        INSTANCE_ROWS(nvmlVgpuInstanceGetType, OUT(number))
        ROW(nvmlVgpuInstanceGetType, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetType, SUCCESS, HOST, (SCENE_MIGGED, OUT(number)), NOW(number) == SCENE_MIG_TYPE)
        INSTANCE_ROWS(nvmlVgpuInstanceGetGpuInstanceId, OUT(number))
        ROW(nvmlVgpuInstanceGetGpuInstanceId, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetGpuInstanceId, SUCCESS, HOST, (SCENE_MIGGED, OUT(number)), NOW(number) == 1)
        ROW(nvmlVgpuInstanceGetGpuInstanceId, SUCCESS, HOST, (FIXTURE_TRAIN, OUT(number)), NOW(number) == 0xffffffff)

        INSTANCE_ROWS(nvmlVgpuInstanceGetFrameRateLimit, OUT(number))
        ROW(nvmlVgpuInstanceGetFrameRateLimit, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetFrameRateLimit, NOT_SUPPORTED, HOST, (SCENE_STOPPED, OUT(number)))
        INSTANCE_ROWS(nvmlVgpuInstanceGetEccMode, OUT(state))
        ROW(nvmlVgpuInstanceGetEccMode, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetEccMode, NOT_SUPPORTED, HOST, (SCENE_STOPPED, OUT(state)))

        INSTANCE_ROWS(nvmlVgpuInstanceGetPlacementId, IN(placement, { .version = 0x01000008 }))
        ROW(nvmlVgpuInstanceGetPlacementId, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetPlacementId, ARGUMENT_VERSION_MISMATCH, HOST, (0, IN(placement, { .version = 1 })))
        ROW(nvmlVgpuInstanceGetPlacementId, SUCCESS, HOST, (FIXTURE_TRAIN, IN(placement, { .version = 0x01000008 })),
            NOW(placement).placementId == 0xffff)
        ROW(nvmlVgpuInstanceGetPlacementId, SUCCESS, HOST, (SCENE_MIGGED, IN(placement, { .version = 0x01000008 })),
            NOW(placement).placementId == 0)

        INSTANCE_ROWS(nvmlVgpuInstanceGetRuntimeStateSize, IN(runtime, { .version = 0x01000010 }))
        ROW(nvmlVgpuInstanceGetRuntimeStateSize, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetRuntimeStateSize, NOT_FOUND, HOST, (SCENE_NOBODY, NULL))
        ROW(nvmlVgpuInstanceGetRuntimeStateSize, ARGUMENT_VERSION_MISMATCH, HOST, (FIXTURE_TRAIN, IN(runtime, { .version = 1 })))
        /* clang-format on */
}

static void play_licence(struct run *run)
{
        /* clang-format off */
        INSTANCE_ROWS(nvmlVgpuInstanceGetLicenseStatus, OUT(number))
        ROW(nvmlVgpuInstanceGetLicenseStatus, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetLicenseStatus, SUCCESS, HOST, (FIXTURE_TRAIN, OUT(number)), NOW(number) == 1)
        ROW(nvmlVgpuInstanceGetLicenseStatus, SUCCESS, HOST, (SCENE_STOPPED, OUT(number)), NOW(number) == 0)
        INSTANCE_ROWS(nvmlVgpuInstanceGetLicenseInfo_v2, OUT(licence))
        ROW(nvmlVgpuInstanceGetLicenseInfo_v2, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetLicenseInfo_v2, DRIVER_NOT_LOADED, HOST, (SCENE_STOPPED, OUT(licence)))
        ROW(nvmlVgpuInstanceGetLicenseInfo_v2, DRIVER_NOT_LOADED, HOST, (FIXTURE_INFER, OUT(licence)))
        INSTANCE_ROWS(nvmlVgpuInstanceGetLicenseInfo, OUT(licence_v1))
        ROW(nvmlVgpuInstanceGetLicenseInfo, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetLicenseInfo, DRIVER_NOT_LOADED, HOST, (SCENE_STOPPED, OUT(licence_v1)))
        /* clang-format on */
}

static void play_sessions(struct run *run)
{
        /* clang-format off */
        INSTANCE_ROWS(nvmlVgpuInstanceGetEncoderCapacity, OUT(number))
        ROW(nvmlVgpuInstanceGetEncoderCapacity, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        CHANGE_ROWS(nvmlVgpuInstanceSetEncoderCapacity, FIXTURE_TRAIN, 100)
        ROW(nvmlVgpuInstanceSetEncoderCapacity, INVALID_ARGUMENT, HOST, (0, 50))
        ROW(nvmlVgpuInstanceSetEncoderCapacity, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, 101))
        ROW(nvmlVgpuInstanceSetEncoderCapacity, NOT_FOUND, HOST, (SCENE_NOBODY, 101))
        ROW(nvmlVgpuInstanceSetEncoderCapacity, NOT_SUPPORTED, GUEST, (FIXTURE_TRAIN, 50))

        INSTANCE_ROWS(nvmlVgpuInstanceGetEncoderStats, OUT(number), OUT(number2), OUT(number3))
        ROW(nvmlVgpuInstanceGetEncoderStats, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, OUT(number2), OUT(number3)))
        ROW(nvmlVgpuInstanceGetEncoderStats, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, OUT(number), NULL, OUT(number3)))
        ROW(nvmlVgpuInstanceGetEncoderStats, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, OUT(number), OUT(number2), NULL))
        INSTANCE_ROWS(nvmlVgpuInstanceGetEncoderSessions, IN(count, 4), NOW(encoders))
        ROW(nvmlVgpuInstanceGetEncoderSessions, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, NOW(encoders)))
        ROW(nvmlVgpuInstanceGetEncoderSessions, SUCCESS, HOST, (FIXTURE_TRAIN, IN(count, 0), NULL), NOW(count) == 2)
        ROW(nvmlVgpuInstanceGetEncoderSessions, SUCCESS, HOST, (FIXTURE_TRAIN, IN(count, 0), NOW(encoders)), NOW(count) == 2)
        ROW(nvmlVgpuInstanceGetEncoderSessions, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, IN(count, 1), NOW(encoders)), NOW(count) == 2)
        ROW(nvmlVgpuInstanceGetEncoderSessions, SUCCESS, HOST, (FIXTURE_TRAIN, IN(count, 4), NOW(encoders)), NOW(count) == 2)

        INSTANCE_ROWS(nvmlVgpuInstanceGetFBCStats, OUT(capture_stats))
        ROW(nvmlVgpuInstanceGetFBCStats, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetFBCStats, SUCCESS, HOST, (FIXTURE_TRAIN, OUT(capture_stats)), NOW(capture_stats).sessionsCount == 2)
        INSTANCE_ROWS(nvmlVgpuInstanceGetFBCSessions, IN(count, 4), NOW(captures))
        ROW(nvmlVgpuInstanceGetFBCSessions, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, NOW(captures)))
        ROW(nvmlVgpuInstanceGetFBCSessions, SUCCESS, HOST, (FIXTURE_TRAIN, IN(count, 0), NULL), NOW(count) == 2)
        ROW(nvmlVgpuInstanceGetFBCSessions, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, IN(count, 1), NOW(captures)), NOW(count) == 2)
        /* clang-format on */
}

static void play_accounting(struct run *run)
{
        /* clang-format off */
        INSTANCE_ROWS(nvmlVgpuInstanceGetAccountingMode, OUT(state))
        ROW(nvmlVgpuInstanceGetAccountingMode, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL))
        ROW(nvmlVgpuInstanceGetAccountingMode, NOT_SUPPORTED, HOST, (SCENE_STOPPED, OUT(state)))
        ROW(nvmlVgpuInstanceGetAccountingMode, DRIVER_NOT_LOADED, HOST, (FIXTURE_INFER, OUT(state)))
        ROW(nvmlVgpuInstanceGetAccountingMode, SUCCESS, HOST, (SCENE_PLAIN, OUT(state)), NOW(state) == 0)

        INSTANCE_ROWS(nvmlVgpuInstanceGetAccountingPids, IN(count, 4000), NOW(pids))
        ROW(nvmlVgpuInstanceGetAccountingPids, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, NULL, NOW(pids)))
        ROW(nvmlVgpuInstanceGetAccountingPids, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, IN(count, 0), NULL), NOW(count) == 4000)
        ROW(nvmlVgpuInstanceGetAccountingPids, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, IN(count, 0), NOW(pids)), NOW(count) == 4000)
        ROW(nvmlVgpuInstanceGetAccountingPids, INVALID_ARGUMENT, HOST, (0, IN(count, 0), NULL))
        ROW(nvmlVgpuInstanceGetAccountingPids, NOT_FOUND, HOST, (SCENE_NOBODY, IN(count, 0), NULL))
        ROW(nvmlVgpuInstanceGetAccountingPids, SUCCESS, HOST, (SCENE_MIGGED, IN(count, 0), NULL), NOW(count) == 0)
        ROW(nvmlVgpuInstanceGetAccountingPids, INVALID_ARGUMENT, HOST, (SCENE_NOBODY, IN(count, 1), NULL))
        ROW(nvmlVgpuInstanceGetAccountingPids, NOT_SUPPORTED, HOST, (SCENE_STOPPED, IN(count, 4), NOW(pids)))
        ROW(nvmlVgpuInstanceGetAccountingPids, NOT_SUPPORTED, HOST, (SCENE_PLAIN, IN(count, 4), NOW(pids)))
        ROW(nvmlVgpuInstanceGetAccountingPids, SUCCESS, HOST, (FIXTURE_TRAIN, IN(count, 4), NOW(pids)), NOW(count) == 1 && NOW(pids)[0] == 4242)
        ROW(nvmlVgpuInstanceGetAccountingPids, SUCCESS, HOST, (SCENE_MIGGED, IN(count, 4), NOW(pids)), NOW(count) == 0)

        INSTANCE_ROWS(nvmlVgpuInstanceGetAccountingStats, 4242, OUT(stats))
        ROW(nvmlVgpuInstanceGetAccountingStats, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, 4242, NULL))
        ROW(nvmlVgpuInstanceGetAccountingStats, NOT_FOUND, HOST, (FIXTURE_TRAIN, 1, OUT(stats)))
        ROW(nvmlVgpuInstanceGetAccountingStats, NOT_SUPPORTED, HOST, (SCENE_PLAIN, 4242, OUT(stats)))
        ROW(nvmlVgpuInstanceGetAccountingStats, NOT_SUPPORTED, HOST, (SCENE_STOPPED, 4242, OUT(stats)))

        CHANGE_ROWS(nvmlVgpuInstanceClearAccountingPids, FIXTURE_TRAIN)
        ROW(nvmlVgpuInstanceClearAccountingPids, INVALID_ARGUMENT, HOST, (0))
        ROW(nvmlVgpuInstanceClearAccountingPids, NOT_FOUND, HOST, (SCENE_NOBODY))
        ROW(nvmlVgpuInstanceClearAccountingPids, NOT_SUPPORTED, HOST, (SCENE_PLAIN))
        ROW(nvmlVgpuInstanceClearAccountingPids, NOT_SUPPORTED, HOST, (SCENE_STOPPED))
        /* clang-format on */
}

void play_instances(struct run *run)
{
        play_texts(run);
        play_numbers(run);
        play_licence(run);
        play_sessions(run);
        play_accounting(run);
}
