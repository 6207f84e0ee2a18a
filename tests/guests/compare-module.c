/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: modules and libraries, which take memory for the code of kernels. */
#include <string.h>
#include <unistd.h>

#include "tests/guests/compare.h"
#include "tests/guests/kernels.h"

static void modules(void)
{
        CUfunction function;
        CUmodule module;

        compare_start();
        if (CALL(cuModuleLoadData, "text", &module, kernels) == CUDA_SUCCESS) {
                CALL(cuModuleGetFunction, "one that is there", &function, module, "add");
                CALL(cuModuleGetFunction, "one that is not", &function, module, "nobody");
                CALL(cuModuleUnload, "text", module);
        }
        if (CALL(cuModuleLoadDataEx, "no options", &module, kernels, 0, NULL, NULL) == CUDA_SUCCESS)
                CALL(cuModuleUnload, "no options", module);
        CALL(cuModuleLoadData, "no image", &module, NULL);
        CALL(cuModuleLoadDataEx, "no image", &module, NULL, 0, NULL, NULL);
}

static void nonsense(void)
{
        static const char zeros[4096];
        CUmodule module;

        compare_start();
        CALL(cuModuleLoadFatBinary, "zeros", &module, zeros);
}

static void files(void)
{
        char path[] = "/tmp/compare-XXXXXX";
        int fd = mkstemp(path);
        CUmodule module;

        compare_start();
        if (fd < 0 || write(fd, kernels, strlen(kernels)) < 0) {
                SAY("no file could be written");
                return;
        }
        (void)close(fd);
        if (CALL(cuModuleLoad, "a file", &module, path) == CUDA_SUCCESS)
                CALL(cuModuleUnload, "a file", module);
        (void)unlink(path);
        CALL(cuModuleLoad, "no such file", &module, path);
}

static void libraries(void)
{
        CUfunction function;
        CUlibrary library;
        CUmodule module;
        CUkernel kernel;

        compare_start();
        if (CALL(cuLibraryLoadData, "text", &library, kernels, NULL, NULL, 0, NULL, NULL, 0) !=
            CUDA_SUCCESS)
                return;
        CALL(cuLibraryGetModule, "its module", &module, library);
        if (CALL(cuLibraryGetKernel, "one that is there", &kernel, library, "add") == CUDA_SUCCESS)
                CALL(cuKernelGetFunction, "its function", &function, kernel);
        CALL(cuLibraryUnload, "text", library);
        CALL(cuLibraryLoadData, "no image", &library, NULL, NULL, NULL, 0, NULL, NULL, 0);
}

const struct compare_case compare_module[] = {
        { "modules", modules },     { "nonsense", nonsense }, { "files", files },
        { "libraries", libraries }, { NULL, NULL },
};
