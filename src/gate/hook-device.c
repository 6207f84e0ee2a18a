/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that the driver sees and the program does not (gate/visible.h).
 *
 * They are behind all others, so those of the program keep their numbers. What makes something on a device refuses
 * their numbers; what only tells of one answers as for any device, for whoever guesses its number.
 */

#include <stdbool.h>

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

/* Pools: memory would come from there. */

CUresult our_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuDeviceGetDefaultMemPool)(pool, device);
}

CUresult our_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuDeviceGetMemPool)(pool, device);
}

static bool is_hidden(const CUmemLocation *location)
{
        return location && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
               !visible_has(location->id);
}

CUresult our_cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
        if (is_hidden(location))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemGetDefaultMemPool)(pool, location, type);
}

CUresult our_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
        if (is_hidden(location))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemGetMemPool)(pool, location, type);
}

/* Managed memory: it would go there. Other advice has nothing to do with a device, and its number may be any. */

#define ADVISE_SET_PREFERRED_LOCATION 3
#define ADVISE_SET_ACCESSED_BY        5

static bool names_device(int advice)
{
        return advice == ADVISE_SET_PREFERRED_LOCATION || advice == ADVISE_SET_ACCESSED_BY;
}

CUresult our_cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemPrefetchAsync)(pointer, size, device, stream);
}

CUresult our_cuMemPrefetchAsync_ptsz(CUdeviceptr pointer, size_t size, CUdevice device,
                                     CUstream stream)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemPrefetchAsync_ptsz)(pointer, size, device, stream);
}

CUresult our_cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation location,
                                   unsigned int flags, CUstream stream)
{
        if (is_hidden(&location))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemPrefetchAsync_v2)(pointer, size, location, flags, stream);
}

CUresult our_cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, size_t size, CUmemLocation location,
                                        unsigned int flags, CUstream stream)
{
        if (is_hidden(&location))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemPrefetchAsync_v2_ptsz)(pointer, size, location, flags, stream);
}

CUresult our_cuMemAdvise(CUdeviceptr pointer, size_t size, int advice, CUdevice device)
{
        if (names_device(advice) && !visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemAdvise)(pointer, size, advice, device);
}

CUresult our_cuMemAdvise_v2(CUdeviceptr pointer, size_t size, int advice, CUmemLocation location)
{
        if (names_device(advice) && is_hidden(&location))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemAdvise_v2)(pointer, size, advice, location);
}

/* Part of a device: cuCtxFromGreenCtx() makes a context of it. */
CUresult our_cuGreenCtxCreate(void *context, void *resources, CUdevice device, unsigned int flags)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuGreenCtxCreate)(context, resources, device, flags);
}

CUresult our_cuMulticastAddDevice(CUmemGenericAllocationHandle multicast, CUdevice device)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMulticastAddDevice)(multicast, device);
}
