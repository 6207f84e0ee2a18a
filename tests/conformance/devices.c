/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about a device as a host of vGPUs, and set on it. */
#include "conformance/rows.h"

static void play_modes(struct run *run)
{
        /* clang-format off */
        DEVICE_ROWS(nvmlDeviceGetVirtualizationMode, OUT(virtualization))
        ROW(nvmlDeviceGetVirtualizationMode, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceGetVirtualizationMode, SUCCESS, HOST, (s->device, OUT(virtualization)), NOW(virtualization) == 3)
        ROW(nvmlDeviceGetVirtualizationMode, SUCCESS, HOST, (s->bare, OUT(virtualization)), NOW(virtualization) == 0)
        ROW(nvmlDeviceGetVirtualizationMode, SUCCESS, GUEST, (s->device, OUT(virtualization)), NOW(virtualization) == 2)
        DEVICE_ROWS(nvmlDeviceSetVirtualizationMode, 3)
        CHANGE_ROWS(nvmlDeviceSetVirtualizationMode, s->device, 3)
        ROW(nvmlDeviceSetVirtualizationMode, INVALID_ARGUMENT, HOST, (s->device, 5))
        ROW(nvmlDeviceSetVirtualizationMode, NOT_SUPPORTED, GUEST, (s->device, 3))

        HOSTING_ROWS(nvmlDeviceGetHostVgpuMode, OUT(host_mode))
        ROW(nvmlDeviceGetHostVgpuMode, INVALID_ARGUMENT, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetHostVgpuMode, SUCCESS, HOST, (s->device, OUT(host_mode)), NOW(host_mode) == 0)

        HOSTING_ROWS(nvmlDeviceGetVgpuHeterogeneousMode, IN(mixing, { .version = 0x01000008 }))
        ROW(nvmlDeviceGetVgpuHeterogeneousMode, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceGetVgpuHeterogeneousMode, NOT_SUPPORTED, HOST, (s->bare, NULL))
        ROW(nvmlDeviceGetVgpuHeterogeneousMode, NOT_SUPPORTED, HOST, (s->mig, IN(mixing, { .version = 0x01000008 })))
        ROW(nvmlDeviceGetVgpuHeterogeneousMode, ARGUMENT_VERSION_MISMATCH, HOST, (s->device, IN(mixing, { .version = 8 })))
        ROW(nvmlDeviceGetVgpuHeterogeneousMode, SUCCESS, HOST, (s->device, IN(mixing, { .version = 0x01000008 })), NOW(mixing).mode == 1)
        HOSTING_ROWS(nvmlDeviceSetVgpuHeterogeneousMode, IN(mixing, { 0x01000008, 1 }))
        CHANGE_ROWS(nvmlDeviceSetVgpuHeterogeneousMode, s->device, IN(mixing, { 0x01000008, 1 }))
        ROW(nvmlDeviceSetVgpuHeterogeneousMode, IN_USE, BUSY, (s->device, IN(mixing, { 0x01000008, 1 })))
        ROW(nvmlDeviceSetVgpuHeterogeneousMode, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceSetVgpuHeterogeneousMode, INVALID_ARGUMENT, HOST, (s->device, IN(mixing, { 0x01000008, 2 })))
        ROW(nvmlDeviceSetVgpuHeterogeneousMode, NOT_SUPPORTED, HOST, (s->mig, IN(mixing, { 0x01000008, 1 })))
        ROW(nvmlDeviceSetVgpuHeterogeneousMode, ARGUMENT_VERSION_MISMATCH, HOST, (s->device, IN(mixing, { 8, 1 })))

        HOSTING_ROWS(nvmlDeviceVgpuForceGspUnload)
        CHANGE_ROWS(nvmlDeviceVgpuForceGspUnload, s->device)
        /* clang-format on */
}

static void play_capabilities(struct run *run)
{
        /* clang-format off */
        ROW(nvmlGetVgpuDriverCapabilities, SUCCESS, HOST, (NVML_VGPU_DRIVER_CAP_HETEROGENEOUS_MULTI_VGPU, OUT(number)), NOW(number) == 1)
        ROW(nvmlGetVgpuDriverCapabilities, SUCCESS, HOST, (NVML_VGPU_DRIVER_CAP_WARM_UPDATE, OUT(number)), NOW(number) == 0)
        ROW(nvmlGetVgpuDriverCapabilities, INVALID_ARGUMENT, HOST, (NVML_VGPU_DRIVER_CAP_COUNT, OUT(number)))
        ROW(nvmlGetVgpuDriverCapabilities, INVALID_ARGUMENT, GUEST, (NVML_VGPU_DRIVER_CAP_WARM_UPDATE, NULL))
        ROW(nvmlGetVgpuDriverCapabilities, NOT_SUPPORTED, GUEST, (NVML_VGPU_DRIVER_CAP_WARM_UPDATE, OUT(number)))

        HOSTING_ROWS(nvmlDeviceGetVgpuCapabilities, NVML_DEVICE_VGPU_CAP_FRACTIONAL_MULTI_VGPU, OUT(number))
        ROW(nvmlDeviceGetVgpuCapabilities, INVALID_ARGUMENT, HOST, (s->bare, NVML_DEVICE_VGPU_CAP_FRACTIONAL_MULTI_VGPU, NULL))
        ROW(nvmlDeviceGetVgpuCapabilities, INVALID_ARGUMENT, HOST, (s->device, NVML_DEVICE_VGPU_CAP_COUNT, OUT(number)))
        ROW(nvmlDeviceGetVgpuCapabilities, SUCCESS, HOST, (s->device, NVML_DEVICE_VGPU_CAP_READ_DEVICE_BUFFER_BW, OUT(number)), NOW(number) == 25000)
        HOSTING_ROWS(nvmlDeviceSetVgpuCapabilities, NVML_DEVICE_VGPU_CAP_MINI_QUARTER_GPU, NVML_FEATURE_ENABLED)
        CHANGE_ROWS(nvmlDeviceSetVgpuCapabilities, s->device, NVML_DEVICE_VGPU_CAP_MINI_QUARTER_GPU, NVML_FEATURE_ENABLED)
        ROW(nvmlDeviceSetVgpuCapabilities, INVALID_ARGUMENT, HOST, (s->device, NVML_DEVICE_VGPU_CAP_COUNT, NVML_FEATURE_ENABLED))
        ROW(nvmlDeviceSetVgpuCapabilities, INVALID_ARGUMENT, HOST, (s->device, NVML_DEVICE_VGPU_CAP_MINI_QUARTER_GPU, 2))

        DEVICE_ROWS(nvmlDeviceGetGridLicensableFeatures, OUT(features_v1))
        ROW(nvmlDeviceGetGridLicensableFeatures, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceGetGridLicensableFeatures, SUCCESS, HOST, (s->device, OUT(features_v1)), !NOW(features_v1).isGridLicenseSupported)
        ROW(nvmlDeviceGetGridLicensableFeatures, SUCCESS, GUEST, (s->device, OUT(features_v1)), NOW(features_v1).licensableFeaturesCount == 1)
        DEVICE_ROWS(nvmlDeviceGetGridLicensableFeatures_v2, OUT(features_v2))
        ROW(nvmlDeviceGetGridLicensableFeatures_v2, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceGetGridLicensableFeatures_v2, SUCCESS, HOST, (s->device, OUT(features_v2)), !NOW(features_v2).isGridLicenseSupported)
        DEVICE_ROWS(nvmlDeviceGetGridLicensableFeatures_v3, OUT(features_v3))
        ROW(nvmlDeviceGetGridLicensableFeatures_v3, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceGetGridLicensableFeatures_v3, SUCCESS, HOST, (s->device, OUT(features_v3)), !NOW(features_v3).isGridLicenseSupported)
        DEVICE_ROWS(nvmlDeviceGetGridLicensableFeatures_v4, OUT(features))
        ROW(nvmlDeviceGetGridLicensableFeatures_v4, INVALID_ARGUMENT, HOST, (s->device, NULL))
        ROW(nvmlDeviceGetGridLicensableFeatures_v4, SUCCESS, HOST, (s->device, OUT(features)), !NOW(features).isGridLicenseSupported)
        ROW(nvmlDeviceGetGridLicensableFeatures_v4, SUCCESS, GUEST, (s->device, OUT(features)), NOW(features).gridLicensableFeatures[0].featureState == 1)
        /* clang-format on */
}

static void play_lists(struct run *run)
{
        /* clang-format off */
        HOSTING_ROWS(nvmlDeviceGetSupportedVgpus, IN(count, 16), NOW(ids))
        ROW(nvmlDeviceGetSupportedVgpus, INVALID_ARGUMENT, HOST, (s->device, NULL, NOW(ids)))
        ROW(nvmlDeviceGetSupportedVgpus, NOT_SUPPORTED, HOST, (s->bare, NULL, NULL))
        ROW(nvmlDeviceGetSupportedVgpus, INSUFFICIENT_SIZE, HOST, (s->device, IN(count, 0), NULL), NOW(count) == 9)
        ROW(nvmlDeviceGetSupportedVgpus, INSUFFICIENT_SIZE, HOST, (s->device, IN(count, 8), NOW(ids)), NOW(count) == 9)
        ROW(nvmlDeviceGetSupportedVgpus, INVALID_ARGUMENT, HOST, (s->device, IN(count, 8), NULL))
        ROW(nvmlDeviceGetSupportedVgpus, SUCCESS, HOST, (s->device, IN(count, 16), NOW(ids)), NOW(count) == 9)
        HOSTING_ROWS(nvmlDeviceGetCreatableVgpus, IN(count, 16), NOW(ids))
        ROW(nvmlDeviceGetCreatableVgpus, INVALID_ARGUMENT, HOST, (s->device, NULL, NOW(ids)))
        ROW(nvmlDeviceGetCreatableVgpus, INSUFFICIENT_SIZE, HOST, (s->device, IN(count, 0), NULL), NOW(count) == 8)
        ROW(nvmlDeviceGetCreatableVgpus, SUCCESS, HOST, (s->device, IN(count, 16), NOW(ids)), NOW(count) == 8)
        ROW(nvmlDeviceGetCreatableVgpus, SUCCESS, HOST, (s->empty, IN(count, 16), NOW(ids)), NOW(count) == 9)
        HOSTING_ROWS(nvmlDeviceGetActiveVgpus, IN(count, 16), NOW(ids))
        ROW(nvmlDeviceGetActiveVgpus, INVALID_ARGUMENT, HOST, (s->device, NULL, NOW(ids)))
        ROW(nvmlDeviceGetActiveVgpus, INSUFFICIENT_SIZE, HOST, (s->device, IN(count, 0), NULL), NOW(count) == 4)
        ROW(nvmlDeviceGetActiveVgpus, INSUFFICIENT_SIZE, HOST, (s->device, IN(count, 0), NOW(ids)), NOW(count) == 4)
        ROW(nvmlDeviceGetActiveVgpus, INSUFFICIENT_SIZE, HOST, (s->device, IN(count, 3), NOW(ids)), NOW(count) == 4)
        ROW(nvmlDeviceGetActiveVgpus, SUCCESS, HOST, (s->device, IN(count, 16), NOW(ids)), NOW(count) == 4 && NOW(ids)[0] == FIXTURE_TRAIN)
        ROW(nvmlDeviceGetActiveVgpus, SUCCESS, HOST, (s->empty, IN(count, 0), NULL), NOW(count) == 0)

        HOSTING_ROWS(nvmlVgpuTypeGetMaxInstances, s->type, OUT(number))
        ROW(nvmlVgpuTypeGetMaxInstances, NOT_SUPPORTED, HOST, (s->bare, SCENE_NO_TYPE, NULL))
        ROW(nvmlVgpuTypeGetMaxInstances, INVALID_ARGUMENT, HOST, (s->device, s->type, NULL))
        ROW(nvmlVgpuTypeGetMaxInstances, INVALID_ARGUMENT, HOST, (s->device, SCENE_NO_TYPE, OUT(number)))
        ROW(nvmlVgpuTypeGetMaxInstances, INVALID_ARGUMENT, HOST, (s->device, SCENE_MIG_TYPE, OUT(number)))
        ROW(nvmlVgpuTypeGetMaxInstances, SUCCESS, HOST, (s->device, s->type, OUT(number)), NOW(number) == 4)
        /* clang-format on */
}

/* Both generations of the struct, in their own layouts. */
#define PLACES_V1(room) (void *)IN(places_v1, { 0x01000018, 0, room, o->now.ids })
#define PLACES(room, m) IN(places, { 0x02000020, 0, room, o->now.ids, m })

static void play_placements(struct run *run)
{
        /* clang-format off */
        HOSTING_ROWS(nvmlDeviceGetVgpuTypeSupportedPlacements, s->type, PLACES(16, 0))
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, NOT_SUPPORTED, HOST, (s->bare, SCENE_NO_TYPE, NULL))
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, INVALID_ARGUMENT, HOST, (s->device, s->type, NULL))
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, INVALID_ARGUMENT, HOST, (s->device, SCENE_NO_TYPE, PLACES(16, 0)))
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, INVALID_ARGUMENT, HOST, (s->device, s->type, PLACES(16, 2)))
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, ARGUMENT_VERSION_MISMATCH, HOST, (s->device, s->type, IN(places, { .version = 0x03000020 })))
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, INSUFFICIENT_SIZE, HOST, (s->device, s->type, PLACES(0, 0)), NOW(places).count == 4)
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, SUCCESS, HOST, (s->device, s->type, PLACES_V1(3)), NOW(places_v1).count == 4)
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, SUCCESS, HOST, (s->device, s->type, PLACES_V1(16)), NOW(places_v1).placementSize == 35)
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, SUCCESS, HOST, (s->device, s->type, PLACES(16, 0)), NOW(places).count == 4)
        ROW(nvmlDeviceGetVgpuTypeSupportedPlacements, SUCCESS, HOST, (s->device, s->type, PLACES(16, 1)), NOW(places).count == 4)

        HOSTING_ROWS(nvmlDeviceGetVgpuTypeCreatablePlacements, s->type, PLACES(16, 0))
        ROW(nvmlDeviceGetVgpuTypeCreatablePlacements, NOT_SUPPORTED, HOST, (s->mig, s->type, PLACES(16, 0)))
        ROW(nvmlDeviceGetVgpuTypeCreatablePlacements, INVALID_ARGUMENT, HOST, (s->device, s->type, NULL))
        ROW(nvmlDeviceGetVgpuTypeCreatablePlacements, INVALID_ARGUMENT, HOST, (s->device, SCENE_NO_TYPE, PLACES(16, 0)))
        ROW(nvmlDeviceGetVgpuTypeCreatablePlacements, ARGUMENT_VERSION_MISMATCH, HOST, (s->device, s->type, IN(places, { .version = 2 })))
        ROW(nvmlDeviceGetVgpuTypeCreatablePlacements, INSUFFICIENT_SIZE, HOST, (s->device, s->type, PLACES(0, 0)), NOW(places).count == 2)
        ROW(nvmlDeviceGetVgpuTypeCreatablePlacements, SUCCESS, HOST, (s->device, s->type, PLACES_V1(16)), NOW(places_v1).count == 2)
        ROW(nvmlDeviceGetVgpuTypeCreatablePlacements, SUCCESS, HOST, (s->empty, s->type, PLACES(16, 1)), NOW(places).count == 4)
        /* clang-format on */
}

void play_devices(struct run *run)
{
        play_modes(run);
        play_capabilities(run);
        play_lists(run);
        play_placements(run);
}
