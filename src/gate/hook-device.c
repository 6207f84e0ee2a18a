/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that the driver sees and the program does not (gate/visible.h).
 *
 * They are behind all others, so those of the program keep their numbers. What makes something on a device refuses
 * their numbers; what only tells of one answers as for any device, for whoever guesses its number.
 */

#include "gate/entry.h"
#include "gate/visible.h"

CUresult our_cuDeviceGetCount(int *count)
{
        CUresult result = DRIVER(cuDeviceGetCount)(count);

        if (result == CUDA_SUCCESS)
                *count = visible_limit(*count);
        return result;
}

CUresult our_cuDeviceGet(CUdevice *device, int ordinal)
{
        if (!visible_has(ordinal))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuDeviceGet)(device, ordinal);
}

CUresult our_cuDeviceGetByPCIBusId(CUdevice *device, const char *bus_id)
{
        CUdevice found;
        CUresult result;

        if (!device)
                return DRIVER(cuDeviceGetByPCIBusId)(device, bus_id);
        result = DRIVER(cuDeviceGetByPCIBusId)(&found, bus_id);
        if (result == CUDA_SUCCESS && !visible_has(found))
                return CUDA_ERROR_INVALID_DEVICE;
        if (result == CUDA_SUCCESS)
                *device = found;
        return result;
}
