/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/pool-import.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gate/child.h"
#include "gate/context.h"
#include "gate/entry.h"
#include "gate/peer.h"
#include "gate/physical.h"
#include "gate/pool-import-internal.h"
#include "gate/pool-internal.h"
#include "gate/pool-ticket.h"
#include "gate/ticket.h"
#include "gate/visible.h"
#include "gate/wake.h"

struct pool_imports pool_imports = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Pools. */

static struct imported_pool *find_locked(CUmemoryPool handle)
{
        struct imported_pool *pool = pool_imports.first;

        while (pool && (pool->handle != handle || pool->is_destroyed))
                pool = pool->next;
        return pool;
}

static void end_pool_locked(struct imported_pool *pool)
{
        struct imported_pool **link = &pool_imports.first;

        while (*link != pool)
                link = &(*link)->next;
        *link = pool->next;
        free(pool);
}

void import_piece_unlink(struct import_piece *piece)
{
        struct imported_pool *pool = piece->pool;
        struct import_piece **link = &pool->pieces;

        while (*link != piece)
                link = &(*link)->next;
        *link = piece->next;
        atomic_fetch_sub(&pool_imports.n_over, 1);
        if (pool->is_destroyed && !pool->pieces)
                end_pool_locked(pool);
}

/* The device that the exporter meant, if the program may use it; else the current one, or the first. */
static CUdevice choose_device(uint64_t id)
{
        CUdevice device = 0;

        for (CUdevice i = 0; i < pool_count_devices(); i++) {
                CUuuid uuid;

                if (visible_has(i) && DRIVER(cuDeviceGetUuid)(&uuid, i) == CUDA_SUCCESS &&
                    memcmp(&uuid, &id, sizeof(id)) == 0)
                        return i;
        }
        return DRIVER(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? device : 0;
}

/* What the application sees of it: attributes, and who may use its memory. */
static CUresult make_empty(CUmemoryPool *ret_pool, CUdevice device)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };

        return DRIVER(cuMemPoolCreate)(ret_pool, &props);
}

CUresult pool_import(CUmemoryPool *ret_pool, const struct gate_ticket *ticket)
{
        CLEANUP(freep) struct imported_pool *pool = NULL;
        bool is_own = ticket_is_own(ticket);
        struct gate_ticket none;
        uint64_t device;
        CUresult result;

        if (!pool_ticket_read(ticket, &device) || (is_own && !pool_has_exported(ticket->name)))
                return CUDA_ERROR_INVALID_VALUE;
        if (!ticket_identify(&none)) /* in no vGPU there is nobody to ask for its memory */
                return CUDA_ERROR_INVALID_VALUE;
        pool = calloc(1, sizeof(*pool));
        if (!pool)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = make_empty(&pool->handle, choose_device(device));
        if (result != CUDA_SUCCESS)
                return result;
        pool->process = ticket->process;
        memcpy(pool->name, ticket->name, sizeof(pool->name));
        pool->is_own = is_own;
        *ret_pool = pool->handle;
        pthread_mutex_lock(&pool_imports.lock);
        pool->next = pool_imports.first;
        pool_imports.first = TAKE(pool);
        wake_open(); /* the agent gives back what streams are done with */
        atomic_store(&pool_imports.is_used, true);
        pthread_mutex_unlock(&pool_imports.lock);
        return CUDA_SUCCESS;
}

bool pool_import_has(CUmemoryPool handle)
{
        bool is_there;

        if (!handle || !atomic_load(&pool_imports.is_used))
                return false;
        pthread_mutex_lock(&pool_imports.lock);
        is_there = find_locked(handle) != NULL;
        pthread_mutex_unlock(&pool_imports.lock);
        return is_there;
}

void pool_import_end(CUmemoryPool handle)
{
        struct imported_pool *pool;

        if (!atomic_load(&pool_imports.is_used))
                return;
        pthread_mutex_lock(&pool_imports.lock);
        pool = find_locked(handle);
        if (pool) {
                pool->is_destroyed = true;
                if (!pool->pieces)
                        end_pool_locked(pool);
        }
        pthread_mutex_unlock(&pool_imports.lock);
}

/* Pieces. */

/* Nothing is at its address any more, and it is asked for anew. */
static bool is_lost(const struct import_piece *piece)
{
        return piece->physical && piece->physical->import && piece->physical->import->is_lost;
}

static struct import_piece *find_piece_locked(const struct imported_pool *pool,
                                              const uint8_t name[GATE_NAME_SIZE])
{
        struct import_piece *piece = pool->pieces;

        while (piece && (piece->is_going || is_lost(piece) ||
                         memcmp(piece->name, name, GATE_NAME_SIZE) != 0))
                piece = piece->next;
        return piece;
}

CUresult pool_import_let(CUmemoryPool handle, const CUmemAccessDesc *access, size_t n)
{
        CUresult first_error = CUDA_SUCCESS;
        struct imported_pool *pool;

        if (!atomic_load(&pool_imports.is_used))
                return CUDA_SUCCESS;
        pthread_mutex_lock(&pool_imports.lock);
        pool = find_locked(handle);
        for (size_t i = 0; pool && i < n; i++) {
                uint64_t bit = access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE
                                       ? 1ull << (access[i].location.id % PEER_DEVICES_MAX)
                                       : 0;

                pool->peers = access[i].flags ? pool->peers | bit : pool->peers & ~bit;
        }
        for (struct import_piece *it = pool ? pool->pieces : NULL; it; it = it->next) {
                CUresult result = it->physical && !it->is_going ? import_piece_let(it, access, n)
                                                                : CUDA_SUCCESS;

                if (first_error == CUDA_SUCCESS)
                        first_error = result;
        }
        pthread_mutex_unlock(&pool_imports.lock);
        return first_error;
}

/* Pointers. */

static CUresult add_pointer_locked(struct import_piece *piece, CUdeviceptr address, uint64_t size)
{
        struct import_pointer *pointer = piece->pointers;

        while (pointer && pointer->node.key != address)
                pointer = pointer->next;
        if (!pointer) {
                pointer = calloc(1, sizeof(*pointer));
                if (!pointer)
                        return CUDA_ERROR_OUT_OF_MEMORY;
                if (!piece->pointers)
                        atomic_fetch_sub(&pool_imports.n_over, 1);
                pointer->piece = piece;
                pointer->next = piece->pointers;
                piece->pointers = pointer;
                hash_add(&pool_imports.pointers, &pointer->node, address);
        }
        pointer->n++;
        pointer->size = size;
        return CUDA_SUCCESS;
}

static bool is_of(const struct imported_pool *pool, const struct gate_ticket *ticket,
                  const struct pool_place *place)
{
        return pool && place->pool == pool_ticket_mark(pool->name) &&
               memcmp(&pool->process, &ticket->process, sizeof(pool->process)) == 0;
}

/* CUDA_ERROR_NOT_FOUND: its piece has to be imported. */
static CUresult look_up_locked(CUdeviceptr *ret_pointer, struct imported_pool *pool,
                               const struct gate_ticket *ticket, const struct pool_place *place)
{
        struct import_piece *piece;

        if (!is_of(pool, ticket, place))
                return CUDA_ERROR_INVALID_VALUE;
        if (pool->is_own && !pool_find_exported(ticket->name, place->offset, ret_pointer))
                return CUDA_ERROR_INVALID_VALUE;
        piece = find_piece_locked(pool, ticket->name);
        if (!piece)
                return CUDA_ERROR_NOT_FOUND;
        if (piece->size != place->piece)
                return CUDA_ERROR_INVALID_VALUE;
        *ret_pointer = piece->base + place->offset;
        return add_pointer_locked(piece, *ret_pointer, place->size);
}

static CUresult look_up(CUdeviceptr *ret_pointer, CUmemoryPool handle,
                        const struct gate_ticket *ticket, const struct pool_place *place,
                        struct imported_pool *ret_pool)
{
        struct imported_pool *pool;
        CUresult result;

        pthread_mutex_lock(&pool_imports.lock);
        pool = find_locked(handle);
        result = look_up_locked(ret_pointer, pool, ticket, place);
        if (pool)
                *ret_pool = *pool;
        pthread_mutex_unlock(&pool_imports.lock);
        return result;
}

/* Where another thread was faster, its piece is found first, and ours goes again. @ret_is_kept: the pool was there. */
static CUresult keep(struct import_piece *piece, CUmemoryPool handle, uint64_t peers,
                     bool *ret_is_kept)
{
        struct imported_pool *pool;
        CUresult result = CUDA_ERROR_INVALID_VALUE;

        pthread_mutex_lock(&pool_imports.lock);
        pool = find_locked(handle);
        *ret_is_kept = pool;
        if (pool) {
                struct import_piece **link = &pool->pieces;

                while (*link)
                        link = &(*link)->next;
                *link = piece;
                piece->pool = pool;
                atomic_fetch_add(&pool_imports.n_over, 1);
                result = import_piece_add_peers(piece, pool->peers & ~peers);
        }
        pthread_mutex_unlock(&pool_imports.lock);
        return result;
}

/* Its pool is gone meanwhile, or it could not be opened. */
static void discard(struct import_piece *piece)
{
        struct view *views;
        CUresult result = import_piece_unmap(piece, &views);

        import_piece_settle(piece, views, result);
}

static CUresult add_piece(CUmemoryPool handle, const struct imported_pool *pool,
                          const struct gate_ticket *ticket, const struct pool_place *place)
{
        struct import_piece *piece = calloc(1, sizeof(*piece));
        bool is_kept = false;
        CUresult result;

        if (!piece)
                return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(piece->name, ticket->name, sizeof(piece->name));
        piece->size = place->piece;
        if (!pool->is_own)
                result = import_piece_open(piece, ticket, pool->peers);
        else
                result = pool_find_exported(ticket->name, place->offset, &piece->base)
                                 ? CUDA_SUCCESS
                                 : CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                result = keep(piece, handle, pool->peers, &is_kept);
        if (!is_kept)
                discard(piece);
        return result;
}

CUresult pool_import_pointer(CUdeviceptr *ret_pointer, CUmemoryPool handle,
                             const struct gate_ticket *ticket)
{
        struct imported_pool pool; /* as it was */
        struct pool_place place;
        CUcontext context;
        CUdevice device;
        CUresult result = context_current(&context, &device);

        if (result != CUDA_SUCCESS)
                return result;
        if (!pool_place_read(ticket, &place))
                return CUDA_ERROR_INVALID_VALUE;
        (void)pool_import_give_back();
        for (;;) {
                result = look_up(ret_pointer, handle, ticket, &place, &pool);
                if (result != CUDA_ERROR_NOT_FOUND)
                        return result;
                result = add_piece(handle, &pool, ticket, &place);
                if (result != CUDA_SUCCESS)
                        return result;
        }
}

/* Questions. */

static const struct import_pointer *find_around_locked(const struct import_piece *piece,
                                                       CUdeviceptr address)
{
        const struct import_pointer *it = piece->pointers;

        while (it && (address < it->node.key || address - it->node.key >= it->size))
                it = it->next;
        return it;
}

/* NULL: @address is in none that is another process'. */
static const struct import_piece *find_place_locked(CUdeviceptr address, uint64_t size)
{
        for (const struct imported_pool *pool = pool_imports.first; pool; pool = pool->next)
                for (const struct import_piece *it = pool->pieces; it; it = it->next)
                        if (it->physical && it->base < address + size &&
                            address < it->base + it->size)
                                return it;
        return NULL;
}

bool pool_import_find(CUdeviceptr address, struct memory_info *ret_info)
{
        const struct import_pointer *pointer = NULL;
        const struct import_piece *piece;

        if (!atomic_load(&pool_imports.is_used))
                return false;
        pthread_mutex_lock(&pool_imports.lock);
        piece = find_place_locked(address, 1);
        if (piece)
                pointer = find_around_locked(piece, address);
        if (pointer)
                *ret_info = (struct memory_info){ .start = pointer->node.key,
                                                  .size = pointer->size,
                                                  .pool = piece->pool->handle };
        pthread_mutex_unlock(&pool_imports.lock);
        return pointer;
}

bool pool_import_overlaps(CUdeviceptr address, uint64_t size)
{
        bool overlaps;

        if (!atomic_load(&pool_imports.is_used))
                return false;
        pthread_mutex_lock(&pool_imports.lock);
        overlaps = find_place_locked(address, size) != NULL;
        pthread_mutex_unlock(&pool_imports.lock);
        return overlaps;
}

static uint64_t count_locked(const struct imported_pool *pool, bool is_reserved)
{
        uint64_t bytes = 0;

        for (const struct import_piece *piece = pool->pieces; piece; piece = piece->next) {
                bytes += is_reserved ? piece->size : 0;
                for (const struct import_pointer *it = piece->pointers; it; it = it->next)
                        bytes += is_reserved ? 0 : it->size;
        }
        return bytes;
}

uint64_t pool_import_get_attribute(CUmemoryPool handle, int attribute)
{
        const bool is_reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
                                 attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
        const struct imported_pool *pool;
        uint64_t bytes = 0;

        if (!atomic_load(&pool_imports.is_used) ||
            (!is_reserved && attribute != CU_MEMPOOL_ATTR_USED_MEM_CURRENT &&
             attribute != CU_MEMPOOL_ATTR_USED_MEM_HIGH))
                return 0;
        pthread_mutex_lock(&pool_imports.lock);
        pool = find_locked(handle);
        if (pool)
                bytes = count_locked(pool, is_reserved);
        pthread_mutex_unlock(&pool_imports.lock);
        return bytes;
}

/* What the parent has is not the child's. */
void pool_import_forget(void)
{
        pthread_mutex_init(&pool_imports.lock, NULL);
        memset(&pool_imports.pointers, 0, sizeof(pool_imports.pointers));
        pool_imports.first = NULL;
        atomic_store(&pool_imports.is_used, false);
        atomic_store(&pool_imports.n_over, 0);
}
