/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

struct driver driver;

static const struct {
        const char *name;
        size_t offset;
        bool is_optional;
} functions[] = {
#define REQUIRED(name) { #name, offsetof(struct driver, name), false },
#define OPTIONAL(name) { #name, offsetof(struct driver, name), true },
        DRIVER_FUNCTIONS(REQUIRED) DRIVER_FUNCTIONS_OPTIONAL(OPTIONAL)
};

static int resolve(void *library, const char *path)
{
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
                void *function = dlsym(library, functions[i].name);

                if (!function && !functions[i].is_optional) {
                        fprintf(stderr, "mover: event=driver-too-old path=%s missing=%s\n", path,
                                functions[i].name);
                        return -ENOENT;
                }
                memcpy((char *)&driver + functions[i].offset, &function, sizeof(function));
        }
        return 0;
}

int driver_load(void)
{
        const char *given = getenv("OPENVGPU_DRIVER");
        const char *path = given && *given ? given : "libcuda.so.1";
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* never closed */
        CUresult code;
        int r;

        if (!library) {
                fprintf(stderr, "mover: event=driver-not-loaded path=%s reason=\"%s\"\n", path,
                        dlerror());
                return -ENOENT;
        }
        r = resolve(library, path);
        if (r < 0)
                return r;

        code = driver.cuInit(0);
        if (code == CUDA_ERROR_NO_DEVICE)
                return -ENODEV;
        if (code != CUDA_SUCCESS) {
                fprintf(stderr, "mover: event=driver-failed path=%s call=cuInit code=%d\n", path,
                        (int)code);
                return -EIO;
        }
        return 0;
}

static void note(struct mover_done *done, const char *call, CUresult code)
{
        size_t length = strnlen(call, sizeof(done->call) - 1);

        memset(done->call, 0, sizeof(done->call));
        memcpy(done->call, call, length);
        done->driver_code = (int32_t)code;
}

int driver_check(struct mover_done *done, const char *call, CUresult code)
{
        if (code == CUDA_SUCCESS)
                return 0;

        note(done, call, code);
        return code == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM : -EIO;
}

int driver_fault_point(struct mover_done *done, const char *name)
{
        if (!fault_point(name))
                return 0;

        note(done, name, CUDA_SUCCESS);
        return -EIO;
}
