/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/peer.h"

#include <stdatomic.h>
#include <stdint.h>

#include "gate/context.h"
#include "gate/entry.h"
#include "gate/memory.h"

/* For each device, a bit for each other device that may use its memory. */
static _Atomic uint64_t allowed[PEER_DEVICES_MAX];

uint64_t peer_mask(CUdevice device)
{
        return atomic_load(&allowed[device]) & ~(1ull << device);
}

size_t peer_access(CUmemAccessDesc access[static PEER_DEVICES_MAX], CUdevice device)
{
        uint64_t peers = peer_mask(device);
        size_t n = 0;

        access[n++] = (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, device },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        for (; peers; peers &= peers - 1)
                access[n++] =
                        (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, __builtin_ctzll(peers) },
                                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        return n;
}

static bool is_device(CUdevice device)
{
        return device >= 0 && device < PEER_DEVICES_MAX;
}

/* The device of @context, which is not the current one. */
static bool device_of(CUcontext context, CUdevice *ret_device)
{
        CUresult result = DRIVER(cuCtxPushCurrent_v2)(context);

        if (result != CUDA_SUCCESS)
                return false;
        result = DRIVER(cuCtxGetDevice)(ret_device);
        DRIVER(cuCtxPopCurrent_v2)(&context);
        return result == CUDA_SUCCESS && is_device(*ret_device);
}

/* The current context may use memory of the peer's device, as the driver has granted. */
CUresult our_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
        CUresult result = DRIVER(cuCtxEnablePeerAccess)(peer, flags);
        CUdevice device, owner;

        if (result != CUDA_SUCCESS || DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS ||
            !is_device(device) || !device_of(peer, &owner))
                return result;
        atomic_fetch_or(&allowed[owner], 1ull << device);
        return memory_grant(owner);
}

/* Mappings that are there keep the right, which no longer harms; new ones do not get it. */
CUresult our_cuCtxDisablePeerAccess(CUcontext peer)
{
        CUresult result = DRIVER(cuCtxDisablePeerAccess)(peer);
        CUdevice device, owner;

        if (result == CUDA_SUCCESS && DRIVER(cuCtxGetDevice)(&device) == CUDA_SUCCESS &&
            is_device(device) && device_of(peer, &owner))
                atomic_fetch_and(&allowed[owner], ~(1ull << device));
        return result;
}
