/* SPDX-License-Identifier: Apache-2.0 */
/* Sets: fill memory with one value of 1, 2 or 4 bytes. */

#include "sim/memory.h"
#include "sim/stream.h"

struct area {
        CUdeviceptr to;
        size_t pitch, width, height; /* width in elements */
        uint32_t value, element;     /* element: bytes */
};

static CUresult check(const struct area *area)
{
        size_t row, all;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (__builtin_mul_overflow(area->width, area->element, &row) ||
            area->to % area->element != 0 || (area->height > 1 && area->pitch < row) ||
            __builtin_mul_overflow(area->height ? area->height - 1 : 0, area->pitch, &all))
                return CUDA_ERROR_INVALID_VALUE;
        if (area->height == 0 || memory_is_device(area->to, all + row))
                return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_VALUE;
}

static CUresult make(struct work **ret_work, const struct area *area)
{
        CUresult result = check(area);
        struct work *work;

        if (result != CUDA_SUCCESS)
                return result;
        work = work_new(WORK_SET);
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;
        work->set.to = area->to;
        work->set.pitch = area->pitch;
        work->set.width = area->width;
        work->set.height = area->height;
        work->set.value = area->value;
        work->set.element = area->element;
        *ret_work = work;
        return CUDA_SUCCESS;
}

static CUresult set_now(struct area area)
{
        struct work *work;
        CUresult result = make(&work, &area);

        return result ? result : stream_run(work);
}

static CUresult set_later(struct area area, CUstream stream)
{
        struct work *work;
        CUresult result = make(&work, &area);

        return result ? result : stream_submit(stream, work);
}

CUresult sim_cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n)
{
        return set_now((struct area){ to, 0, n, 1, value, 1 });
}

CUresult sim_cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n)
{
        return set_now((struct area){ to, 0, n, 1, value, 2 });
}

CUresult sim_cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t n)
{
        return set_now((struct area){ to, 0, n, 1, value, 4 });
}

CUresult sim_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream)
{
        return set_later((struct area){ to, 0, n, 1, value, 1 }, stream);
}

CUresult sim_cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream)
{
        return set_later((struct area){ to, 0, n, 1, value, 2 }, stream);
}

CUresult sim_cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream stream)
{
        return set_later((struct area){ to, 0, n, 1, value, 4 }, stream);
}

CUresult sim_cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                             size_t height)
{
        return set_now((struct area){ to, pitch, width, height, value, 1 });
}

CUresult sim_cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                              size_t height)
{
        return set_now((struct area){ to, pitch, width, height, value, 2 });
}

CUresult sim_cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                              size_t height)
{
        return set_now((struct area){ to, pitch, width, height, value, 4 });
}

CUresult sim_cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                               size_t height, CUstream stream)
{
        return set_later((struct area){ to, pitch, width, height, value, 1 }, stream);
}

CUresult sim_cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                size_t height, CUstream stream)
{
        return set_later((struct area){ to, pitch, width, height, value, 2 }, stream);
}

CUresult sim_cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                size_t height, CUstream stream)
{
        return set_later((struct area){ to, pitch, width, height, value, 4 }, stream);
}
