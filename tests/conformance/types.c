/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about a vGPU type. */
#include "conformance/rows.h"

static void play_names(struct run *run)
{
        /* clang-format off */
        TYPE_ROWS(nvmlVgpuTypeGetClass, NOW(text), IN(size, 64))
        ROW(nvmlVgpuTypeGetClass, INVALID_ARGUMENT, HOST, (s->type, NOW(text), NULL))
        ROW(nvmlVgpuTypeGetClass, INVALID_ARGUMENT, HOST, (s->type, NULL, IN(size, 64)))
        ROW(nvmlVgpuTypeGetClass, INSUFFICIENT_SIZE, HOST, (s->type, NULL, IN(size, 4)), NOW(size) == 8)
        ROW(nvmlVgpuTypeGetClass, SUCCESS, HOST, (s->type, NOW(text), IN(size, 16))) /* nvidia-smi */

        TYPE_ROWS(nvmlVgpuTypeGetName, NOW(text), IN(size, 64))
        ROW(nvmlVgpuTypeGetName, INVALID_ARGUMENT, HOST, (0, NOW(text), IN(size, 4)))
        ROW(nvmlVgpuTypeGetName, INVALID_ARGUMENT, HOST, (s->type, NOW(text), NULL))
        ROW(nvmlVgpuTypeGetName, INVALID_ARGUMENT, HOST, (s->type, NULL, IN(size, 64)))
        ROW(nvmlVgpuTypeGetName, INSUFFICIENT_SIZE, HOST, (s->type, NULL, IN(size, 15)), NOW(size) == 16)
        ROW(nvmlVgpuTypeGetName, SUCCESS, GUEST, (s->type, NOW(text), IN(size, 64)))
        ROW(nvmlVgpuTypeGetName, INVALID_ARGUMENT, GUEST, (SCENE_MIG_TYPE, NOW(text), IN(size, 64)))

        TYPE_ROWS(nvmlVgpuTypeGetLicense, NOW(text), 128)
        ROW(nvmlVgpuTypeGetLicense, INVALID_ARGUMENT, HOST, (s->type, NULL, 128))
        ROW(nvmlVgpuTypeGetLicense, INVALID_ARGUMENT, HOST, (0, NOW(text), 127))
        ROW(nvmlVgpuTypeGetLicense, INSUFFICIENT_SIZE, HOST, (s->type, NOW(text), 48))
        ROW(nvmlVgpuTypeGetLicense, SUCCESS, HOST, (s->type, NOW(text), 49))

        TYPE_ROWS(nvmlVgpuTypeGetGpuInstanceProfileId, OUT(number))
        ROW(nvmlVgpuTypeGetGpuInstanceProfileId, INVALID_ARGUMENT, HOST, (s->type, NULL))
        ROW(nvmlVgpuTypeGetGpuInstanceProfileId, SUCCESS, HOST, (s->type, OUT(number)), NOW(number) == 0xffffffff)
        ROW(nvmlVgpuTypeGetGpuInstanceProfileId, SUCCESS, HOST, (SCENE_MIG_TYPE, OUT(number)), NOW(number) == 19)
        ROW(nvmlVgpuTypeGetGpuInstanceProfileId, NOT_SUPPORTED, GUEST, (s->type, OUT(number)))

        TYPE_ROWS(nvmlVgpuTypeGetDeviceID, OUT(wide), OUT(wide2))
        ROW(nvmlVgpuTypeGetDeviceID, INVALID_ARGUMENT, HOST, (s->type, NULL, OUT(wide2)))
        ROW(nvmlVgpuTypeGetDeviceID, INVALID_ARGUMENT, HOST, (s->type, OUT(wide), NULL))
        ROW(nvmlVgpuTypeGetDeviceID, SUCCESS, HOST, (s->type, OUT(wide), OUT(wide2)), NOW(wide) == 0x2335)
        /* clang-format on */
}

static void play_sizes(struct run *run)
{
        /* clang-format off */
        TYPE_ROWS(nvmlVgpuTypeGetFramebufferSize, OUT(wide))
        ROW(nvmlVgpuTypeGetFramebufferSize, INVALID_ARGUMENT, HOST, (s->type, NULL))
        ROW(nvmlVgpuTypeGetFramebufferSize, SUCCESS, HOST, (SCENE_MIG_TYPE, OUT(wide)), NOW(wide) == 8 * GIB)
        TYPE_ROWS(nvmlVgpuTypeGetGspHeapSize, OUT(wide))
        ROW(nvmlVgpuTypeGetGspHeapSize, INVALID_ARGUMENT, HOST, (s->type, NULL))
        TYPE_ROWS(nvmlVgpuTypeGetFbReservation, OUT(wide))
        ROW(nvmlVgpuTypeGetFbReservation, INVALID_ARGUMENT, HOST, (s->type, NULL))
        TYPE_ROWS(nvmlVgpuTypeGetNumDisplayHeads, OUT(number))
        ROW(nvmlVgpuTypeGetNumDisplayHeads, INVALID_ARGUMENT, HOST, (s->type, NULL))
        TYPE_ROWS(nvmlVgpuTypeGetMaxInstancesPerVm, OUT(number))
        ROW(nvmlVgpuTypeGetMaxInstancesPerVm, INVALID_ARGUMENT, HOST, (s->type, NULL))
        ROW(nvmlVgpuTypeGetMaxInstancesPerVm, SUCCESS, HOST, (SCENE_MIG_TYPE, OUT(number)), NOW(number) == 1)

        TYPE_ROWS(nvmlVgpuTypeGetResolution, 0, OUT(number), OUT(number2))
        ROW(nvmlVgpuTypeGetResolution, INVALID_ARGUMENT, HOST, (s->type, 0, NULL, OUT(number2)))
        ROW(nvmlVgpuTypeGetResolution, INVALID_ARGUMENT, HOST, (s->type, 0, OUT(number), NULL))
        ROW(nvmlVgpuTypeGetResolution, INVALID_ARGUMENT, HOST, (SCENE_MIG_TYPE, 1, OUT(number), OUT(number2)))

        ROW(nvmlVgpuTypeGetFrameRateLimit, SUCCESS, HOST, (SCENE_MIG_TYPE, OUT(number)), NOW(number) == 60)
        ROW(nvmlVgpuTypeGetFrameRateLimit, NOT_SUPPORTED, HOST, (s->type, OUT(number)))
        ROW(nvmlVgpuTypeGetFrameRateLimit, INVALID_ARGUMENT, HOST, (s->type, NULL))
        ROW(nvmlVgpuTypeGetFrameRateLimit, INVALID_ARGUMENT, HOST, (0, OUT(number)))
        ROW(nvmlVgpuTypeGetFrameRateLimit, INVALID_ARGUMENT, HOST, (SCENE_NO_TYPE, OUT(number)))

        TYPE_ROWS(nvmlVgpuTypeGetCapabilities, NVML_VGPU_CAP_GPUDIRECT, OUT(number))
        ROW(nvmlVgpuTypeGetCapabilities, INVALID_ARGUMENT, HOST, (s->type, NVML_VGPU_CAP_COUNT, OUT(number)))
        ROW(nvmlVgpuTypeGetCapabilities, INVALID_ARGUMENT, HOST, (s->type, NVML_VGPU_CAP_GPUDIRECT, NULL))

        TYPE_ROWS(nvmlVgpuTypeGetBAR1Info, IN(bar1, { .version = 0x01000010 }))
        ROW(nvmlVgpuTypeGetBAR1Info, INVALID_ARGUMENT, HOST, (s->type, NULL))
        ROW(nvmlVgpuTypeGetBAR1Info, INVALID_ARGUMENT, HOST, (0, IN(bar1, { .version = 1 })))
        ROW(nvmlVgpuTypeGetBAR1Info, ARGUMENT_VERSION_MISMATCH, HOST, (SCENE_NO_TYPE, IN(bar1, { .version = 1 })))

        ROW(nvmlVgpuTypeGetMaxInstancesPerGpuInstance, SUCCESS, HOST,
            (IN(most, { 0x0100000c, SCENE_MIG_TYPE, 0 })), NOW(most).maxInstancePerGI == 2)
        ROW(nvmlVgpuTypeGetMaxInstancesPerGpuInstance, NOT_SUPPORTED, HOST, (IN(most, { 0x0100000c, s->type, 0 })))
        ROW(nvmlVgpuTypeGetMaxInstancesPerGpuInstance, INVALID_ARGUMENT, HOST, (NULL))
        ROW(nvmlVgpuTypeGetMaxInstancesPerGpuInstance, INVALID_ARGUMENT, HOST, (IN(most, { 1, 0, 0 })))
        ROW(nvmlVgpuTypeGetMaxInstancesPerGpuInstance, INVALID_ARGUMENT, HOST, (IN(most, { 0x0100000c, SCENE_NO_TYPE, 0 })))
        ROW(nvmlVgpuTypeGetMaxInstancesPerGpuInstance, ARGUMENT_VERSION_MISMATCH, HOST, (IN(most, { 1, SCENE_NO_TYPE, 0 })))
        /* clang-format on */
}

void play_types(struct run *run)
{
        play_names(run);
        play_sizes(run);
}
