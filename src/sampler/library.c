/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "base/loader.h"

struct library library;

#define REQUIRED(member, name)                                \
        {                                                     \
                name, offsetof(struct library, member), false \
        }
#define OPTIONAL(member, name)                               \
        {                                                    \
                name, offsetof(struct library, member), true \
        }

static const struct loader_function functions[] = {
        REQUIRED(init, "nvmlInit_v2"),
        REQUIRED(find, "nvmlDeviceGetHandleByUUID"),
        OPTIONAL(sample, "nvmlDeviceGetProcessesUtilizationInfo"),
        OPTIONAL(sample_before_550, "nvmlDeviceGetProcessUtilization"),
        OPTIONAL(list_processes, "nvmlDeviceGetComputeRunningProcesses_v3"),
        /* of the same layout; the one without a suffix isn't */
        OPTIONAL(list_processes, "nvmlDeviceGetComputeRunningProcesses_v2"),
        OPTIONAL(list_encoders, "nvmlDeviceGetEncoderSessions"),
        OPTIONAL(list_captures, "nvmlDeviceGetFBCSessions"),
};

int library_load(const char *path)
{
        const char *missing;
        int r = loader_load(path, functions, sizeof(functions) / sizeof(functions[0]), &library,
                            &missing);

        if (r == -ENOENT) {
                fprintf(stderr, "sampler: %s\n", dlerror());
                return r;
        }
        if (r < 0 || (!library.sample && !library.sample_before_550)) {
                fprintf(stderr, "sampler: %s has no samples of processes\n", path);
                return -ENOSYS;
        }
        return 0;
}
