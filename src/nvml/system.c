/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions about the system: versions, error texts, names of processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "nvml/answer.h"
#include "nvml/library.h"
#include "nvml/process.h"
#include "nvml/slots.h"
#include "nvml/view.h"

static const struct {
        nvmlReturn_t code;
        const char *text;
} errors[] = {
        { NVML_SUCCESS, "Success" },
        { NVML_ERROR_UNINITIALIZED, "Uninitialized" },
        { NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument" },
        { NVML_ERROR_NOT_SUPPORTED, "Not Supported" },
        { NVML_ERROR_NO_PERMISSION, "Insufficient Permissions" },
        { NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized" },
        { NVML_ERROR_NOT_FOUND, "Not Found" },
        { NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size" },
        { NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power" },
        { NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded" },
        { NVML_ERROR_TIMEOUT, "Timeout" },
        { NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue" },
        { NVML_ERROR_LIBRARY_NOT_FOUND, "Library Not Found" },
        { NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found" },
        { NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM" },
        { NVML_ERROR_GPU_IS_LOST, "GPU is lost" },
        { NVML_ERROR_RESET_REQUIRED, "GPU requires reset" },
        { NVML_ERROR_OPERATING_SYSTEM, "Blocked by the operating system" },
        { NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch" },
        { NVML_ERROR_IN_USE, "In use by another client" },
        { NVML_ERROR_MEMORY, "Insufficient Memory" },
        { NVML_ERROR_NO_DATA, "No data" },
        { NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, "vGPU not possible with ECC enabled" },
        { NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient resources" },
        { NVML_ERROR_FREQ_NOT_SUPPORTED, "Frequency not supported" },
        { NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch" },
        { NVML_ERROR_DEPRECATED, "Deprecated" },
        { NVML_ERROR_NOT_READY, "Not ready" },
        { NVML_ERROR_GPU_NOT_FOUND, "No GPU found" },
        { NVML_ERROR_INVALID_STATE, "Invalid state" },
        { NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, "Reset type not supported" },
};

const char *our_nvmlErrorString(nvmlReturn_t code)
{
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
                if (errors[i].code == code)
                        return errors[i].text;
        return "Unknown Error";
}

nvmlReturn_t our_nvmlSystemGetDriverVersion(char *text, unsigned int size)
{
        return text ? answer_text(text, size, view_driver_name()) : NVML_ERROR_INVALID_ARGUMENT;
}

/* "13.580.159.04": the version of the interface, then that of the driver if there is one. */
nvmlReturn_t our_nvmlSystemGetNVMLVersion(char *text, unsigned int size)
{
        char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];

        if (!text)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (library_has_real())
                return NVML_REAL(nvmlSystemGetNVMLVersion)(text, size);

        snprintf(version, sizeof(version), "%d.%s", NVML_API_VERSION,
                 library_is_ours() ? view_driver_name() : OPENVGPU_VERSION);
        return answer_text(text, size, version);
}

nvmlReturn_t our_nvmlSystemGetCudaDriverVersion(int *version)
{
        struct state_device device;

        if (!version)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (!view_device_at(&device, 0))
                return NVML_ERROR_LIBRARY_NOT_FOUND;
        *version = (int)device.driver_version;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlSystemGetCudaDriverVersion_v2(int *version)
{
        return our_nvmlSystemGetCudaDriverVersion(version);
}

/* Up to the first point: "580". */
nvmlReturn_t our_nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_v1_t *branch,
                                           unsigned int size)
{
        if (!branch)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (branch->version != NVML_VERSION(nvmlSystemDriverBranchInfo_v1_t, 1))
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (size < sizeof(branch->branch))
                return NVML_ERROR_INSUFFICIENT_SIZE;
        snprintf(branch->branch, sizeof(branch->branch), "r%.*s",
                 (int)strcspn(view_driver_name(), "."), view_driver_name());
        return NVML_SUCCESS;
}

static bool read_command_line(unsigned int pid, char *name, size_t size)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, name, size - 1);
        if (n <= 0)
                return false;
        name[n] = '\0'; /* the first of the arguments, which end with NUL */
        return true;
}

/* One of a vGPU first: a scenario's runs nowhere, and its number may be that of another one here. */
nvmlReturn_t our_nvmlSystemGetProcessName(unsigned int pid, char *text, unsigned int size)
{
        struct state_process process;
        int saved_errno = errno;
        char name[1024];
        bool found;

        if (!text || size == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        found = process_find(&process, pid);
        if (found)
                snprintf(name, sizeof(name), "%s", process.name);
        else
                found = read_command_line(pid, name, sizeof(name));
        errno = saved_errno;
        if (!found)
                return NVML_ERROR_NOT_FOUND;
        snprintf(text, size, "%s", name); /* cut to what fits, by contract */
        return NVML_SUCCESS;
}

/* We exclude nothing and know no S-class units: empty lists. */

nvmlReturn_t our_nvmlGetExcludedDeviceCount(unsigned int *count)
{
        if (!count)
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = 0;
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlGetExcludedDeviceInfoByIndex(unsigned int index,
                                                  nvmlExcludedDeviceInfo_t *info)
{
        (void)index;
        (void)info;
        return NVML_ERROR_INVALID_ARGUMENT; /* no index is in the list */
}

nvmlReturn_t our_nvmlGetBlacklistDeviceCount(unsigned int *count)
{
        return our_nvmlGetExcludedDeviceCount(count);
}

nvmlReturn_t our_nvmlGetBlacklistDeviceInfoByIndex(unsigned int index,
                                                   nvmlExcludedDeviceInfo_t *info)
{
        return our_nvmlGetExcludedDeviceInfoByIndex(index, info);
}

nvmlReturn_t our_nvmlUnitGetCount(unsigned int *count)
{
        return our_nvmlGetExcludedDeviceCount(count);
}

/* No host interface cards either. Who offers no room asks for their number. */
nvmlReturn_t our_nvmlSystemGetHicVersion(unsigned int *count, nvmlHwbcEntry_t *entries)
{
        if (!count || (!entries && *count > 0))
                return NVML_ERROR_INVALID_ARGUMENT;
        *count = 0;
        return NVML_SUCCESS;
}
