/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: kernels and host functions. */

#include <string.h>

#include "sim/module.h"
#include "sim/stream.h"

/* The ends of an `extra` list, and what comes before the buffer and its size in it. */
#define EXTRA_END    ((void *)0)
#define EXTRA_BUFFER ((void *)1)
#define EXTRA_SIZE   ((void *)2)

static void take_parameters(struct work *work, void **parameters)
{
        const struct kernel *kernel = work->kernel.kernel;

        for (unsigned int i = 0; i < kernel->n_arguments; i++)
                memcpy(&work->kernel.arguments.value[i], parameters[i], kernel->size[i]);
}

/* A buffer holds the arguments one after the other, each aligned to its own size. */
static CUresult take_buffer(struct work *work, void **extra)
{
        const struct kernel *kernel = work->kernel.kernel;
        const char *buffer = NULL;
        size_t size = 0, at = 0;

        for (; *extra != EXTRA_END; extra += 2) {
                if (*extra == EXTRA_BUFFER)
                        buffer = extra[1];
                else if (*extra == EXTRA_SIZE)
                        memcpy(&size, extra[1], sizeof(size));
                else
                        return CUDA_ERROR_INVALID_VALUE;
        }
        for (unsigned int i = 0; i < kernel->n_arguments; i++) {
                at = (at + kernel->size[i] - 1) / kernel->size[i] * kernel->size[i];
                if (!buffer || at + kernel->size[i] > size)
                        return CUDA_ERROR_INVALID_VALUE;
                memcpy(&work->kernel.arguments.value[i], buffer + at, kernel->size[i]);
                at += kernel->size[i];
        }
        return CUDA_SUCCESS;
}

static CUresult make_work(struct work **ret_work, CUfunction function, void **parameters,
                          void **extra)
{
        CLEANUP(work_freep) struct work *work = work_new(WORK_KERNEL);
        CUresult result = CUDA_SUCCESS;
        PROCESS_LOCKED();

        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (!object_find(function, OBJECT_FUNCTION))
                return CUDA_ERROR_INVALID_HANDLE;
        result = module_load_code(function->module);
        if (result != CUDA_SUCCESS)
                return result;
        work->kernel.kernel = function->kernel;
        if (parameters)
                take_parameters(work, parameters);
        else if (extra)
                result = take_buffer(work, extra);
        else
                result = CUDA_ERROR_INVALID_VALUE; /* all kernels have arguments */
        if (result == CUDA_SUCCESS)
                *ret_work = TAKE(work);
        return result;
}

static bool is_grid(unsigned int x, unsigned int y, unsigned int z)
{
        return x > 0 && y > 0 && z > 0;
}

#define THREADS_MAX 1024

CUresult sim_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                            void **parameters, void **extra)
{
        struct work *work;
        CUresult result;

        (void)shared_bytes;
        if (!is_grid(grid_x, grid_y, grid_z) || !is_grid(block_x, block_y, block_z) ||
            (uint64_t)block_x * block_y * block_z > THREADS_MAX)
                return CUDA_ERROR_INVALID_VALUE;
        result = make_work(&work, function, parameters, extra);
        return result ? result : stream_submit(stream, work);
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                              void **extra)
{
        if (!config)
                return CUDA_ERROR_INVALID_VALUE;
        return sim_cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                                  config->blockDimX, config->blockDimY, config->blockDimZ,
                                  config->sharedMemBytes, config->hStream, parameters, extra);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                       unsigned int grid_y, unsigned int grid_z,
                                       unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes,
                                       CUstream stream, void **parameters)
{
        return sim_cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                  shared_bytes, stream, parameters, NULL);
}

CUresult sim_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
        struct work *work;

        if (!function)
                return CUDA_ERROR_INVALID_VALUE;
        work = work_new(WORK_HOST);
        if (work) {
                work->host.function = function;
                work->host.data = data;
        }
        return stream_submit(stream, work);
}

CUresult sim_cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
                                 unsigned int flags)
{
        struct work *work;

        if (!function || flags)
                return CUDA_ERROR_INVALID_VALUE;
        work = work_new(WORK_CALLBACK);
        if (work) {
                work->callback.function = function;
                work->callback.stream = stream;
                work->callback.data = data;
        }
        return stream_submit(stream, work);
}
