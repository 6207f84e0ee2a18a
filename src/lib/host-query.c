/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the whole host: its library, its driver, the range of vGPU versions. */
#include "lib/host.h"

static const char *const capability_names[] = {
        [VGPU_HOST_HETEROGENEOUS_MULTI_VGPU] = "heterogeneous-multi-vgpu",
        [VGPU_HOST_WARM_UPDATE] = "warm-update",
};

_Static_assert(sizeof(capability_names) / sizeof(capability_names[0]) == VGPU_HOST_CAPABILITY_COUNT,
               "each has a name");

const char *vgpu_host_capability_get_name(enum vgpu_host_capability capability)
{
        return HOST_NAME(capability_names, capability);
}

int vgpu_host_get_library_path(struct vgpu_host *host, const char **ret_path)
{
        int r;

        error_clear(&host->error);
        r = host_open(host);
        if (r < 0)
                return r;
        *ret_path = host->path;
        return 0;
}

int vgpu_host_get_driver_version(struct vgpu_host *host, const char **ret_version)
{
        char text[sizeof(host->driver_version)];
        int r;

        r = HOST_CALL(host, ABOUT_HOST, nvmlSystemGetDriverVersion, text, sizeof(text));
        if (r < 0)
                return r;
        *ret_version = host->driver_version;
        return 0;
}

int vgpu_host_get_capability(struct vgpu_host *host, enum vgpu_host_capability capability,
                             bool *ret_is_there)
{
        unsigned int flag = 0;
        int r;

        r = HOST_CALL(host, ABOUT_HOST, nvmlGetVgpuDriverCapabilities,
                      (nvmlVgpuDriverCapability_t)capability, &flag);
        if (r < 0)
                return host_name_number(host, r, "capability", (int)capability);
        *ret_is_there = flag != 0;
        return 0;
}

int vgpu_host_lookup_versions(struct vgpu_host *host, struct vgpu_host_versions **ret_versions)
{
        nvmlVgpuVersion_t supported = { 0 }, current = { 0 };
        struct vgpu_host_versions *versions;
        int r;

        r = HOST_CALL(host, ABOUT_HOST, nvmlGetVgpuVersion, &supported, &current);
        if (r < 0)
                return r;
        versions = malloc(sizeof(*versions));
        if (!versions)
                return host_set_no_memory(host);
        *versions = (struct vgpu_host_versions){ .supported_minimum = supported.minVersion,
                                                 .supported_maximum = supported.maxVersion,
                                                 .current_minimum = current.minVersion,
                                                 .current_maximum = current.maxVersion };
        *ret_versions = versions;
        return 0;
}

#define VERSION             "%u.%u"
#define VERSION_OF(version) (version) >> 16, (version)&0xffff

int vgpu_host_set_version_range(struct vgpu_host *host, uint32_t minimum, uint32_t maximum)
{
        CLEANUP(freep) struct vgpu_host_versions *versions = NULL;
        nvmlVgpuVersion_t range = { minimum, maximum };
        struct error failed;
        bool is_minimum;
        int r;

        r = HOST_CALL(host, ABOUT_HOST, nvmlSetVgpuVersion, &range);
        failed = host->error;
        if (r == 0 || failed.value.kind != VGPU_ERROR_INVALID_PARAMETER)
                return r;
        if (vgpu_host_lookup_versions(host, &versions) < 0) {
                host->error = failed;
                return r;
        }
        is_minimum = minimum > maximum || minimum < versions->supported_minimum;
        return host_explain(host, &failed, is_minimum ? "minimum" : "maximum",
                            VERSION " to " VERSION " is no range within " VERSION " to " VERSION,
                            VERSION_OF(minimum), VERSION_OF(maximum),
                            VERSION_OF(versions->supported_minimum),
                            VERSION_OF(versions->supported_maximum));
}
