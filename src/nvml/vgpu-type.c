/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers questions about a vGPU type, by its id alone: some device of the host offers the type. A guest
 * knows the type of its own vGPU. The checks have the order of NVIDIA's library, where this was seen.
 */
#include <stddef.h>
#include <string.h>

#include "nvml/answer.h"
#include "nvml/slots.h"
#include "nvml/view.h"

struct found_type {
        const struct state_page *state_page;
        uint32_t slot;
        struct state_type value;
};

static bool is_shown(nvmlVgpuTypeId_t id)
{
        struct view_instance own;

        return !view_is_guest() || (view_own_instance(&own) && own.value.type_id == id);
}

static nvmlReturn_t find_type(struct found_type *ret_found, nvmlVgpuTypeId_t id, bool has_pointers)
{
        if (!has_pointers || id == 0 || !is_shown(id))
                return NVML_ERROR_INVALID_ARGUMENT;
        ret_found->state_page = view_state_page();
        return state_find_type(ret_found->state_page, id, &ret_found->slot) &&
                               state_read_type(ret_found->state_page, ret_found->slot,
                                               &ret_found->value)
                       ? NVML_SUCCESS
                       : NVML_ERROR_INVALID_ARGUMENT;
}

/* Finds the type and its texts. */
static nvmlReturn_t find_texts(struct state_type_text *ret_texts, nvmlVgpuTypeId_t id)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, true);

        if (r != NVML_SUCCESS)
                return r;
        return state_read_type_text(found.state_page, found.slot, ret_texts) ? NVML_SUCCESS
                                                                             : NVML_ERROR_UNKNOWN;
}

/* NVIDIA's library looks at the size before the buffer. */
static nvmlReturn_t answer_texts(nvmlVgpuTypeId_t id, char *text, unsigned int *size, size_t offset)
{
        struct state_type_text texts;
        const char *answer = (const char *)&texts + offset;
        nvmlReturn_t r = size ? find_texts(&texts, id) : NVML_ERROR_INVALID_ARGUMENT;

        if (r != NVML_SUCCESS)
                return r;
        if (*size <= strlen(answer)) {
                *size = (unsigned int)strlen(answer) + 1;
                return NVML_ERROR_INSUFFICIENT_SIZE;
        }
        return text ? answer_text(text, *size, answer) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t our_nvmlVgpuTypeGetClass(nvmlVgpuTypeId_t id, char *text, unsigned int *size)
{
        return answer_texts(id, text, size, offsetof(struct state_type_text, class));
}

nvmlReturn_t our_nvmlVgpuTypeGetName(nvmlVgpuTypeId_t id, char *text, unsigned int *size)
{
        return answer_texts(id, text, size, offsetof(struct state_type_text, name));
}

nvmlReturn_t our_nvmlVgpuTypeGetLicense(nvmlVgpuTypeId_t id, char *text, unsigned int size)
{
        if (!text)
                return NVML_ERROR_INVALID_ARGUMENT;
        return answer_texts(id, text, &size, offsetof(struct state_type_text, licence));
}

static nvmlReturn_t answer_number(nvmlVgpuTypeId_t id, unsigned int *number, size_t offset)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, number);

        if (r == NVML_SUCCESS)
                *number = *(const uint32_t *)(const void *)((const char *)&found.value + offset);
        return r;
}

static nvmlReturn_t answer_bytes(nvmlVgpuTypeId_t id, unsigned long long *bytes, size_t offset)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, bytes);

        if (r == NVML_SUCCESS)
                *bytes = *(const uint64_t *)(const void *)((const char *)&found.value + offset);
        return r;
}

/* Profiles of GPU instances are nothing for a guest. A type that shares time has none. */
nvmlReturn_t our_nvmlVgpuTypeGetGpuInstanceProfileId(nvmlVgpuTypeId_t id, unsigned int *profile)
{
        if (profile && id != 0 && view_is_guest())
                return NVML_ERROR_NOT_SUPPORTED;
        return answer_number(id, profile, offsetof(struct state_type, profile_id));
}

/* The device's number without the vendor's: that is what nvidia-smi puts the vendor's behind. */
nvmlReturn_t our_nvmlVgpuTypeGetDeviceID(nvmlVgpuTypeId_t id, unsigned long long *device_id,
                                         unsigned long long *subsystem_id)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, device_id && subsystem_id);

        if (r != NVML_SUCCESS)
                return r;
        *device_id = found.value.pci_device_id >> 16;
        *subsystem_id = found.value.pci_subsystem_id;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuTypeGetFramebufferSize(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        return answer_bytes(id, bytes, offsetof(struct state_type, frame_buffer));
}

nvmlReturn_t our_nvmlVgpuTypeGetGspHeapSize(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        return answer_bytes(id, bytes, offsetof(struct state_type, gsp_heap));
}

nvmlReturn_t our_nvmlVgpuTypeGetFbReservation(nvmlVgpuTypeId_t id, unsigned long long *bytes)
{
        return answer_bytes(id, bytes, offsetof(struct state_type, reservation));
}

nvmlReturn_t our_nvmlVgpuTypeGetNumDisplayHeads(nvmlVgpuTypeId_t id, unsigned int *heads)
{
        return answer_number(id, heads, offsetof(struct state_type, n_heads));
}

nvmlReturn_t our_nvmlVgpuTypeGetMaxInstancesPerVm(nvmlVgpuTypeId_t id, unsigned int *count)
{
        return answer_number(id, count, offsetof(struct state_type, max_instances_vm));
}

nvmlReturn_t our_nvmlVgpuTypeGetResolution(nvmlVgpuTypeId_t id, unsigned int head, unsigned int *x,
                                           unsigned int *y)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, x && y);

        if (r != NVML_SUCCESS)
                return r;
        if (head >= found.value.n_heads)
                return NVML_ERROR_INVALID_ARGUMENT;
        *x = found.value.width;
        *y = found.value.height;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuTypeGetFrameRateLimit(nvmlVgpuTypeId_t id, unsigned int *fps)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, fps);

        if (r != NVML_SUCCESS)
                return r;
        if (found.value.frame_rate_limit == 0)
                return NVML_ERROR_NOT_SUPPORTED; /* there is no limiter */
        *fps = found.value.frame_rate_limit;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuTypeGetMaxInstancesPerGpuInstance(nvmlVgpuTypeMaxInstance_v1_t *maximum)
{
        struct found_type found;
        nvmlReturn_t r;

        if (!maximum || maximum->vgpuTypeId == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (maximum->version != NVML_VERSION(nvmlVgpuTypeMaxInstance_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = find_type(&found, maximum->vgpuTypeId, true);
        if (r != NVML_SUCCESS)
                return r;
        if (found.value.max_instances_gpu_instance == 0)
                return NVML_ERROR_NOT_SUPPORTED; /* not backed by one */
        maximum->maxInstancePerGI = found.value.max_instances_gpu_instance;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlVgpuTypeGetBAR1Info(nvmlVgpuTypeId_t id, nvmlVgpuTypeBar1Info_v1_t *info)
{
        struct found_type found;
        nvmlReturn_t r;

        if (!info || id == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (info->version != NVML_VERSION(nvmlVgpuTypeBar1Info_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        r = find_type(&found, id, true);
        if (r == NVML_SUCCESS)
                info->bar1Size = found.value.bar1 >> 20;
        return r;
}

nvmlReturn_t our_nvmlVgpuTypeGetCapabilities(nvmlVgpuTypeId_t id, nvmlVgpuCapability_t capability,
                                             unsigned int *flag)
{
        struct found_type found;
        nvmlReturn_t r = find_type(&found, id, flag && capability < NVML_VGPU_CAP_COUNT);

        if (r == NVML_SUCCESS)
                *flag = found.value.capabilities >> capability & 1;
        return r;
}
