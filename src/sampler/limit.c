/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/limit.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "abi/nvml-limit.h"
#include "base/loader.h"
#include "base/privilege.h"

/* Of NVML, what is needed for it; its limit is a function of R615. */
static struct {
        nvmlReturn_t (*init)(void);
        nvmlReturn_t (*find)(const char *uuid, nvmlDevice_t *device);
        nvmlReturn_t (*set)(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t *limits);
} nvml;

static const struct loader_function functions[] = {
        { "nvmlInit_v2", 0, false },
        { "nvmlDeviceGetHandleByUUID", sizeof(nvml.init), false },
        { "nvmlDeviceSetMemoryLimits_v1", sizeof(nvml.init) + sizeof(nvml.find), true },
};

static int32_t set(const char *group, unsigned long long bytes, const char *uuid)
{
        nvmlSetMemoryLimits_v1_t limits = { group, 0, bytes };
        nvmlDevice_t device;
        nvmlReturn_t r = nvml.find(uuid, &device);

        return (int32_t)(r == NVML_SUCCESS ? nvml.set(device, &limits) : r);
}

static int32_t set_all(char **argv)
{
        unsigned long long bytes = strtoull(argv[4], NULL, 10);
        const char *missing;
        int32_t r = 0;

        if (loader_load(argv[2], functions, sizeof(functions) / sizeof(functions[0]), &nvml,
                        &missing) < 0)
                return LIMITER_FAILED;
        if (!nvml.set)
                return LIMITER_UNKNOWN;
        if (nvml.init() != NVML_SUCCESS)
                return LIMITER_FAILED;
        for (char **uuid = argv + 5; *uuid && r == 0; uuid++)
                r = set(argv[3], bytes, *uuid);
        return r == NVML_ERROR_NOT_SUPPORTED || r == NVML_ERROR_FUNCTION_NOT_FOUND ? LIMITER_UNKNOWN
                                                                                   : r;
}

int limit_main(int argc, char **argv)
{
        int32_t r;

        (void)privilege_keep(PRIVILEGE_LIMITER);
        if (argc < 6)
                return 2;
        r = set_all(argv);
        return send(LIMITER_FD, &r, sizeof(r), MSG_NOSIGNAL) == (ssize_t)sizeof(r) && r == 0 ? 0
                                                                                             : 1;
}
