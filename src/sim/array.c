/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: memory with a layout of the device's own.
 *
 * Nothing here reads or writes them; they take memory, as they do on a real
 * device, and are moved by a checkpoint.
 */

#include <stdlib.h>

#include "sim/context.h"
#include "sim/mapping.h"

/* A mipmapped array is one, too, with more levels. */
struct CUarray_st {
        struct object object;
        CUDA_ARRAY3D_DESCRIPTOR descriptor;
        struct memory_file *file;
        CUarray level0; /* of a mipmapped one, once asked for */
        bool is_mipmapped;
        bool is_level;
};

static size_t bytes_of(CUarray_format format)
{
        switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
                return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
                return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
                return 4;
        }
        return 0;
}

static size_t at_least_one(size_t n)
{
        return n ? n : 1;
}

/* 0: not a descriptor. */
static uint64_t size_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
        unsigned int channels = descriptor->NumChannels;
        uint64_t size = bytes_of(descriptor->Format) * channels;

        if ((channels != 1 && channels != 2 && channels != 4) || descriptor->Width == 0)
                return 0;
        if (__builtin_mul_overflow(size, descriptor->Width, &size) ||
            __builtin_mul_overflow(size, at_least_one(descriptor->Height), &size) ||
            __builtin_mul_overflow(size, at_least_one(descriptor->Depth), &size) ||
            size > UINT64_MAX / 4)
                return 0;
        return size;
}

static CUresult create(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                       unsigned int levels)
{
        CLEANUP(freep) CUarray array = calloc(1, sizeof(*array));
        uint64_t size = size_of(descriptor);
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!ret_array || size == 0)
                return CUDA_ERROR_INVALID_VALUE;
        if (!array)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (levels > 1)
                size += size / 3; /* 1/4 + 1/16 + ... */
        size = (size + MEMORY_PAGE - 1) & ~(MEMORY_PAGE - 1);
        result = memory_file_create(&array->file, process.device[context->device].at, size);
        if (result != CUDA_SUCCESS)
                return result;
        array->descriptor = *descriptor;
        object_add(&array->object, OBJECT_ARRAY);
        *ret_array = TAKE(array);
        return CUDA_SUCCESS;
}

static void destroy(CUarray array)
{
        object_remove(&array->object);
        if (array->level0)
                destroy(array->level0);
        (void)memory_file_unref(array->file);
        free(array);
}

static CUarray find(CUarray array, bool is_mipmapped)
{
        CUarray found = object_find(array, OBJECT_ARRAY);

        return found && found->is_mipmapped == is_mipmapped ? found : NULL;
}

CUresult sim_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
        return descriptor ? create(array, descriptor, 1) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
        CUDA_ARRAY3D_DESCRIPTOR all = { 0 };

        if (!descriptor)
                return CUDA_ERROR_INVALID_VALUE;
        all.Width = descriptor->Width;
        all.Height = descriptor->Height;
        all.Format = descriptor->Format;
        all.NumChannels = descriptor->NumChannels;
        return create(array, &all, 1);
}

CUresult sim_cuArrayDestroy(CUarray array)
{
        PROCESS_LOCKED();

        if (!find(array, false) || array->is_level)
                return CUDA_ERROR_INVALID_HANDLE;
        destroy(array);
        return CUDA_SUCCESS;
}

CUresult sim_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
{
        PROCESS_LOCKED();

        if (!find(array, false))
                return CUDA_ERROR_INVALID_HANDLE;
        if (!descriptor)
                return CUDA_ERROR_INVALID_VALUE;
        *descriptor = array->descriptor;
        return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array)
{
        CUDA_ARRAY3D_DESCRIPTOR all;
        CUresult result = sim_cuArray3DGetDescriptor_v2(&all, array);

        if (result != CUDA_SUCCESS || !descriptor)
                return result ? result : CUDA_ERROR_INVALID_VALUE;
        descriptor->Width = all.Width;
        descriptor->Height = all.Height;
        descriptor->Format = all.Format;
        descriptor->NumChannels = all.NumChannels;
        return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayCreate(CUmipmappedArray *mipmapped,
                                    const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
        CUarray array;
        CUresult result;

        if (!mipmapped || !descriptor || levels == 0)
                return CUDA_ERROR_INVALID_VALUE;
        result = create(&array, descriptor, levels);
        if (result != CUDA_SUCCESS)
                return result;
        array->is_mipmapped = true;
        *mipmapped = (CUmipmappedArray)array;
        return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayDestroy(CUmipmappedArray mipmapped)
{
        PROCESS_LOCKED();

        if (!find((CUarray)mipmapped, true))
                return CUDA_ERROR_INVALID_HANDLE;
        destroy((CUarray)mipmapped);
        return CUDA_SUCCESS;
}

/* Only the first, which programs ask for to know the layout. */
CUresult sim_cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmapped,
                                      unsigned int level)
{
        CUarray whole, first;
        PROCESS_LOCKED();

        whole = find((CUarray)mipmapped, true);
        if (!whole)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!array || level > 0)
                return array ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
        first = whole->level0 ? whole->level0 : calloc(1, sizeof(*first));
        if (!first)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (!whole->level0) {
                first->descriptor = whole->descriptor;
                first->is_level = true;
                object_add(&first->object, OBJECT_ARRAY);
                whole->level0 = first;
        }
        *array = first;
        return CUDA_SUCCESS;
}
