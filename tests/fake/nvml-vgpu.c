/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the fake NVML about types and vGPUs. */
#include <string.h>

#include "abi/nvml-vgpu-calls.h"
#include "fake/nvml-internal.h"

#define OPAQUE 256

/* Types. */

static nvmlReturn_t give_type_text(const char *function, nvmlVgpuTypeId_t id, char *to,
                                   unsigned int *size, const char *what)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(function, id, &type);

        if (r != NVML_SUCCESS)
                return r;
        if (*size < NVML_VGPU_NAME_BUFFER_SIZE || fake_nvml.is_insatiable) {
                *size = NVML_VGPU_NAME_BUFFER_SIZE;
                return NVML_ERROR_INSUFFICIENT_SIZE;
        }
        return fake_text(to, *size, what ? what : type->name);
}

nvmlReturn_t nvmlVgpuTypeGetName(nvmlVgpuTypeId_t id, char *to, unsigned int *size)
{
        return give_type_text(__func__, id, to, size, NULL);
}

nvmlReturn_t nvmlVgpuTypeGetClass(nvmlVgpuTypeId_t id, char *to, unsigned int *size)
{
        return give_type_text(__func__, id, to, size, "Compute");
}

nvmlReturn_t nvmlVgpuTypeGetLicense(nvmlVgpuTypeId_t id, char *to, unsigned int size)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        return r == NVML_SUCCESS ? fake_text(to, size, "NVIDIA Virtual Compute,9.0") : r;
}

nvmlReturn_t nvmlVgpuTypeGetGpuInstanceProfileId(nvmlVgpuTypeId_t id, unsigned int *profile)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        if (r == NVML_SUCCESS)
                *profile = type->profile;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetDeviceID(nvmlVgpuTypeId_t id, unsigned long long *device_id,
                                     unsigned long long *subsystem_id)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        *device_id = 0x233510de;
        *subsystem_id = 0x18be10de;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetFramebufferSize(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        if (r == NVML_SUCCESS)
                *bytes = type->frame_buffer;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetNumDisplayHeads(nvmlVgpuTypeId_t id, unsigned int *heads)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        *heads = 1;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetResolution(nvmlVgpuTypeId_t id, unsigned int head, unsigned int *x,
                                       unsigned int *y)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        *x = 4096;
        *y = 2160;
        return r == NVML_SUCCESS && head >= 1 ? NVML_ERROR_INVALID_ARGUMENT : r;
}

nvmlReturn_t nvmlVgpuTypeGetFrameRateLimit(nvmlVgpuTypeId_t id, unsigned int *fps)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        if (r != NVML_SUCCESS)
                return r;
        *fps = type->fps;
        return type->fps > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlVgpuTypeGetMaxInstances(nvmlDevice_t device, nvmlVgpuTypeId_t id,
                                         unsigned int *count)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r == NVML_SUCCESS)
                r = fake_begin_type(__func__, id, &type);
        if (r == NVML_SUCCESS)
                *count = type->maximum;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerVm(nvmlVgpuTypeId_t id, unsigned int *count)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        *count = 16;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerGpuInstance(nvmlVgpuTypeMaxInstance_v1_t *maximum)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, maximum->vgpuTypeId, &type);

        if (r != NVML_SUCCESS)
                return r;
        if (maximum->version != NVML_VERSION(nvmlVgpuTypeMaxInstance_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        maximum->maxInstancePerGI = 3;
        return type->profile == 0xffffffff ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlVgpuTypeGetBAR1Info(nvmlVgpuTypeId_t id, nvmlVgpuTypeBar1Info_v1_t *info)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        if (r == NVML_SUCCESS && info->version != NVML_VERSION(nvmlVgpuTypeBar1Info_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        info->bar1Size = 4096;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetCapabilities(nvmlVgpuTypeId_t id, nvmlVgpuCapability_t capability,
                                         unsigned int *flag)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        *flag = capability == NVML_VGPU_CAP_GPUDIRECT ? 42 : 0;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetGspHeapSize(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        *bytes = 100 << 20;
        return r;
}

nvmlReturn_t nvmlVgpuTypeGetFbReservation(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        const struct fake_type *type;
        nvmlReturn_t r = fake_begin_type(__func__, id, &type);

        *bytes = 200 << 20;
        return r;
}

/* vGPUs. */

nvmlReturn_t nvmlVgpuInstanceGetType(nvmlVgpuInstance_t id, nvmlVgpuTypeId_t *type)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r == NVML_SUCCESS)
                *type = instance->type;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetPlacementId(nvmlVgpuInstance_t id,
                                            nvmlVgpuPlacementId_v1_t *placement)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r != NVML_SUCCESS)
                return r;
        if (placement->version != NVML_VERSION(nvmlVgpuPlacementId_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        placement->placementId = instance->placement;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetGpuInstanceId(nvmlVgpuInstance_t id, unsigned int *part)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r == NVML_SUCCESS)
                *part = instance->gpu_instance;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetUUID(nvmlVgpuInstance_t id, char *to, unsigned int size)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        return r == NVML_SUCCESS ? fake_text(to, size, instance->uuid) : r;
}

/* As long as a name of a virtual machine may be, which is more than most would think. */
nvmlReturn_t nvmlVgpuInstanceGetVmID(nvmlVgpuInstance_t id, char *to, unsigned int size,
                                     nvmlVgpuVmIdType_t *kind)
{
        const struct fake_instance *instance;
        char longer[120];
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        memset(longer, 'v', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        *kind = id == FAKE_INFER ? NVML_VGPU_VM_ID_UUID : NVML_VGPU_VM_ID_DOMAIN_ID;
        return r == NVML_SUCCESS ? fake_text(to, size, id == FAKE_INFER ? longer : "1000") : r;
}

nvmlReturn_t nvmlVgpuInstanceGetVmDriverVersion(nvmlVgpuInstance_t id, char *to, unsigned int size)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);
        const char *none = fake_nvml.driver < 450 ? "Unknown" : "Not Available";

        return r == NVML_SUCCESS ? fake_text(to, size, instance->has_guest ? "550.54" : none) : r;
}

nvmlReturn_t nvmlVgpuInstanceGetMdevUUID(nvmlVgpuInstance_t id, char *to, unsigned int size)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r != NVML_SUCCESS)
                return r;
        return id == FAKE_MIG ? NVML_ERROR_NOT_SUPPORTED
                              : fake_text(to, size, "99999999-0000-4000-8000-000000000000");
}

nvmlReturn_t nvmlVgpuInstanceGetGpuPciId(nvmlVgpuInstance_t id, char *to, unsigned int *size)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r != NVML_SUCCESS)
                return r;
        if (!instance->has_guest)
                return NVML_ERROR_DRIVER_NOT_LOADED;
        return fake_text(to, *size, "00000000:02:04.0");
}

nvmlReturn_t nvmlVgpuInstanceGetFbUsage(nvmlVgpuInstance_t id, unsigned long long *bytes)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        *bytes = 6442450944;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetRuntimeStateSize(nvmlVgpuInstance_t id,
                                                 nvmlVgpuRuntimeState_v1_t *state)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r == NVML_SUCCESS && state->version != NVML_VERSION(nvmlVgpuRuntimeState_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        state->size = 77 << 20;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetFrameRateLimit(nvmlVgpuInstance_t id, unsigned int *fps)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        *fps = 60;
        return r == NVML_SUCCESS && id == FAKE_TRAIN ? NVML_ERROR_NOT_SUPPORTED : r;
}

nvmlReturn_t nvmlVgpuInstanceGetEccMode(nvmlVgpuInstance_t id, nvmlEnableState_t *mode)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        *mode = NVML_FEATURE_ENABLED;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetEncoderCapacity(nvmlVgpuInstance_t id, unsigned int *percent)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        *percent = 100;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceSetEncoderCapacity(nvmlVgpuInstance_t id, unsigned int percent)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        fake_nvml.set[0] = percent;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetEncoderStats(nvmlVgpuInstance_t id, unsigned int *sessions,
                                             unsigned int *fps, unsigned int *latency_us)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        *sessions = id == FAKE_TRAIN ? 2 : 0;
        *fps = id == FAKE_TRAIN ? 59 : 0;
        *latency_us = id == FAKE_TRAIN ? 1234 : 0;
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetEncoderSessions(nvmlVgpuInstance_t id, unsigned int *count,
                                                nvmlEncoderSessionInfo_t *sessions)
{
        static const nvmlEncoderSessionInfo_t all[] = {
                { 1, 4242, FAKE_TRAIN, NVML_ENCODER_QUERY_H264, 1920, 1080, 60, 1200 },
                { 2, 4243, FAKE_TRAIN, NVML_ENCODER_QUERY_AV1, 3840, 2160, 58, 1268 },
        };
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        return r == NVML_SUCCESS ? fake_give(all, id == FAKE_TRAIN ? 2 : 0, sizeof(all[0]),
                                             sessions, count, NVML_SUCCESS)
                                 : r;
}

nvmlReturn_t nvmlVgpuInstanceGetFBCStats(nvmlVgpuInstance_t id, nvmlFBCStats_t *stats)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        *stats = id == FAKE_TRAIN ? (nvmlFBCStats_t){ 1, 30, 900 } : (nvmlFBCStats_t){ 0, 0, 0 };
        return r;
}

nvmlReturn_t nvmlVgpuInstanceGetFBCSessions(nvmlVgpuInstance_t id, unsigned int *count,
                                            nvmlFBCSessionInfo_t *sessions)
{
        static const nvmlFBCSessionInfo_t all[] = {
                { 9, 4242, FAKE_TRAIN, 0, NVML_FBC_SESSION_TYPE_CUDA, 5, 4096, 2160, 1920, 1080, 30,
                  900 },
        };
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        return r == NVML_SUCCESS ? fake_give(all, id == FAKE_TRAIN ? 1 : 0, sizeof(all[0]),
                                             sessions, count, NVML_SUCCESS)
                                 : r;
}

/* Licence: one with an end, one without a guest. */

nvmlReturn_t nvmlVgpuInstanceGetLicenseStatus(nvmlVgpuInstance_t id, unsigned int *licensed)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r == NVML_SUCCESS)
                *licensed = instance->has_guest;
        return r;
}

static const nvmlVgpuLicenseExpiry_t expiry = { 2026, 11, 23, 5, 2, 12, 2 };

nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo(nvmlVgpuInstance_t id, nvmlVgpuLicenseInfo_v1_t *info)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r != NVML_SUCCESS)
                return r;
        *info = (nvmlVgpuLicenseInfo_v1_t){ .isLicensed = 1, .licenseExpiry = expiry };
        return instance->has_guest ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo_v2(nvmlVgpuInstance_t id, nvmlVgpuLicenseInfo_t *info)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r != NVML_SUCCESS)
                return r;
        *info = (nvmlVgpuLicenseInfo_t){ .isLicensed = 1,
                                         .licenseExpiry = expiry,
                                         .currentState = 5 };
        return instance->has_guest ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

/* Accounting. */

nvmlReturn_t nvmlVgpuInstanceGetAccountingMode(nvmlVgpuInstance_t id, nvmlEnableState_t *mode)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r != NVML_SUCCESS)
                return r;
        *mode = NVML_FEATURE_ENABLED;
        return instance->has_guest ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

/* Says 4000 to who only asks, as the driver does. */
nvmlReturn_t nvmlVgpuInstanceGetAccountingPids(nvmlVgpuInstance_t id, unsigned int *count,
                                               unsigned int *pids)
{
        static const unsigned int all[] = { 4242, 4243, 4000000000 };
        const struct fake_instance *instance;
        nvmlReturn_t r;

        if (!pids && *count == 0 && !fake_nvml.answer_of) {
                *count = 4000;
                return NVML_ERROR_INSUFFICIENT_SIZE;
        }
        r = fake_begin_instance(__func__, id, &instance);
        return r == NVML_SUCCESS ? fake_give(all, 3, sizeof(all[0]), pids, count,
                                             NVML_ERROR_INSUFFICIENT_SIZE)
                                 : r;
}

nvmlReturn_t nvmlVgpuInstanceGetAccountingStats(nvmlVgpuInstance_t id, unsigned int pid,
                                                nvmlAccountingStats_t *stats)
{
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r == NVML_SUCCESS && pid != 4242)
                return NVML_ERROR_NOT_FOUND;
        *stats = (nvmlAccountingStats_t){ .gpuUtilization = 31,
                                          .memoryUtilization = 0xffffffff,
                                          .maxMemoryUsage = 1 << 30,
                                          .time = 60000,
                                          .startTime = 1700000000000000 };
        return r;
}

nvmlReturn_t nvmlVgpuInstanceClearAccountingPids(nvmlVgpuInstance_t id)
{
        const struct fake_instance *instance;

        return fake_begin_instance(__func__, id, &instance);
}

/* Migration. */

static nvmlReturn_t give_metadata(const void *head, size_t head_size, void *to, unsigned int *size)
{
        char bytes[1024];
        size_t needed = head_size + OPAQUE;

        memset(bytes, 'o', sizeof(bytes));
        memcpy(bytes, head, head_size);
        return fake_give(bytes, (unsigned int)needed, 1, to, size, NVML_ERROR_INSUFFICIENT_SIZE);
}

nvmlReturn_t nvmlVgpuInstanceGetMetadata(nvmlVgpuInstance_t id, nvmlVgpuMetadata_t *metadata,
                                         unsigned int *size)
{
        nvmlVgpuMetadata_t head = { .version = 3,
                                    .revision = 1,
                                    .guestDriverVersion = "550.54",
                                    .hostDriverVersion = "610.10",
                                    .vgpuVirtualizationCaps = 1,
                                    .guestVgpuVersion = 0x1a0001 };
        const struct fake_instance *instance;
        nvmlReturn_t r = fake_begin_instance(__func__, id, &instance);

        if (r != NVML_SUCCESS)
                return r;
        head.guestInfoState = instance->has_guest
                                      ? NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED
                                      : NVML_VGPU_INSTANCE_GUEST_INFO_STATE_UNINITIALIZED;
        head.opaqueDataSize = fake_nvml.is_crippled ? 1 << 30 : OPAQUE;
        return give_metadata(&head, offsetof(nvmlVgpuMetadata_t, opaqueData), metadata, size);
}

nvmlReturn_t nvmlDeviceGetVgpuMetadata(nvmlDevice_t device, nvmlVgpuPgpuMetadata_t *metadata,
                                       unsigned int *size)
{
        nvmlVgpuPgpuMetadata_t head = { .version = 3,
                                        .revision = 1,
                                        .hostDriverVersion = "610.10",
                                        .pgpuVirtualizationCaps = 1,
                                        .hostSupportedVgpuRange = { 0x180001, 0x1c0001 } };
        nvmlReturn_t r = fake_begin_device(__func__, device);

        if (r != NVML_SUCCESS)
                return r;
        head.opaqueDataSize = fake_nvml.is_crippled ? 1 << 30 : OPAQUE;
        return give_metadata(&head, offsetof(nvmlVgpuPgpuMetadata_t, opaqueData), metadata, size);
}

nvmlReturn_t nvmlGetVgpuCompatibility(nvmlVgpuMetadata_t *vgpu, nvmlVgpuPgpuMetadata_t *pgpu,
                                      nvmlVgpuPgpuCompatibility_t *compatibility)
{
        nvmlReturn_t r = fake_begin(__func__);
        bool fits = vgpu->guestInfoState == NVML_VGPU_INSTANCE_GUEST_INFO_STATE_INITIALIZED &&
                    pgpu->version == vgpu->version;

        compatibility->vgpuVmCompatibility = (nvmlVgpuVmCompatibility_t)(fits ? 15 : 1);
        compatibility->compatibilityLimitCode =
                fits ? NVML_VGPU_COMPATIBILITY_LIMIT_NONE : NVML_VGPU_COMPATIBILITY_LIMIT_OTHER;
        return r;
}

nvmlReturn_t nvmlDeviceGetPgpuMetadataString(nvmlDevice_t device, char *to, unsigned int *size)
{
        static const char string[] = "233518BE00000002";
        nvmlReturn_t r = fake_begin_device(__func__, device);

        return r == NVML_SUCCESS ? fake_give(string, sizeof(string), 1, to, size,
                                             NVML_ERROR_INSUFFICIENT_SIZE)
                                 : r;
}
