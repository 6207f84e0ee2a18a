/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules, and the functions in them.
 *
 * An image may be anything: every module has the kernels of kernel.h and no
 * others. A library is a module that belongs to no context.
 */

#include "sim/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "sim/memory-file.h"

struct CUmod_st {
        struct object object;
        CUmodule next;
        CUcontext context;        /* NULL: a library's */
        struct memory_file *code; /* of its kernels, once one was launched */
        struct CUfunc_st function[KERNEL_COUNT];
};

static CUmodule modules; /* list, under the process' lock */

static CUmodule new_module(CUcontext context)
{
        CUmodule module = calloc(1, sizeof(*module));

        if (!module)
                return NULL;
        module->context = context;
        module->next = modules;
        modules = module;
        object_add(&module->object, OBJECT_MODULE);
        for (size_t i = 0; i < KERNEL_COUNT; i++) {
                module->function[i].module = module;
                module->function[i].kernel = kernel_get(i);
                object_add(&module->function[i].object, OBJECT_FUNCTION);
        }
        return module;
}

static void free_module(CUmodule module)
{
        CUmodule *link = &modules;

        while (*link != module)
                link = &(*link)->next;
        *link = module->next;
        for (size_t i = 0; i < KERNEL_COUNT; i++)
                object_remove(&module->function[i].object);
        object_remove(&module->object);
        (void)memory_file_unref(module->code);
        free(module);
}

void module_unload_all(CUcontext context)
{
        CUmodule module = modules;

        while (module) {
                CUmodule next = module->next;

                if (module->context == context)
                        free_module(module);
                module = next;
        }
}

/* OPENVGPU_SIM_CODE; else what there is to a kernel is part of the context. */
static uint64_t get_code_size(void)
{
        static uint64_t size; /* both under the process' lock */
        static bool is_read;
        const char *wanted = getenv(MODULE_CODE_VARIABLE);

        if (!is_read && wanted && size_parse(&size, wanted) < 0)
                size = 0;
        is_read = true;
        return (size + MEMORY_PAGE - 1) & ~(MEMORY_PAGE - 1);
}

CUresult module_load_code(CUmodule module)
{
        uint64_t size = get_code_size();
        CUcontext context;
        CUresult result;

        if (module->code || size == 0)
                return CUDA_SUCCESS;
        result = context_get(&context);
        return result ? result
                      : memory_file_create(&module->code, process.device[context->device].at, size);
}

CUresult sim_cuModuleLoadData(CUmodule *module, const void *image)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!module || !image)
                return CUDA_ERROR_INVALID_VALUE;
        *module = new_module(context);
        return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, int *options,
                                void **values)
{
        (void)n;
        (void)options;
        (void)values;
        return sim_cuModuleLoadData(module, image);
}

CUresult sim_cuModuleLoad(CUmodule *module, const char *path)
{
        if (!path)
                return CUDA_ERROR_INVALID_VALUE;
        return access(path, R_OK) < 0 ? CUDA_ERROR_FILE_NOT_FOUND
                                      : sim_cuModuleLoadData(module, path);
}

CUresult sim_cuModuleUnload(CUmodule module)
{
        PROCESS_LOCKED();

        if (!object_find(module, OBJECT_MODULE) || !module->context)
                return CUDA_ERROR_INVALID_HANDLE;
        free_module(module);
        return CUDA_SUCCESS;
}

/* Once: who looks for many would not read more. */
static void tell_no_kernel(const char *name)
{
        static bool is_told; /* under the process' lock */

        if (!is_told)
                (void)fprintf(
                        stderr,
                        "simulated CUDA driver: no kernel '%.200s': it runs fill, add and busy "
                        "only (docs/simulated-gpu.md)\n",
                        name);
        is_told = true;
}

static CUresult find_function(CUfunction *function, CUmodule module, const char *name)
{
        if (!function || !name)
                return CUDA_ERROR_INVALID_VALUE;
        if (!object_find(module, OBJECT_MODULE))
                return CUDA_ERROR_INVALID_HANDLE;
        for (size_t i = 0; i < KERNEL_COUNT; i++) {
                if (strcmp(module->function[i].kernel->name, name) == 0) {
                        *function = &module->function[i];
                        return CUDA_SUCCESS;
                }
        }
        tell_no_kernel(name);
        return CUDA_ERROR_NOT_FOUND;
}

CUresult sim_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
        PROCESS_LOCKED();

        return find_function(function, module, name);
}

CUresult sim_cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
        PROCESS_LOCKED();

        if (!object_find(module, OBJECT_MODULE))
                return CUDA_ERROR_INVALID_HANDLE;
        if (!count)
                return CUDA_ERROR_INVALID_VALUE;
        *count = KERNEL_COUNT;
        return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *size, CUmodule module,
                                  const char *name)
{
        PROCESS_LOCKED();

        (void)pointer;
        (void)size;
        if (!object_find(module, OBJECT_MODULE))
                return CUDA_ERROR_INVALID_HANDLE;
        return name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

#define LAZY_LOADING 2

CUresult sim_cuModuleGetLoadingMode(int *mode)
{
        if (!mode)
                return CUDA_ERROR_INVALID_VALUE;
        *mode = LAZY_LOADING;
        return CUDA_SUCCESS;
}

/* Libraries and kernels are modules and functions under other names. */

CUresult sim_cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options,
                               void **jit_values, unsigned int n_jit, int *options, void **values,
                               unsigned int n)
{
        PROCESS_LOCKED();

        (void)jit_options;
        (void)jit_values;
        (void)n_jit;
        (void)options;
        (void)values;
        (void)n;
        if (!library || !image)
                return CUDA_ERROR_INVALID_VALUE;
        *library = (CUlibrary)new_module(NULL);
        return *library ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuLibraryUnload(CUlibrary library)
{
        CUmodule module = (CUmodule)library;
        PROCESS_LOCKED();

        if (!object_find(module, OBJECT_MODULE) || module->context)
                return CUDA_ERROR_INVALID_HANDLE;
        free_module(module);
        return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
        PROCESS_LOCKED();

        return find_function((CUfunction *)kernel, (CUmodule)library, name);
}

CUresult sim_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
        PROCESS_LOCKED();

        if (!module)
                return CUDA_ERROR_INVALID_VALUE;
        if (!object_find(library, OBJECT_MODULE))
                return CUDA_ERROR_INVALID_HANDLE;
        *module = (CUmodule)library;
        return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
        PROCESS_LOCKED();

        if (!function)
                return CUDA_ERROR_INVALID_VALUE;
        if (!object_find(kernel, OBJECT_FUNCTION))
                return CUDA_ERROR_INVALID_HANDLE;
        *function = (CUfunction)kernel;
        return CUDA_SUCCESS;
}

/* By CUfunction_attribute: an unassuming kernel of 32 registers. */
static const int attributes[] = { 1024, 0, 0, 0, 32, 90, 90, 0, 49152, -1, 0, 0, 0, 0, 0, 0 };

CUresult sim_cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
        PROCESS_LOCKED();

        if (!object_find(function, OBJECT_FUNCTION))
                return CUDA_ERROR_INVALID_HANDLE;
        if (!value || attribute < 0 || attribute >= (int)(sizeof(attributes) / sizeof(int)))
                return CUDA_ERROR_INVALID_VALUE;
        *value = attributes[attribute];
        return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
        PROCESS_LOCKED();

        (void)attribute;
        (void)value;
        return object_find(function, OBJECT_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuFuncSetCacheConfig(CUfunction function, int config)
{
        return sim_cuFuncSetAttribute(function, 0, config);
}

CUresult sim_cuFuncGetName(const char **name, CUfunction function)
{
        PROCESS_LOCKED();

        if (!object_find(function, OBJECT_FUNCTION))
                return CUDA_ERROR_INVALID_HANDLE;
        if (!name)
                return CUDA_ERROR_INVALID_VALUE;
        *name = function->kernel->name;
        return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetModule(CUmodule *module, CUfunction function)
{
        PROCESS_LOCKED();

        if (!object_find(function, OBJECT_FUNCTION))
                return CUDA_ERROR_INVALID_HANDLE;
        if (!module)
                return CUDA_ERROR_INVALID_VALUE;
        *module = function->module;
        return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                         int block_size, size_t shared_bytes)
{
        PROCESS_LOCKED();

        (void)shared_bytes;
        if (!object_find(function, OBJECT_FUNCTION))
                return CUDA_ERROR_INVALID_HANDLE;
        if (!blocks || block_size <= 0)
                return CUDA_ERROR_INVALID_VALUE;
        *blocks = 2048 / block_size < 32 ? 2048 / block_size : 32;
        return CUDA_SUCCESS;
}
