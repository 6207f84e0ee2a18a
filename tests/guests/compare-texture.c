/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: textures of linear memory, which want more alignment than anything else. */
#include "tests/guests/compare.h"

#define N_BUFFERS 9

static CUresult bind_linear(CUtexObject *object, CUdeviceptr pointer, size_t size)
{
        CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_LINEAR };
        CUDA_TEXTURE_DESC texture = { .filterMode = 0 };

        resource.res.linear.devPtr = pointer;
        resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
        resource.res.linear.numChannels = 1;
        resource.res.linear.sizeInBytes = size;
        return CALL(cuTexObjectCreate, "linear", object, &resource, &texture, NULL);
}

/* Odd sizes, so that each buffer would begin where the one before it ends. */
static void small_buffers(void)
{
        CUdeviceptr pointers[N_BUFFERS];
        CUtexObject object;

        compare_start();
        for (size_t i = 0; i < N_BUFFERS; i++) {
                size_t size = 1 + i * 77;

                must(DRIVER(cuMemAlloc_v2)(&pointers[i], size));
                SAY("buffer of %zu bytes", size);
                if (bind_linear(&object, pointers[i], size) == CUDA_SUCCESS)
                        CALL(cuTexObjectDestroy, "linear", object);
        }
        for (size_t i = 0; i < N_BUFFERS; i++)
                must(DRIVER(cuMemFree_v2)(pointers[i]));
}

static void not_aligned(void)
{
        CUdeviceptr pointer;
        CUtexObject object;

        compare_start();
        must(DRIVER(cuMemAlloc_v2)(&pointer, 4096));
        for (CUdeviceptr offset = 32; offset <= 1024; offset *= 2) {
                SAY("%d bytes behind the start", (int)offset);
                (void)bind_linear(&object, pointer + offset, 1024);
        }
}

static void rows(void)
{
        static const size_t widths[] = { 1, 100, 512, 513, 5000 };
        CUDA_TEXTURE_DESC texture = { .filterMode = 0 };
        CUdeviceptr pointer;
        CUtexObject object;
        size_t pitch;

        compare_start();
        for (size_t i = 0; i < compare_count(widths); i++) {
                CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_PITCH2D };

                must(DRIVER(cuMemAllocPitch_v2)(&pointer, &pitch, widths[i], 3, 4));
                SAY("rows of %zu bytes: pitch %zu", widths[i], pitch);
                resource.res.pitch2D.devPtr = pointer;
                resource.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
                resource.res.pitch2D.numChannels = 1;
                resource.res.pitch2D.width = widths[i];
                resource.res.pitch2D.height = 3;
                resource.res.pitch2D.pitchInBytes = pitch;
                if (CALL(cuTexObjectCreate, "rows", &object, &resource, &texture, NULL) ==
                    CUDA_SUCCESS)
                        CALL(cuTexObjectDestroy, "rows", object);
        }
}

const struct compare_case compare_texture[] = {
        { "small-buffers", small_buffers },
        { "not-aligned", not_aligned },
        { "rows", rows },
        { NULL, NULL },
};
