/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/peer.h"

#include <stdatomic.h>
#include <stdint.h>

#include "gate/visible.h"

/* For each device, a bit for each other device that may use its memory. */
static _Atomic uint64_t allowed[PEER_DEVICES_MAX];

uint64_t peer_mask(CUdevice device)
{
        return atomic_load(&allowed[device]) & ~(1ull << device);
}

size_t peer_access(CUmemAccessDesc access[static PEER_DEVICES_MAX], CUdevice device, uint64_t more)
{
        uint64_t peers = peer_mask(device) | (more & ~(1ull << device));
        size_t n = 0;

        access[n++] = (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, device },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        for (; peers; peers &= peers - 1)
                if (visible_has(__builtin_ctzll(peers)))
                        access[n++] = (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE,
                                                           __builtin_ctzll(peers) },
                                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        return n;
}

void peer_allow(CUdevice owner, CUdevice device)
{
        atomic_fetch_or(&allowed[owner], 1ull << device);
}

void peer_deny(CUdevice owner, CUdevice device)
{
        atomic_fetch_and(&allowed[owner], ~(1ull << device));
}
