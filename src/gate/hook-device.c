/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that the driver sees and that the vGPU does not have (gate/visible.h).
 *
 * They are behind all others. What makes something on a device, or gives it a right to memory, refuses their
 * numbers: here, and in the wrappers that do more than that. What only tells of a device answers as for any.
 */

#include <stdbool.h>

#include "gate/entry.h"
#include "gate/visible.h"

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

/* Managed memory: it would go there. Other advice has nothing to do with a device, and its number may be any. */

#define ADVISE_SET_PREFERRED_LOCATION 3
#define ADVISE_SET_ACCESSED_BY        5

static bool names_device(int advice)
{
        return advice == ADVISE_SET_PREFERRED_LOCATION || advice == ADVISE_SET_ACCESSED_BY;
}

CUresult our_cuMemAdvise(CUdeviceptr pointer, size_t size, int advice, CUdevice device)
{
        if (names_device(advice) && !visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemAdvise)(pointer, size, advice, device);
}

CUresult our_cuMemAdvise_v2(CUdeviceptr pointer, size_t size, int advice, CUmemLocation location)
{
        if (names_device(advice) && !visible_has_location(&location))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemAdvise_v2)(pointer, size, advice, location);
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
        if (!visible_has_location(&location))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemPrefetchAsync_v2)(pointer, size, location, flags, stream);
}

CUresult our_cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, size_t size, CUmemLocation location,
                                        unsigned int flags, CUstream stream)
{
        if (!visible_has_location(&location))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMemPrefetchAsync_v2_ptsz)(pointer, size, location, flags, stream);
}

static bool has_all(const CUmemLocation *locations, size_t n)
{
        for (size_t i = 0; locations && i < n; i++)
                if (!visible_has_location(&locations[i]))
                        return false;
        return true;
}

/* Four calls of one form. */
#define BATCH(name)                                                                           \
        CUresult our_##name(CUdeviceptr *pointers, size_t *sizes, size_t n,                   \
                            CUmemLocation *locations, size_t *first, size_t n_locations,      \
                            unsigned long long flags, CUstream stream)                        \
        {                                                                                     \
                if (!has_all(locations, n_locations))                                         \
                        return CUDA_ERROR_INVALID_DEVICE;                                     \
                return DRIVER(name)(pointers, sizes, n, locations, first, n_locations, flags, \
                                    stream);                                                  \
        }
BATCH(cuMemPrefetchBatchAsync)
BATCH(cuMemPrefetchBatchAsync_ptsz)
BATCH(cuMemDiscardAndPrefetchBatchAsync)
BATCH(cuMemDiscardAndPrefetchBatchAsync_ptsz)

CUresult our_cuMulticastAddDevice(CUmemGenericAllocationHandle multicast, CUdevice device)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return DRIVER(cuMulticastAddDevice)(multicast, device);
}
