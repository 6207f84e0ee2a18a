/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of a stream. */

#include "sim/stream.h"

CUresult sim_cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, handle);
        if (result == CUDA_SUCCESS && !flags)
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *flags = stream->flags;
        return result;
}

CUresult sim_cuStreamGetPriority(CUstream handle, int *priority)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, handle);
        if (result == CUDA_SUCCESS && !priority)
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *priority = stream->priority;
        return result;
}

CUresult sim_cuStreamGetCtx(CUstream handle, CUcontext *context)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, handle);
        if (result == CUDA_SUCCESS && !context)
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *context = stream->context;
        return result;
}

CUresult sim_cuStreamGetId(CUstream handle, unsigned long long *id)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, handle);
        if (result == CUDA_SUCCESS && !id)
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *id = stream->id;
        return result;
}

CUresult sim_cuStreamGetDevice(CUstream handle, CUdevice *device)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        result = stream_find(&stream, handle);
        if (result == CUDA_SUCCESS && !device)
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *device = stream->context->device;
        return result;
}
