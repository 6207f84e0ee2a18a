/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Licences: a vGPU of ours needs none, which NVML's clients understand best as a permanent one.
 *
 * The list of licensable features grew four times; each name of the function fills the layout that
 * it was made for, with the beginning of the same entry.
 */
#include <stdio.h>
#include <string.h>

#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static const nvmlVgpuLicenseExpiry_t permanent = { .status = NVML_GRID_LICENSE_EXPIRY_PERMANENT };

static nvmlReturn_t find(nvmlVgpuInstance_t id, bool has_pointers)
{
        struct board_instance instance;

        if (!has_pointers || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        return view_instance(&instance, id) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t our_nvmlVgpuInstanceGetLicenseStatus(nvmlVgpuInstance_t id, unsigned int *licensed)
{
        nvmlReturn_t r = find(id, licensed);

        if (r == NVML_SUCCESS)
                *licensed = 1;
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetLicenseInfo(nvmlVgpuInstance_t id,
                                                nvmlVgpuLicenseInfo_v1_t *info)
{
        nvmlReturn_t r = find(id, info);

        if (r == NVML_SUCCESS)
                *info = (nvmlVgpuLicenseInfo_v1_t){ .isLicensed = 1, .licenseExpiry = permanent };
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetLicenseInfo_v2(nvmlVgpuInstance_t id,
                                                   nvmlVgpuLicenseInfo_t *info)
{
        nvmlReturn_t r = find(id, info);

        if (r == NVML_SUCCESS)
                *info = (nvmlVgpuLicenseInfo_t){ .isLicensed = 1,
                                                 .licenseExpiry = permanent,
                                                 .currentState = NVML_GRID_LICENSE_STATE_LICENSED };
        return r;
}

static const nvmlGridLicensableFeature_t feature = {
        .featureCode = NVML_GRID_LICENSE_FEATURE_CODE_COMPUTE,
        .featureState = 1,
        .productName = "OpenVGPU",
        .featureEnabled = 1,
        .licenseExpiry = { .status = NVML_GRID_LICENSE_EXPIRY_PERMANENT },
};

struct features_head {
        int is_supported;
        unsigned int n;
};

/* A guest has one feature, a host none. @entry_size bytes of it fit the caller's layout. */
static nvmlReturn_t list_features(nvmlDevice_t handle, void *features, size_t size,
                                  size_t entry_size)
{
        struct features_head head = { .is_supported = view_is_guest(), .n = view_is_guest() };
        struct board_device device;

        if (!features || !view_device(&device, handle))
                return NVML_ERROR_INVALID_ARGUMENT;
        memset(features, 0, size);
        memcpy(features, &head, sizeof(head));
        if (head.n > 0)
                memcpy((char *)features + sizeof(head), &feature, entry_size);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetGridLicensableFeatures(nvmlDevice_t handle,
                                                     nvmlGridLicensableFeatures_v1_t *features)
{
        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetGridLicensableFeatures)(handle, features);
        return list_features(handle, features, sizeof(*features),
                             sizeof(nvmlGridLicensableFeature_v1_t));
}

nvmlReturn_t our_nvmlDeviceGetGridLicensableFeatures_v2(nvmlDevice_t handle,
                                                        nvmlGridLicensableFeatures_v2_t *features)
{
        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetGridLicensableFeatures_v2)(handle, features);
        return list_features(handle, features, sizeof(*features),
                             sizeof(nvmlGridLicensableFeature_v2_t));
}

nvmlReturn_t our_nvmlDeviceGetGridLicensableFeatures_v3(nvmlDevice_t handle,
                                                        nvmlGridLicensableFeatures_v3_t *features)
{
        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetGridLicensableFeatures_v3)(handle, features);
        return list_features(handle, features, sizeof(*features),
                             sizeof(nvmlGridLicensableFeature_v3_t));
}

nvmlReturn_t our_nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t handle,
                                                        nvmlGridLicensableFeatures_t *features)
{
        if (!view_is_substitute())
                return NVML_REAL(nvmlDeviceGetGridLicensableFeatures_v4)(handle, features);
        return list_features(handle, features, sizeof(*features), sizeof(feature));
}
