/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/loader.h"

struct driver driver;

static const struct loader_function functions[] = {
#define REQUIRED(name) { #name, offsetof(struct driver, name), false },
#define OPTIONAL(name) { #name, offsetof(struct driver, name), true },
        DRIVER_FUNCTIONS(REQUIRED) DRIVER_FUNCTIONS_OPTIONAL(OPTIONAL)
};

int driver_load(void)
{
        const char *path = loader_get_driver(), *missing;
        int r = loader_load(path, functions, sizeof(functions) / sizeof(functions[0]), &driver,
                            &missing);
        CUresult code;

        if (r == -ENOSYS)
                fprintf(stderr, "mover: event=driver-too-old path=%s missing=%s\n", path, missing);
        else if (r < 0)
                fprintf(stderr, "mover: event=driver-not-loaded path=%s reason=\"%s\"\n", path,
                        dlerror());
        if (r < 0)
                return -ENOENT;

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

void driver_forget(struct mover_done *done)
{
        done->driver_code = 0;
        done->call[0] = '\0';
}

int driver_fault_point(struct mover_done *done, const char *name)
{
        if (!fault_point(name))
                return 0;

        note(done, name, CUDA_SUCCESS);
        return -EIO;
}
