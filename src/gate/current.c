/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/current.h"

#include "gate/entry.h"

CUdevice current_device(void)
{
        CUdevice device;

        return DRIVER(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? device : 0;
}
