/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_CUDA_BATCH_H
#define ABI_CUDA_BATCH_H

/* The structures of cuMemcpy3DBatchAsync(). */

#include "abi/cuda-types.h"

#define CU_MEMCPY_OPERAND_TYPE_POINTER 1
#define CU_MEMCPY_OPERAND_TYPE_ARRAY   2

typedef struct {
        int type; /* CU_MEMCPY_OPERAND_TYPE_* */
        struct {
                CUdeviceptr ptr;
                size_t rowLength, layerHeight; /* of elements; 0: as of the copy */
                CUmemLocation locHint;
        } ptr; /* of an array it is something else, of the same size */
} CUmemcpy3DOperand;

typedef struct {
        CUmemcpy3DOperand src, dst;
        size_t width, height, depth;
        int srcAccessOrder;
        unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;

_Static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == 112, "CUDA ABI");

#endif
