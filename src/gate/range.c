/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/range.h"

#include <stddef.h>

#include "abi/cuda-batch.h"
#include "gate/entry.h"

/* All addresses are far behind it, or before it. */
#define RANGE_NOWHERE ((uint64_t)1 << 63)

_Atomic uint64_t range_base = RANGE_NOWHERE;
_Atomic uint64_t range_page[RANGE_PAGES];
_Atomic uint64_t range_outside_from, range_outside_to;

void range_open(CUdeviceptr base)
{
        atomic_store(&range_base, base);
}

void range_close(void)
{
        atomic_store(&range_base, RANGE_NOWHERE);
}

/* False: it is not in the arena. */
static bool find_page(CUdeviceptr address, uint64_t *ret_page)
{
        *ret_page = (address - atomic_load(&range_base)) / BLOCK_SIZE;
        return *ret_page < RANGE_PAGES;
}

void range_set(CUdeviceptr address, uint64_t size, uint64_t end)
{
        uint64_t first, last;

        if (!find_page(address, &first) || !find_page(address + size - 1, &last))
                return;
        for (uint64_t page = first; page <= last; page++)
                atomic_store_explicit(&range_page[page], end, memory_order_release);
}

void range_set_block(CUdeviceptr address, const struct block *block)
{
        range_set(address, BLOCK_SIZE, RANGE_BLOCK | (uint64_t)(uintptr_t)block);
}

void range_set_outside(CUdeviceptr address, uint64_t size)
{
        uint64_t from = atomic_load(&range_outside_from), to = atomic_load(&range_outside_to);

        if (to == 0 || address < from)
                atomic_store(&range_outside_from, address);
        if (address + size > to)
                atomic_store(&range_outside_to, address + size);
}

static bool is_in_block(uint64_t word, uint64_t address, uint64_t size)
{
        const struct block *block = (const struct block *)(uintptr_t)(word & ~RANGE_BLOCK);
        uint32_t offset = (uint32_t)(address % BLOCK_SIZE); /* the arena is aligned */
        uint32_t end = block_get_end(block, offset);

        return offset < end && size <= end - offset;
}

bool range_is_good_in(uint64_t word, uint64_t address, uint64_t size)
{
        if (size == 0 || (word >= RANGE_BLOCK && is_in_block(word, address, size)))
                return true;
        return !range_is_beyond(address, size);
}

bool range_is_good_outside(uint64_t address, uint64_t size)
{
        return size == 0 || address < atomic_load(&range_outside_from) ||
               !range_is_beyond(address, size);
}

/* One end of a copy; @slices of @pitch * @height bytes. */
struct area {
        int type;
        uint64_t address, x, y, z, pitch, height;
};

static bool is_good(const struct area *area, uint64_t width, uint64_t height, uint64_t depth)
{
        uint64_t slice, rows, first;

        if (area->type != CU_MEMORYTYPE_DEVICE && area->type != CU_MEMORYTYPE_UNIFIED)
                return true;
        if (depth == 0 || __builtin_mul_overflow(area->height, depth - 1, &rows) ||
            __builtin_add_overflow(rows, height, &rows) ||
            __builtin_mul_overflow(area->height, area->z, &slice) ||
            __builtin_add_overflow(slice, area->y, &slice) ||
            __builtin_mul_overflow(slice, area->pitch, &first))
                return true;
        return range_rows_are_good(area->address + first + area->x, area->pitch, width,
                                   height ? rows : 0);
}

bool range_2d_is_good(uint64_t argument)
{
        const CUDA_MEMCPY2D *copy = (const CUDA_MEMCPY2D *)(uintptr_t)argument;
        struct area from, to;

        if (!copy)
                return true;
        from = (struct area){ copy->srcMemoryType,
                              copy->srcDevice,
                              copy->srcXInBytes,
                              copy->srcY,
                              0,
                              copy->srcPitch,
                              0 };
        to = (struct area){ copy->dstMemoryType,
                            copy->dstDevice,
                            copy->dstXInBytes,
                            copy->dstY,
                            0,
                            copy->dstPitch,
                            0 };
        return is_good(&from, copy->WidthInBytes, copy->Height, 1) &&
               is_good(&to, copy->WidthInBytes, copy->Height, 1);
}

bool range_3d_is_good(uint64_t argument)
{
        const CUDA_MEMCPY3D *copy = (const CUDA_MEMCPY3D *)(uintptr_t)argument;
        struct area from, to;

        if (!copy)
                return true;
        from = (struct area){ copy->srcMemoryType, copy->srcDevice, copy->srcXInBytes, copy->srcY,
                              copy->srcZ,          copy->srcPitch,  copy->srcHeight };
        to = (struct area){ copy->dstMemoryType, copy->dstDevice, copy->dstXInBytes, copy->dstY,
                            copy->dstZ,          copy->dstPitch,  copy->dstHeight };
        return is_good(&from, copy->WidthInBytes, copy->Height, copy->Depth) &&
               is_good(&to, copy->WidthInBytes, copy->Height, copy->Depth);
}

bool range_batch_is_good(uint64_t to, uint64_t from, uint64_t sizes, uint64_t n,
                         uint64_t ret_failed)
{
        const CUdeviceptr *tos = (const CUdeviceptr *)(uintptr_t)to;
        const CUdeviceptr *froms = (const CUdeviceptr *)(uintptr_t)from;
        const size_t *bytes = (const size_t *)(uintptr_t)sizes;

        for (uint64_t i = 0; tos && froms && bytes && i < n; i++) {
                if (range_is_good(tos[i], bytes[i]) && range_is_good(froms[i], bytes[i]))
                        continue;
                if (ret_failed)
                        *(size_t *)(uintptr_t)ret_failed = i;
                return false;
        }
        return true;
}

/* Beside an array a row of memory is counted in its elements, and the driver knows their size. */
static bool is_operand_good(const CUmemcpy3DOperand *operand, const CUDA_MEMCPY3D_BATCH_OP *copy)
{
        struct area area = { .type = CU_MEMORYTYPE_UNIFIED,
                             .address = operand->ptr.ptr,
                             .pitch = operand->ptr.rowLength,
                             .height = operand->ptr.layerHeight };

        if (copy->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
            copy->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER)
                return true;
        if (area.pitch == 0)
                area.pitch = copy->width;
        if (area.height == 0)
                area.height = copy->height;
        return is_good(&area, copy->width, copy->height, copy->depth);
}

bool range_3d_batch_is_good(uint64_t n, uint64_t copies, uint64_t ret_failed)
{
        const CUDA_MEMCPY3D_BATCH_OP *copy = (const CUDA_MEMCPY3D_BATCH_OP *)(uintptr_t)copies;

        for (uint64_t i = 0; copy && i < n; i++) {
                if (is_operand_good(&copy[i].src, &copy[i]) &&
                    is_operand_good(&copy[i].dst, &copy[i]))
                        continue;
                if (ret_failed)
                        *(size_t *)(uintptr_t)ret_failed = i;
                return false;
        }
        return true;
}

bool range_is_captured(uint64_t stream, bool is_per_thread)
{
        CUstream handle = (CUstream)(uintptr_t)stream;
        int status = CU_STREAM_CAPTURE_STATUS_NONE;
        CUresult result = is_per_thread ? DRIVER(cuStreamIsCapturing_ptsz)(handle, &status)
                                        : DRIVER(cuStreamIsCapturing)(handle, &status);

        return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}
