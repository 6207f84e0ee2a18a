/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_CUDA_FAULT_H
#define ABI_CUDA_FAULT_H

/* Which answers of the driver are the end of a context. */

#include <stdbool.h>

#include "abi/cuda.h"

/*
 * cuda_breaks_context() - "any further CUDA work will return the same error", says the driver's
 * documentation of @code: the process has to end to use the device again
 */
static inline bool cuda_breaks_context(CUresult code)
{
        switch (code) {
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_CONTAINED:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
                return true;
        default:
                return false;
        }
}

#endif
