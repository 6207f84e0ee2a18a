/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of memory of imported pools: at an address of their own, for the devices that may use them. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "gate/entry.h"
#include "gate/import.h"
#include "gate/peer.h"
#include "gate/pool-import-internal.h"
#include "gate/reservation.h"
#include "gate/visible.h"
#include "gate/vmm.h"

/* Where the memory is, if the program may use that device; with whatever it has let. */
static uint64_t choose_peers(const struct physical *physical, uint64_t peers)
{
        CUmemAllocationProp prop;
        CUdevice current;

        if (DRIVER(cuMemGetAllocationPropertiesFromHandle)(&prop, vmm_real(physical, 0)) ==
                    CUDA_SUCCESS &&
            prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE && visible_has(prop.location.id))
                peers |= 1ull << (prop.location.id % PEER_DEVICES_MAX);
        if (peers == 0 && DRIVER(cuCtxGetDevice)(&current) == CUDA_SUCCESS)
                peers |= 1ull << (current % PEER_DEVICES_MAX);
        return peers;
}

static size_t write_access(CUmemAccessDesc access[static PEER_DEVICES_MAX], uint64_t peers)
{
        size_t n = 0;

        for (int i = 0; i < PEER_DEVICES_MAX; i++)
                if (peers & 1ull << i)
                        access[n++] = (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, i },
                                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        return n;
}

static CUresult map_at(const struct import_piece *piece, CUmemGenericAllocationHandle real,
                       const CUmemAccessDesc *access, size_t n)
{
        CUresult result = DRIVER(cuMemMap)(piece->base, piece->size, 0, real, 0);

        if (result != CUDA_SUCCESS)
                return result;
        result = DRIVER(cuMemSetAccess)(piece->base, piece->size, access, n);
        if (result != CUDA_SUCCESS)
                (void)DRIVER(cuMemUnmap)(piece->base, piece->size);
        return result;
}

static CUresult put_in_place(struct import_piece *piece, struct physical *physical, uint64_t peers)
{
        CLEANUP(freep) struct view *view = calloc(1, sizeof(*view));
        CUmemAccessDesc access[PEER_DEVICES_MAX];
        size_t n = write_access(access, choose_peers(physical, peers));
        CUresult result;

        if (!view)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = reservation_make(&piece->base, piece->size);
        if (result != CUDA_SUCCESS)
                return result;
        result = map_at(piece, vmm_real(physical, 0), access, n);
        if (result != CUDA_SUCCESS) {
                reservation_free(piece->base, piece->size);
                return result;
        }
        view->size = piece->size;
        vmm_add_view(TAKE(view), piece->base, physical);
        vmm_note_access(piece->base, piece->size, access, n);
        piece->physical = physical;
        return CUDA_SUCCESS;
}

/* Of another process: all of it, at a place of its own. */
CUresult import_piece_open(struct import_piece *piece, const struct gate_ticket *ticket,
                           uint64_t peers)
{
        struct gate_ticket whole = *ticket;
        struct physical *physical;
        CUresult result;

        whole.offset = 0;
        whole.size = piece->size;
        result = import_open(&physical, &whole);
        if (result != CUDA_SUCCESS)
                return result;
        result = put_in_place(piece, physical, peers);
        if (result != CUDA_SUCCESS)
                vmm_drop(physical);
        return result;
}

/* What was lost while the gate was closed is mapped nowhere. Our own stays where it is. */
CUresult import_piece_unmap(const struct import_piece *piece, struct view **ret_views)
{
        *ret_views = NULL;
        if (!piece->physical)
                return CUDA_SUCCESS;
        *ret_views = vmm_take_views(piece->base, piece->size);
        if (piece->physical->import->is_lost)
                return CUDA_SUCCESS;
        return DRIVER(cuMemUnmap)(piece->base, piece->size);
}

void import_piece_settle(struct import_piece *piece, struct view *views, CUresult result)
{
        vmm_settle_views(views, result);
        if (result != CUDA_SUCCESS)
                return;
        if (piece->physical)
                reservation_free(piece->base, piece->size);
        free(piece);
}

CUresult import_piece_let(const struct import_piece *piece, const CUmemAccessDesc *access, size_t n)
{
        CUresult result = DRIVER(cuMemSetAccess)(piece->base, piece->size, access, n);

        if (result == CUDA_SUCCESS)
                vmm_note_access(piece->base, piece->size, access, n);
        return result;
}

CUresult import_piece_add_peers(const struct import_piece *piece, uint64_t peers)
{
        CUmemAccessDesc access[PEER_DEVICES_MAX];
        size_t n = write_access(access, peers);

        return n > 0 && piece->physical ? import_piece_let(piece, access, n) : CUDA_SUCCESS;
}
