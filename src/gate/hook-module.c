/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by which the driver takes memory for the code of kernels. No quota counts that. On an overcommitted device
 * others leave for it, as they do for what the program allocates.
 */
#include "gate/patience.h"

CUresult our_cuModuleLoad(CUmodule *module, const char *path)
{
        struct patience patience = PATIENCE_CODE(cuModuleLoad);
        CUresult result;

        do
                result = DRIVER(cuModuleLoad)(module, path);
        while (patience_again(&patience, result));
        return result;
}

CUresult our_cuModuleLoadData(CUmodule *module, const void *image)
{
        struct patience patience = PATIENCE_CODE(cuModuleLoadData);
        CUresult result;

        do
                result = DRIVER(cuModuleLoadData)(module, image);
        while (patience_again(&patience, result));
        return result;
}

CUresult our_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, int *options,
                                void **values)
{
        struct patience patience = PATIENCE_CODE(cuModuleLoadDataEx);
        CUresult result;

        do
                result = DRIVER(cuModuleLoadDataEx)(module, image, n, options, values);
        while (patience_again(&patience, result));
        return result;
}

CUresult our_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
        struct patience patience = PATIENCE_CODE(cuModuleLoadFatBinary);
        CUresult result;

        do
                result = DRIVER(cuModuleLoadFatBinary)(module, image);
        while (patience_again(&patience, result));
        return result;
}

CUresult our_cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options,
                               void **jit_values, unsigned int n_jit, int *options, void **values,
                               unsigned int n)
{
        struct patience patience = PATIENCE_CODE(cuLibraryLoadData);
        CUresult result;

        do
                result = DRIVER(cuLibraryLoadData)(library, image, jit_options, jit_values, n_jit,
                                                   options, values, n);
        while (patience_again(&patience, result));
        return result;
}

CUresult our_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
        struct patience patience = PATIENCE_CODE(cuLibraryGetModule);
        CUresult result;

        do
                result = DRIVER(cuLibraryGetModule)(module, library);
        while (patience_again(&patience, result));
        return result;
}

CUresult our_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
        struct patience patience = PATIENCE_CODE(cuKernelGetFunction);
        CUresult result;

        do
                result = DRIVER(cuKernelGetFunction)(function, kernel);
        while (patience_again(&patience, result));
        return result;
}
