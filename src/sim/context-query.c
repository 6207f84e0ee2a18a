/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of a context, and settings that it keeps but that change nothing here. */

#include "sim/context.h"

#define API_VERSION 13000

CUresult sim_cuCtxGetFlags(unsigned int *flags)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result == CUDA_SUCCESS && !flags)
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *flags = context->flags;
        return result;
}

CUresult sim_cuCtxGetId(CUcontext context, unsigned long long *id)
{
        CUresult result = CUDA_SUCCESS;
        PROCESS_LOCKED();

        if (!context)
                result = context_get_own(&context);
        if (result != CUDA_SUCCESS || !context_find(context))
                return CUDA_ERROR_INVALID_CONTEXT;
        if (!id)
                return CUDA_ERROR_INVALID_VALUE;
        *id = context->id;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
        CUresult result = CUDA_SUCCESS;
        PROCESS_LOCKED();

        if (!context)
                result = context_get(&context);
        if (result != CUDA_SUCCESS || !context_find(context))
                return CUDA_ERROR_INVALID_CONTEXT;
        if (!version)
                return CUDA_ERROR_INVALID_VALUE;
        *version = API_VERSION;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetLimit(size_t *value, int limit)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!value || limit < 0 || limit >= CONTEXT_LIMITS)
                return CUDA_ERROR_INVALID_VALUE;
        *value = context->limits[limit];
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetLimit(int limit, size_t value)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (limit < 0 || limit >= CONTEXT_LIMITS)
                return CUDA_ERROR_INVALID_VALUE;
        context->limits[limit] = value;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCacheConfig(int *config)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result == CUDA_SUCCESS && !config)
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *config = context->cache_config;
        return result;
}

CUresult sim_cuCtxSetCacheConfig(int config)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result == CUDA_SUCCESS)
                context->cache_config = config;
        return result;
}

CUresult sim_cuCtxGetSharedMemConfig(int *config)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result == CUDA_SUCCESS && !config)
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *config = context->shared_config;
        return result;
}

CUresult sim_cuCtxSetSharedMemConfig(int config)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result == CUDA_SUCCESS)
                context->shared_config = config;
        return result;
}

/* The range that the real driver gives: a smaller number comes first. */
CUresult sim_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (least)
                *least = 0;
        if (greatest)
                *greatest = -5;
        return CUDA_SUCCESS;
}
