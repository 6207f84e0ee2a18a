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

/* From CUDA 13.4 on. */
#define STORAGE_VERSION 13040

static void *find_in_version(const char *name, int version)
{
        void *function = NULL;
        int status;

        if (driver.cuGetProcAddress_v2(name, &function, version, 0, &status) != CUDA_SUCCESS)
                return NULL;
        return function;
}

/*
 * Checkpoint and restore are asked for in that version, too: the names that dlsym() finds may be those
 * of an older ABI, in which the fields for custom storage are reserved.
 */
static void resolve_storage(void)
{
        void *complete, *checkpoint, *restore;

        if (driver.version < STORAGE_VERSION)
                return;
        complete = find_in_version("cuCheckpointOperationComplete", STORAGE_VERSION);
        checkpoint = find_in_version("cuCheckpointProcessCheckpoint", STORAGE_VERSION);
        restore = find_in_version("cuCheckpointProcessRestore", STORAGE_VERSION);
        if (!complete || !checkpoint || !restore)
                return;
        memcpy(&driver.cuCheckpointOperationComplete, &complete, sizeof(complete));
        memcpy(&driver.cuCheckpointProcessCheckpoint, &checkpoint, sizeof(checkpoint));
        memcpy(&driver.cuCheckpointProcessRestore, &restore, sizeof(restore));
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
        resolve_storage();
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
