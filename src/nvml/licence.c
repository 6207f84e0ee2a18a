/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the licence of a vGPU, and the licensable features of a device.
 *
 * The list of features grew four times; each name of the function fills the layout that it was made
 * for, with the beginning of the same entry.
 */
#include <string.h>

#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static nvmlVgpuLicenseExpiry_t get_expiry(const struct state_expiry *expiry)
{
        return (nvmlVgpuLicenseExpiry_t){ .year = expiry->year,
                                          .month = expiry->month,
                                          .day = expiry->day,
                                          .hour = expiry->hour,
                                          .min = expiry->minute,
                                          .sec = expiry->second,
                                          .status = (unsigned char)expiry->status };
}

/* Without a driver that could ask for one there is none. */
static bool is_licensed(const struct state_instance *instance)
{
        return instance->guest_driver == STATE_GUEST_DRIVER_RUNNING &&
               instance->licence == STATE_LICENCE_LICENSED;
}

nvmlReturn_t our_nvmlVgpuInstanceGetLicenseStatus(nvmlVgpuInstance_t id, unsigned int *licensed)
{
        struct view_instance instance;
        nvmlReturn_t r = view_instance(&instance, id, licensed);

        if (r == NVML_SUCCESS)
                *licensed = is_licensed(&instance.value);
        return r;
}

nvmlReturn_t our_nvmlVgpuInstanceGetLicenseInfo_v2(nvmlVgpuInstance_t id,
                                                   nvmlVgpuLicenseInfo_t *info)
{
        struct view_instance instance;
        struct state_vm vm;
        nvmlReturn_t r = view_instance(&instance, id, info);

        if (r != NVML_SUCCESS)
                return r;
        if (instance.value.guest_driver != STATE_GUEST_DRIVER_RUNNING)
                return NVML_ERROR_DRIVER_NOT_LOADED;
        if (!state_read_vm(instance.state_page, instance.slot, &vm))
                return NVML_ERROR_NOT_FOUND; /* it went at this moment */
        *info = (nvmlVgpuLicenseInfo_t){ .isLicensed = is_licensed(&instance.value),
                                         .licenseExpiry = get_expiry(&vm.licence_expiry),
                                         .currentState = instance.value.licence };
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuInstanceGetLicenseInfo(nvmlVgpuInstance_t id,
                                                nvmlVgpuLicenseInfo_v1_t *info)
{
        nvmlVgpuLicenseInfo_t newest;
        nvmlReturn_t r = info ? our_nvmlVgpuInstanceGetLicenseInfo_v2(id, &newest)
                              : NVML_ERROR_INVALID_ARGUMENT;

        if (r == NVML_SUCCESS)
                *info = (nvmlVgpuLicenseInfo_v1_t){ .isLicensed = newest.isLicensed,
                                                    .licenseExpiry = newest.licenseExpiry };
        return r;
}

static nvmlGridLicensableFeature_t get_feature(const struct state_feature *from)
{
        nvmlGridLicensableFeature_t feature = {
                .featureCode = (nvmlGridLicenseFeatureCode_t)from->code,
                .featureState = from->is_licensed,
                .featureEnabled = from->is_enabled,
                .licenseExpiry = get_expiry(&from->expiry),
        };

        answer_text(feature.licenseInfo, sizeof(feature.licenseInfo), from->licence);
        answer_text(feature.productName, sizeof(feature.productName), from->product);
        return feature;
}

/* What a guest has is its vGPU's licence. */
static void describe_own(struct state_features *ret_features)
{
        struct view_instance own;
        struct state_vm vm;

        *ret_features = (struct state_features){ 0 };
        if (!view_own_instance(&own) || !state_read_vm(own.state_page, own.slot, &vm))
                return;
        ret_features->is_supported = 1;
        ret_features->n = 1;
        ret_features->feature[0] =
                (struct state_feature){ .code = NVML_GRID_LICENSE_FEATURE_CODE_COMPUTE,
                                        .is_licensed = is_licensed(&own.value),
                                        .is_enabled = is_licensed(&own.value),
                                        .expiry = vm.licence_expiry,
                                        .product = "OpenVGPU" };
}

struct features_head {
        int is_supported;
        unsigned int n;
};

/* @entry_size bytes of a feature fit the caller's layout. */
static nvmlReturn_t list_features(nvmlDevice_t handle, void *list, size_t size, size_t entry_size)
{
        struct state_features features;
        struct features_head head = { 0 };
        struct state_device device;
        nvmlReturn_t r = view_device(&device, handle, list);
        char *to = (char *)list + sizeof(head);

        if (r != NVML_SUCCESS)
                return r;
        if (view_is_guest())
                describe_own(&features);
        else if (!state_read_features(view_state_page(), device.index, &features))
                features = (struct state_features){ 0 };
        head.is_supported = (int)features.is_supported;
        head.n = features.n < STATE_FEATURES_MAX ? features.n : STATE_FEATURES_MAX;
        memset(list, 0, size);
        memcpy(list, &head, sizeof(head));
        for (unsigned int i = 0; i < head.n; i++) {
                nvmlGridLicensableFeature_t feature = get_feature(&features.feature[i]);

                memcpy(to + i * entry_size, &feature, entry_size);
        }
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
        return list_features(handle, features, sizeof(*features),
                             sizeof(nvmlGridLicensableFeature_t));
}
