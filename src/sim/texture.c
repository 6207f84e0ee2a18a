/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures of linear memory: no kernel here reads one, but whether memory may be bound is checked as
 * a real device checks it.
 */

#include <stdlib.h>

#include "sim/memory.h"
#include "sim/object.h"

struct texture {
        struct object object;
};

static CUresult texture_alignment(CUdeviceptr *ret_alignment, CUdevice_attribute attribute)
{
        int value;
        CUresult result = sim_cuDeviceGetAttribute(&value, attribute, 0);

        *ret_alignment = (CUdeviceptr)value;
        return result;
}

static CUresult check_memory(CUdeviceptr pointer, size_t bytes)
{
        CUdeviceptr alignment;
        CUresult result = texture_alignment(&alignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);

        if (result != CUDA_SUCCESS)
                return result;
        if (bytes == 0 || pointer % alignment != 0 || !memory_is_device(pointer, bytes))
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

static CUresult check_resource(const CUDA_RESOURCE_DESC *resource)
{
        CUdeviceptr alignment;
        CUresult result;

        if (resource->flags != 0)
                return CUDA_ERROR_INVALID_VALUE;
        switch (resource->resType) {
        case CU_RESOURCE_TYPE_LINEAR:
                return check_memory(resource->res.linear.devPtr, resource->res.linear.sizeInBytes);
        case CU_RESOURCE_TYPE_PITCH2D:
                result = texture_alignment(&alignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
                if (result == CUDA_SUCCESS && resource->res.pitch2D.pitchInBytes % alignment != 0)
                        result = CUDA_ERROR_INVALID_VALUE;
                return result ? result
                              : check_memory(resource->res.pitch2D.devPtr,
                                             resource->res.pitch2D.pitchInBytes *
                                                     resource->res.pitch2D.height);
        default:
                return CUDA_ERROR_NOT_SUPPORTED;
        }
}

CUresult sim_cuTexObjectCreate(CUtexObject *ret_object, const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *description, const void *view)
{
        struct texture *texture;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        (void)view;
        result = context_get(&context);
        if (result == CUDA_SUCCESS && (!ret_object || !resource || !description))
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                result = check_resource(resource);
        if (result != CUDA_SUCCESS)
                return result;
        texture = calloc(1, sizeof(*texture));
        if (!texture)
                return CUDA_ERROR_OUT_OF_MEMORY;
        object_add(&texture->object, OBJECT_TEXTURE);
        *ret_object = (CUtexObject)(uintptr_t)texture;
        return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectDestroy(CUtexObject object)
{
        struct texture *texture;
        PROCESS_LOCKED();

        texture = object_find((const void *)(uintptr_t)object, OBJECT_TEXTURE);
        if (!texture)
                return CUDA_ERROR_INVALID_VALUE;
        object_remove(&texture->object);
        free(texture);
        return CUDA_SUCCESS;
}
