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
        CUresult code;

        if (is_loaded)
                return 0;
        if (load(problem, room) < 0)
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
