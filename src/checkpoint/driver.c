/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver driver;

static const struct {
        const char *name;
        size_t offset;
        bool is_checkpoint;
} functions[] = {
#define BASIC(name)      { #name, offsetof(struct driver, name), false },
#define CHECKPOINT(name) { #name, offsetof(struct driver, name), true },
        DRIVER_FUNCTIONS(BASIC) DRIVER_FUNCTIONS_CHECKPOINT(CHECKPOINT)
};

static int resolve(void *library, char *problem, size_t room)
{
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
                void *function = dlsym(library, functions[i].name);

                if (!function) {
                        snprintf(problem, room, "the CUDA driver has no %s%s", functions[i].name,
                                 functions[i].is_checkpoint ? ": it is older than branch 570" : "");
                        return -ENODEV;
                }
                memcpy((char *)&driver + functions[i].offset, &function, sizeof(function));
        }
        return 0;
}

int driver_load(char *problem, size_t room)
{
        static bool is_loaded;
        const char *given = getenv("OPENVGPU_DRIVER");
        void *library;
        CUresult code;

        if (is_loaded)
                return 0;
        library = dlopen(given && *given ? given : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) {
                snprintf(problem, room, "no CUDA driver: %s", dlerror());
                return -ENODEV;
        }
        if (resolve(library, problem, room) < 0)
                return -ENODEV;
        code = driver.cuInit(0);
        if (code == CUDA_SUCCESS)
                code = driver.cuDriverGetVersion(&driver.version);
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
