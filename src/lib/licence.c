/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include <openvgpu/licence.h>

#include "lib/answer.h"

#define EXPIRY_TEXT_MAX 40
#define YEAR_MAX        9999

static const char *const state_names[] = {
        [VGPU_LICENCE_UNKNOWN] = "unknown",
        [VGPU_LICENCE_UNINITIALIZED] = "uninitialized",
        [VGPU_LICENCE_UNLICENSED_UNRESTRICTED] = "unlicensed, unrestricted",
        [VGPU_LICENCE_UNLICENSED_RESTRICTED] = "unlicensed, restricted",
        [VGPU_LICENCE_UNLICENSED] = "unlicensed",
        [VGPU_LICENCE_LICENSED] = "licensed",
};

static const char *const expiry_names[] = {
        [VGPU_LICENCE_EXPIRY_NOT_AVAILABLE] = "not available",
        [VGPU_LICENCE_EXPIRY_INVALID] = "invalid",
        [VGPU_LICENCE_EXPIRY_VALID] = "valid",
        [VGPU_LICENCE_EXPIRY_NOT_APPLICABLE] = "not applicable",
        [VGPU_LICENCE_EXPIRY_PERMANENT] = "permanent",
};

const char *vgpu_licence_state_get_name(enum vgpu_licence_state state)
{
        return HOST_NAME(state_names, state);
}

const char *vgpu_licence_expiry_get_name(enum vgpu_licence_expiry expiry)
{
        return HOST_NAME(expiry_names, expiry);
}

/* R495 has the answer without a state; what came before only says yes or no. */
static int get(struct vgpu_host *host, uint32_t instance, nvmlVgpuLicenseInfo_t *ret_info)
{
        nvmlVgpuLicenseInfo_v1_t old = { .isLicensed = 0 };
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetLicenseInfo_v2, instance,
                      ret_info);
        if (!host_lacks(host, r))
                return r;
        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetLicenseInfo, instance,
                      &old);
        ret_info->isLicensed = old.isLicensed;
        ret_info->licenseExpiry = old.licenseExpiry;
        ret_info->currentState = old.isLicensed ? (unsigned int)VGPU_LICENCE_LICENSED
                                                : (unsigned int)VGPU_LICENCE_UNKNOWN;
        return r;
}

int vgpu_licence_get_status(struct vgpu_host *host, uint32_t instance, bool *ret_is_licensed)
{
        nvmlVgpuLicenseInfo_t info = { .isLicensed = 0 };
        unsigned int licensed = 0;
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetLicenseStatus, instance,
                      &licensed);
        if (host_lacks(host, r)) { /* deprecated, so it may be gone one day */
                r = get(host, instance, &info);
                licensed = info.isLicensed;
        }
        if (host_lacks(host, r)) /* none of the three: the oldest is the one to name */
                r = host_set_needs(host, ABOUT_INSTANCE(instance),
                                   "nvmlVgpuInstanceGetLicenseStatus", "R390");
        if (r == 0)
                *ret_is_licensed = licensed != 0;
        return r;
}

static void set_expiry(struct vgpu_licence *licence, char *text,
                       const nvmlVgpuLicenseExpiry_t *expiry)
{
        struct tm date = { .tm_mon = expiry->month - 1,
                           .tm_mday = expiry->day,
                           .tm_hour = expiry->hour,
                           .tm_min = expiry->min,
                           .tm_sec = expiry->sec };

        licence->expiry = (enum vgpu_licence_expiry)expiry->status;
        licence->expiry_text = text;
        if (licence->expiry != VGPU_LICENCE_EXPIRY_VALID || expiry->year > YEAR_MAX)
                return;
        date.tm_year = (int)expiry->year - 1900;
        licence->expiry_seconds = timegm(&date);
        strftime(text, EXPIRY_TEXT_MAX, "%Y-%m-%d %H:%M:%S GMT", &date);
}

int vgpu_licence_lookup(struct vgpu_host *host, uint32_t instance,
                        struct vgpu_licence **ret_licence)
{
        nvmlVgpuLicenseInfo_t info = { .isLicensed = 0 };
        struct vgpu_licence *licence;
        char *text;
        int r;

        r = get(host, instance, &info);
        if (r < 0)
                return r;
        licence = answer_list(host, sizeof(*licence), EXPIRY_TEXT_MAX, 1, &text);
        if (!licence)
                return -ENOMEM;
        licence->is_licensed = info.isLicensed != 0;
        licence->state = (enum vgpu_licence_state)info.currentState;
        set_expiry(licence, text, &info.licenseExpiry);
        *ret_licence = licence;
        return 0;
}
