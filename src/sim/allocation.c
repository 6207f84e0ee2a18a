/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of the ordinary kind: cuMemAlloc() and its relatives. */

#include <stdlib.h>

#include "base/clock.h"
#include "sim/capture.h"
#include "sim/memory.h"
#include "sim/stream.h"

/*
 * OPENVGPU_SIM_LATE_FREE=MILLISECONDS: memory that was given back is free only so long after this process has asked for
 * the first time since. As seen on an H200, which said so up to a tenth of a second late.
 */
static uint64_t hold_back(int at, uint64_t is_free)
{
        static struct {
                uint64_t said,
                        more_ns; /* since when there is more than was said; 0: there is not */
        } late[HOST_DEVICES_MAX];
        const char *wait = getenv("OPENVGPU_SIM_LATE_FREE");
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        if (!wait)
                return is_free;
        if (late[at].said > 0 && is_free > late[at].said && late[at].more_ns == 0)
                late[at].more_ns = now;
        if (late[at].said > 0 && is_free > late[at].said &&
            now - late[at].more_ns < strtoull(wait, NULL, 10) * 1000000)
                return late[at].said;
        late[at].said = is_free;
        late[at].more_ns = 0;
        return is_free;
}

CUresult sim_cuMemGetInfo_v2(size_t *left, size_t *total)
{
        CUcontext context;
        CUresult result;
        int at;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        at = process.device[context->device].at;
        if (left)
                *left = hold_back(at, holdings_get_free(&process.holdings, at));
        if (total)
                *total = process.host_device[at].memory;
        return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *pointer, enum region_kind kind, size_t size)
{
        struct region *region;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!pointer || size == 0)
                return CUDA_ERROR_INVALID_VALUE;
        if (capture_invalidate_unsafe())
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        result = memory_allocate(&region, kind, context, NULL, size);
        if (result == CUDA_SUCCESS)
                *pointer = region->range.address;
        return result;
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
        return allocate(pointer, REGION_PLAIN, size);
}

#define PITCH 512

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                unsigned int element_size)
{
        size_t row = (width + PITCH - 1) & ~(size_t)(PITCH - 1);
        CUresult result;

        if (!pitch || width == 0 || height == 0 || row < width || row > SIZE_MAX / height ||
            (element_size != 4 && element_size != 8 && element_size != 16))
                return CUDA_ERROR_INVALID_VALUE;
        result = allocate(pointer, REGION_PLAIN, row * height);
        if (result == CUDA_SUCCESS)
                *pitch = row;
        return result;
}

#define ATTACH_HOST 2u

CUresult sim_cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
        if (flags != CU_MEM_ATTACH_GLOBAL && flags != ATTACH_HOST)
                return CUDA_ERROR_INVALID_VALUE;
        return allocate(pointer, REGION_MANAGED, size);
}

CUresult sim_cuMemFree_v2(CUdeviceptr pointer)
{
        struct region *region;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!pointer)
                return CUDA_SUCCESS;
        region = memory_find(pointer);
        if (!region || region->range.address != pointer || region->kind > REGION_MANAGED)
                return CUDA_ERROR_INVALID_VALUE;
        if (capture_invalidate_unsafe())
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        stream_wait_for_context(region->context); /* work may still use it */
        region = memory_find(pointer);
        if (!region)
                return CUDA_ERROR_INVALID_VALUE;
        memory_release(region);
        return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
        struct region *region;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        region = memory_find(pointer);
        if (!region)
                return CUDA_ERROR_NOT_FOUND;
        if (base)
                *base = region->range.address;
        if (size)
                *size = region->range.size;
        return CUDA_SUCCESS;
}

/* Managed memory is always where it is wanted. */

static CUresult check_managed(CUdeviceptr pointer, size_t size)
{
        struct region *region = memory_find(pointer);

        if (!region || region->kind != REGION_MANAGED || !memory_is_device(pointer, size))
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device, CUstream handle)
{
        CUstream stream;
        CUresult result;
        PROCESS_LOCKED();

        (void)device;
        result = stream_find(&stream, handle);
        return result ? result : check_managed(pointer, size);
}

CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation location,
                                   unsigned int flags, CUstream stream)
{
        return flags ? CUDA_ERROR_INVALID_VALUE
                     : sim_cuMemPrefetchAsync(pointer, size, location.id, stream);
}

CUresult sim_cuMemAdvise(CUdeviceptr pointer, size_t size, int advice, CUdevice device)
{
        PROCESS_LOCKED();

        (void)advice;
        (void)device;
        return check_managed(pointer, size);
}
