/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory limits of control groups, as in R615, on the devices of a scenario. The manager keeps them. Nothing
 * runs on such a device, so no limit takes effect, and no memory is used. A limit ends with its control
 * group, as NVIDIA's does.
 */
#include "nvml/memory-limit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/control-group.h"
#include "nvml/control.h"
#include "nvml/slots.h"
#include "nvml/view.h"

#define NO_LIMIT ULLONG_MAX

struct path {
        char text[STATE_PATH_MAX];
};

static bool is_folder(const char *path)
{
        int saved_errno = errno;
        struct stat status;
        bool r = stat(path, &status) == 0 && S_ISDIR(status.st_mode);

        errno = saved_errno;
        return r;
}

/* Without slashes at its end. It goes into a message as it is, so it has nothing that JSON would escape. */
static bool read_path(struct path *ret_path, const char *text)
{
        size_t n = text ? strnlen(text, sizeof(ret_path->text)) : 0;

        if (n == 0 || n >= sizeof(ret_path->text) || *text != '/')
                return false;
        for (size_t i = 0; i < n; i++)
                if (text[i] == '"' || text[i] == '\\' || (unsigned char)text[i] < ' ')
                        return false;
        memcpy(ret_path->text, text, n + 1);
        while (n > 1 && ret_path->text[n - 1] == '/')
                ret_path->text[--n] = '\0';
        return is_folder(ret_path->text);
}

/* INVALID_ARGUMENT: not all pointers, or not a control group; NOT_SUPPORTED: in a guest, or a MIG device. */
static nvmlReturn_t check(struct state_device *ret_device, struct path *ret_path,
                          nvmlDevice_t handle, const char *const *name_space)
{
        nvmlReturn_t r = view_device(ret_device, handle, name_space);

        if (r == NVML_SUCCESS && view_is_guest())
                r = NVML_ERROR_NOT_SUPPORTED;
        return r == NVML_SUCCESS && !read_path(ret_path, *name_space) ? NVML_ERROR_INVALID_ARGUMENT
                                                                      : r;
}

nvmlReturn_t our_nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t handle, nvmlSetMemoryLimits_v1_t *limits)
{
        struct state_device device;
        char soft[48] = "", hard[48] = "";
        struct path path;
        nvmlReturn_t r = check(&device, &path, handle, limits ? &limits->nameSpace : NULL);

        if (r != NVML_SUCCESS)
                return r;
        if (limits->softLimit > limits->hardLimit || limits->softLimit > LLONG_MAX ||
            limits->hardLimit == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (limits->softLimit > 0)
                snprintf(soft, sizeof(soft), ",\"soft\":%llu", limits->softLimit);
        if (limits->hardLimit <= LLONG_MAX)
                snprintf(hard, sizeof(hard), ",\"hard\":%llu", limits->hardLimit);
        return control_call("SetMemoryLimit", "\"device\":\"%.47s\",\"path\":\"%s\"%s%s",
                            device.uuid, path.text, soft, hard);
}

nvmlReturn_t our_nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t handle, nvmlGetMemoryLimits_v1_t *limits)
{
        const struct state_page *state_page = view_state_page();
        struct state_memory_limit record;
        struct state_device device;
        struct path path;
        nvmlReturn_t r = check(&device, &path, handle, limits ? &limits->nameSpace : NULL);

        if (r != NVML_SUCCESS)
                return r;
        limits->softLimit = limits->currentUsed = 0;
        limits->hardLimit = NO_LIMIT;
        for (uint32_t slot = 0; slot < state_end_memory_limit(state_page); slot++) {
                if (!state_read_memory_limit(state_page, slot, &record) ||
                    record.device != device.index || strcmp(record.path, path.text) != 0)
                        continue;
                limits->softLimit = record.soft;
                limits->hardLimit = record.hard;
        }
        return NVML_SUCCESS;
}

uint64_t memory_limit_get_own(uint32_t device, uint64_t otherwise)
{
        const struct state_page *state_page = view_state_page();
        uint32_t end = state_end_memory_limit(state_page);
        struct state_memory_limit record;
        int saved_errno = errno;
        char own[CONTROL_GROUP_MAX];

        if (end > 0 && control_group_find(own, 0))
                for (uint32_t slot = 0; slot < end; slot++)
                        if (state_read_memory_limit(state_page, slot, &record) &&
                            record.device == device && record.hard < otherwise &&
                            control_group_is_within(own, record.path) && is_folder(record.path))
                                otherwise = record.hard;
        errno = saved_errno;
        return otherwise;
}
