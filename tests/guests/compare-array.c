/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: arrays and mipmaps. */
#include "tests/guests/compare.h"

static void all(void)
{
        const CUDA_ARRAY_DESCRIPTOR flat = { 100, 50, CU_AD_FORMAT_FLOAT, 4 };
        const CUDA_ARRAY_DESCRIPTOR three = { 100, 50, CU_AD_FORMAT_FLOAT, 3 };
        const CUDA_ARRAY_DESCRIPTOR empty = { 0, 50, CU_AD_FORMAT_FLOAT, 1 };
        const CUDA_ARRAY3D_DESCRIPTOR deep = { 64, 64, 8, CU_AD_FORMAT_HALF, 2, 0 };
        const CUDA_ARRAY3D_DESCRIPTOR mip = { 64, 64, 0, CU_AD_FORMAT_HALF, 2, 0 };
        CUmipmappedArray mipmap;
        CUarray array = NULL;

        compare_start();
        if (CALL(cuArrayCreate_v2, "flat", &array, &flat) == CUDA_SUCCESS)
                CALL(cuArrayDestroy, "flat", array);
        if (CALL(cuArray3DCreate_v2, "deep", &array, &deep) == CUDA_SUCCESS)
                CALL(cuArrayDestroy, "deep", array);
        if (CALL(cuMipmappedArrayCreate, "three levels", &mipmap, &mip, 3) == CUDA_SUCCESS)
                CALL(cuMipmappedArrayDestroy, "three levels", mipmap);
        CALL(cuArrayCreate_v2, "three channels", &array, &three);
        CALL(cuArrayCreate_v2, "empty", &array, &empty);
        CALL(cuArrayCreate_v2, "no descriptor", &array, NULL);
        CALL(cuArrayCreate_v2, "to nowhere", NULL, &flat);
        CALL(cuArray3DCreate_v2, "no descriptor", &array, NULL);
        CALL(cuMipmappedArrayCreate, "no descriptor", &mipmap, NULL, 1);
}

const struct compare_case compare_array[] = {
        { "all", all },
        { NULL, NULL },
};
