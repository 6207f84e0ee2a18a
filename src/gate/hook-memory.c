/* SPDX-License-Identifier: Apache-2.0 */
/* Allocate, free, and how much there is: under the quota, out of memory that we can move. */
#include <stdatomic.h>

#include "gate/current.h"
#include "gate/entry.h"
#include "gate/hook.h"
#include "gate/log.h"
#include "gate/mapping.h"
#include "gate/memory.h"
#include "gate/peer.h"
#include "gate/pool-import.h"
#include "gate/pool.h"
#include "gate/quota.h"
#include "gate/settings.h"
#include "gate/visible.h"

static bool is_movable_here(void)
{
        CUdevice device;

        if (DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
                return true; /* the allocation will fail, as it should */
        return !settings.is_native && mapping_is_possible(device);
}

CUresult our_cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
        if (!pointer || size == 0)
                return DRIVER(cuMemAlloc_v2)(pointer, size); /* it knows what to answer */
        return is_movable_here() ? memory_allocate(pointer, size)
                                 : hook_allocate_of_driver(pointer, size);
}

/* By device, and by element size: 4, 8 or 16 bytes; 0 is not known yet. */
static _Atomic size_t pitch_known[PEER_DEVICES_MAX][3];

static _Atomic size_t *pitch_place(unsigned int element_size)
{
        CUdevice device;

        if (DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS || device < 0 ||
            device >= PEER_DEVICES_MAX)
                return NULL;
        switch (element_size) {
        case 4:
                return &pitch_known[device][0];
        case 8:
                return &pitch_known[device][1];
        case 16:
                return &pitch_known[device][2];
        default:
                return NULL; /* the driver knows what to answer */
        }
}

/*
 * The driver rounds rows up to a power of two that it does not publish (512 on all devices known);
 * a row of one byte shows it. It is asked once: to free the row waits for the device.
 */
static CUresult pitch_alignment(size_t *ret_alignment, unsigned int element_size)
{
        _Atomic size_t *known = pitch_place(element_size);
        CUdeviceptr row;
        CUresult result;

        *ret_alignment = known ? atomic_load(known) : 0;
        if (*ret_alignment > 0)
                return CUDA_SUCCESS;
        result = DRIVER(cuMemAllocPitch_v2)(&row, ret_alignment, 1, 1, element_size);
        if (result == CUDA_SUCCESS)
                result = DRIVER(cuMemFree_v2)(row);
        if (result == CUDA_SUCCESS && *ret_alignment == 0)
                result = CUDA_ERROR_UNKNOWN;
        if (result == CUDA_SUCCESS && known)
                atomic_store(known, *ret_alignment);
        return result;
}

CUresult our_cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                unsigned int element_size)
{
        size_t alignment, rounded, size;
        CUresult result;

        if (!pointer || !pitch || width == 0 || height == 0)
                return DRIVER(cuMemAllocPitch_v2)(pointer, pitch, width, height, element_size);
        result = pitch_alignment(&alignment, element_size);
        if (result != CUDA_SUCCESS)
                return result;
        if (__builtin_add_overflow(width, alignment - 1, &rounded) ||
            __builtin_mul_overflow(rounded - rounded % alignment, height, &size))
                return DRIVER(cuMemAllocPitch_v2)(pointer, pitch, width, height, element_size);
        rounded -= rounded % alignment;
        result = our_cuMemAlloc_v2(pointer, size);
        if (result == CUDA_SUCCESS)
                *pitch = rounded;
        return result;
}

CUresult our_cuMemFree_v2(CUdeviceptr pointer)
{
        CUresult result;

        if (pool_import_free(pointer, NULL, &result) || pool_free(pointer, NULL, &result) ||
            memory_free(pointer, &result))
                return result;
        return hook_free_of_driver(pointer);
}

CUresult our_cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
        CUresult result = DRIVER(cuMemGetInfo_v2)(free_bytes, total);
        struct quota_view quota;

        quota_get(current_device(), &quota);
        if (result != CUDA_SUCCESS || !quota.is_limited)
                return result;
        if (free_bytes && *free_bytes > quota.left)
                *free_bytes = quota.left;
        if (total && *total > quota.limit)
                *total = quota.limit;
        return result;
}

CUresult our_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
        CUresult result = DRIVER(cuDeviceTotalMem_v2)(bytes, device);
        struct quota_view quota;

        if (!visible_has(device)) /* the vGPU has no part of it */
                return result;
        quota_get(device, &quota);
        if (result == CUDA_SUCCESS && quota.is_limited && *bytes > quota.limit)
                *bytes = quota.limit;
        return result;
}
