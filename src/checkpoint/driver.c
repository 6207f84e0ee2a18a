/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/loader.h"

struct driver driver;

static const struct loader_function functions[] = {
#define ENTRY(name) { #name, offsetof(struct driver, name), false },
        DRIVER_FUNCTIONS(ENTRY) DRIVER_FUNCTIONS_CHECKPOINT(ENTRY)
};

static int load(char *problem, size_t room)
{
        const char *missing;
        int r = loader_load(loader_get_driver(), functions,
                            sizeof(functions) / sizeof(functions[0]), &driver, &missing);

        if (r == -ENOSYS)
                snprintf(problem, room, "the CUDA driver has no %s%s", missing,
                         strncmp(missing, "cuCheckpoint", strlen("cuCheckpoint")) == 0
                                 ? ": it is older than branch 570"
                                 : "");
        else if (r < 0)
                snprintf(problem, room, "no CUDA driver: %s", dlerror());
        return r;
}

int driver_load(char *problem, size_t room)
{
        static bool is_loaded;
        CUresult code;

        if (is_loaded)
                return 0;
        if (load(problem, room) < 0)
                return -ENODEV;
        code = driver.cuInit(0);
        if (code != CUDA_SUCCESS) {
                snprintf(problem, room, "the CUDA driver does not start: cuInit answers %d %s",
                         (int)code, driver_error_name(code));
                return -ENODEV;
        }
        is_loaded = true;
        return 0;
}

const char *driver_error_name(CUresult code)
{
        const char *name = NULL;

        if (code == CUDA_SUCCESS || driver.cuGetErrorName(code, &name) != CUDA_SUCCESS || !name)
                return "";
        return name;
}

const char *driver_error_text(CUresult code)
{
        const char *text = NULL;

        if (code == CUDA_SUCCESS || driver.cuGetErrorString(code, &text) != CUDA_SUCCESS || !text)
                return "";
        return text;
}
