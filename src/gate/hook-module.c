/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by which the driver takes memory for the code of kernels. No quota counts that. On an overcommitted device
 * others leave for it, as they do for what the program allocates.
 */
#include "base/size.h"
#include "gate/current.h"
#include "gate/entry.h"
#include "gate/quota.h"

/* What is asked for. The manager makes more room each time that it was too little. */
#define CODE_BYTES (2 * MIB)
#define TRIES_MAX  16

struct loading {
        struct quota_want want;
        unsigned int n_tries;
};

static bool is_to_be_tried_again(struct loading *loading, CUresult result)
{
        if (result == CUDA_ERROR_OUT_OF_MEMORY && ++loading->n_tries < TRIES_MAX) {
                loading->want.device = current_device();
                loading->want.bytes = CODE_BYTES;
                if (quota_wait_for_room(&loading->want))
                        return true;
        }
        quota_end_wait(&loading->want);
        return false;
}

CUresult our_cuModuleLoad(CUmodule *module, const char *path)
{
        struct loading loading = { 0 };
        CUresult result;

        do
                result = DRIVER(cuModuleLoad)(module, path);
        while (is_to_be_tried_again(&loading, result));
        return result;
}

CUresult our_cuModuleLoadData(CUmodule *module, const void *image)
{
        struct loading loading = { 0 };
        CUresult result;

        do
                result = DRIVER(cuModuleLoadData)(module, image);
        while (is_to_be_tried_again(&loading, result));
        return result;
}

CUresult our_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, int *options,
                                void **values)
{
        struct loading loading = { 0 };
        CUresult result;

        do
                result = DRIVER(cuModuleLoadDataEx)(module, image, n, options, values);
        while (is_to_be_tried_again(&loading, result));
        return result;
}

CUresult our_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
        struct loading loading = { 0 };
        CUresult result;

        do
                result = DRIVER(cuModuleLoadFatBinary)(module, image);
        while (is_to_be_tried_again(&loading, result));
        return result;
}

CUresult our_cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options,
                               void **jit_values, unsigned int n_jit, int *options, void **values,
                               unsigned int n)
{
        struct loading loading = { 0 };
        CUresult result;

        do
                result = DRIVER(cuLibraryLoadData)(library, image, jit_options, jit_values, n_jit,
                                                   options, values, n);
        while (is_to_be_tried_again(&loading, result));
        return result;
}

CUresult our_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
        struct loading loading = { 0 };
        CUresult result;

        do
                result = DRIVER(cuLibraryGetModule)(module, library);
        while (is_to_be_tried_again(&loading, result));
        return result;
}

CUresult our_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
        struct loading loading = { 0 };
        CUresult result;

        do
                result = DRIVER(cuKernelGetFunction)(function, kernel);
        while (is_to_be_tried_again(&loading, result));
        return result;
}
