/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

struct library library;

int library_load(const char *path)
{
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

        if (!handle) {
                fprintf(stderr, "sampler: %s\n", dlerror());
                return -ENOENT;
        }
        *(void **)&library.init = dlsym(handle, "nvmlInit_v2");
        *(void **)&library.find = dlsym(handle, "nvmlDeviceGetHandleByUUID");
        *(void **)&library.sample = dlsym(handle, "nvmlDeviceGetProcessesUtilizationInfo");
        *(void **)&library.sample_before_550 = dlsym(handle, "nvmlDeviceGetProcessUtilization");
        *(void **)&library.list_processes =
                dlsym(handle, "nvmlDeviceGetComputeRunningProcesses_v3");
        if (!library.list_processes) /* of the same layout; the one without a suffix isn't */
                *(void **)&library.list_processes =
                        dlsym(handle, "nvmlDeviceGetComputeRunningProcesses_v2");
        *(void **)&library.list_encoders = dlsym(handle, "nvmlDeviceGetEncoderSessions");
        *(void **)&library.list_captures = dlsym(handle, "nvmlDeviceGetFBCSessions");
        if (!library.init || !library.find || (!library.sample && !library.sample_before_550)) {
                fprintf(stderr, "sampler: %s has no samples of processes\n", path);
                return -ENOSYS;
        }
        return 0;
}
