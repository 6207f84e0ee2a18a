/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, in all directions.
 *
 * Device memory lies in the address space of the process, so each is a memmove();
 * what is left is to check that what should be device memory is, and to do it in
 * the order of the streams. With pageable host memory, the caller may use the
 * memory again when an asynchronous copy returns: those copies are waited for.
 */

#include "sim/memory.h"
#include "sim/stream.h"

static uint64_t address(const void *pointer)
{
        return (uint64_t)(uintptr_t)pointer;
}

enum side { SIDE_ANY, SIDE_DEVICE };

static bool is_side(enum side side, uint64_t at, uint64_t size)
{
        PROCESS_LOCKED();

        return side == SIDE_DEVICE ? memory_is_device(at, size) : memory_is_usable(at, size);
}

static bool is_pageable(uint64_t at)
{
        PROCESS_LOCKED();

        return memory_is_pageable(at);
}

static struct work *make(uint64_t to, uint64_t from, size_t size)
{
        struct work *work = work_new(WORK_COPY);

        if (work) {
                work->copy.to = to;
                work->copy.from = from;
                work->copy.width = size;
                work->copy.height = 1;
                work->waits = is_pageable(to) || is_pageable(from);
        }
        return work;
}

/* Not yet begun, these are the same copy as the asynchronous one: checks need a context, too. */
static CUresult check(uint64_t to, enum side to_side, uint64_t from, enum side from_side,
                      size_t size)
{
        CUcontext context;
        CUresult result;

        {
                PROCESS_LOCKED();

                result = context_get(&context);
        }
        if (result == CUDA_SUCCESS && size > 0 &&
            (!is_side(to_side, to, size) || !is_side(from_side, from, size)))
                result = CUDA_ERROR_INVALID_VALUE;
        return result;
}

static CUresult copy_now(uint64_t to, enum side to_side, uint64_t from, enum side from_side,
                         size_t size)
{
        CUresult result = check(to, to_side, from, from_side, size);

        return result ? result : stream_run(make(to, from, size));
}

static CUresult copy_later(uint64_t to, enum side to_side, uint64_t from, enum side from_side,
                           size_t size, CUstream stream)
{
        CUresult result = check(to, to_side, from, from_side, size);

        return result ? result : stream_submit(stream, make(to, from, size));
}

/* Without peer access the current context's device must reach both ends. */
static CUresult check_reach(CUdeviceptr to, CUdeviceptr from, size_t size)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS || device_has_peers() || size == 0)
                return result;
        return memory_is_accessible(to, size, context->device) &&
                               memory_is_accessible(from, size, context->device)
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
        return copy_now(to, SIDE_ANY, from, SIDE_ANY, size);
}

CUresult sim_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
        return copy_later(to, SIDE_ANY, from, SIDE_ANY, size, stream);
}

CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
        return copy_now(to, SIDE_DEVICE, address(from), SIDE_ANY, size);
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
        return copy_later(to, SIDE_DEVICE, address(from), SIDE_ANY, size, stream);
}

CUresult sim_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
        return copy_now(address(to), SIDE_ANY, from, SIDE_DEVICE, size);
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
        return copy_later(address(to), SIDE_ANY, from, SIDE_DEVICE, size, stream);
}

CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
        CUresult result = check_reach(to, from, size);

        return result ? result : copy_now(to, SIDE_DEVICE, from, SIDE_DEVICE, size);
}

CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
        CUresult result = check_reach(to, from, size);

        return result ? result : copy_later(to, SIDE_DEVICE, from, SIDE_DEVICE, size, stream);
}

/* Each end is used by the device of its context. */
static CUresult check_peers(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                            CUcontext from_context, size_t size)
{
        PROCESS_LOCKED();

        if (!context_find(to_context) || !context_find(from_context))
                return CUDA_ERROR_INVALID_CONTEXT;
        return memory_is_accessible(to, size, to_context->device) &&
                               memory_is_accessible(from, size, from_context->device)
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_INVALID_VALUE;
}

/* The copy without a stream comes after all that was issued in the two contexts. */
static void wait_for_peers(CUcontext to_context, CUcontext from_context)
{
        PROCESS_LOCKED();

        if (context_find(to_context))
                stream_wait_for_context(to_context);
        if (context_find(from_context)) /* others may end it during the wait */
                stream_wait_for_context(from_context);
}

CUresult sim_cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, size_t size)
{
        CUresult result = check_peers(to, to_context, from, from_context, size);

        if (result == CUDA_SUCCESS)
                wait_for_peers(to_context, from_context);
        return result ? result : copy_now(to, SIDE_DEVICE, from, SIDE_DEVICE, size);
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                               CUcontext from_context, size_t size, CUstream stream)
{
        CUresult result = check_peers(to, to_context, from, from_context, size);

        return result ? result : copy_later(to, SIDE_DEVICE, from, SIDE_DEVICE, size, stream);
}

/* One end of a copy of rows. */
struct plane {
        uint64_t at;
        size_t pitch;
        enum side side;
};

static CUresult get_plane(struct plane *plane, CUmemorytype type, const void *host,
                          CUdeviceptr device, size_t x, size_t y, size_t pitch, size_t width)
{
        plane->pitch = pitch ? pitch : width;
        plane->side = type == CU_MEMORYTYPE_DEVICE ? SIDE_DEVICE : SIDE_ANY;
        plane->at = (type == CU_MEMORYTYPE_HOST ? address(host) : device) + y * plane->pitch + x;
        if (type == CU_MEMORYTYPE_ARRAY)
                return CUDA_ERROR_NOT_SUPPORTED;
        return plane->pitch < width ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult make_rows(struct work **ret_work, const CUDA_MEMCPY2D *copy)
{
        struct plane to, from;
        struct work *work;
        CUresult result;

        if (!copy)
                return CUDA_ERROR_INVALID_VALUE;
        result = get_plane(&from, copy->srcMemoryType, copy->srcHost, copy->srcDevice,
                           copy->srcXInBytes, copy->srcY, copy->srcPitch, copy->WidthInBytes);
        if (result == CUDA_SUCCESS)
                result = get_plane(&to, copy->dstMemoryType, copy->dstHost, copy->dstDevice,
                                   copy->dstXInBytes, copy->dstY, copy->dstPitch,
                                   copy->WidthInBytes);
        if (result == CUDA_SUCCESS && copy->Height > 0)
                result = check(to.at, to.side, from.at, from.side, copy->WidthInBytes);
        if (result == CUDA_SUCCESS && copy->Height > 0)
                result = check(to.at + (copy->Height - 1) * to.pitch, to.side,
                               from.at + (copy->Height - 1) * from.pitch, from.side,
                               copy->WidthInBytes);
        if (result != CUDA_SUCCESS)
                return result;
        work = make(to.at, from.at, copy->WidthInBytes);
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;
        work->copy.to_pitch = to.pitch;
        work->copy.from_pitch = from.pitch;
        work->copy.height = copy->Height;
        *ret_work = work;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
        struct work *work;
        CUresult result = make_rows(&work, copy);

        return result ? result : stream_run(work);
}

CUresult sim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
        return sim_cuMemcpy2D_v2(copy);
}

CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
        struct work *work;
        CUresult result = make_rows(&work, copy);

        return result ? result : stream_submit(stream, work);
}
