/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of ours that are exported.
 *
 * What a program exports of a pool, a chunk has that is a mapping as any other: it gets a name, and who shows the
 * manager a ticket with that name gets a descriptor of it (offer.h). It is the name of the whole chunk, and stays
 * when an allocation in it ends, as natively, where who has imported a pool can get at all of it.
 */
#include <string.h>

#include "gate/entry.h"
#include "gate/mapping.h"
#include "gate/offer-name.h"
#include "gate/offer.h"
#include "gate/pool-internal.h"
#include "gate/pool-ticket.h"
#include "gate/ticket.h"

static bool is_exportable(const struct pool *pool)
{
        return pool && (pool->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

bool pool_is_exportable(CUmemoryPool handle)
{
        bool can_be;

        pthread_mutex_lock(&pools.lock);
        can_be = is_exportable(pool_at(handle));
        pthread_mutex_unlock(&pools.lock);
        return can_be;
}

static int name_locked(struct pool *pool)
{
        int r = pool->is_named ? 0 : ticket_make_name(pool->name);

        pool->is_named |= r == 0;
        return r;
}

/* What tells the device from the others of the machine, for who imports the pool; 0: not known. */
static uint64_t get_id(CUdevice device)
{
        uint64_t id = 0;
        CUuuid uuid;

        if (DRIVER(cuDeviceGetUuid)(&uuid, device) == CUDA_SUCCESS)
                memcpy(&id, &uuid, sizeof(id));
        return id;
}

bool pool_export(CUmemoryPool handle, int *ret_fd, CUresult *ret_result)
{
        CUdevice device = 0;
        struct gate_ticket ticket;
        struct pool *pool;
        bool is_ours, is_known = ticket_identify(&ticket);
        int fd = -1;

        pthread_mutex_lock(&pools.lock);
        pool = pool_at(handle);
        is_ours = is_exportable(pool);
        is_known = is_known && is_ours && name_locked(pool) == 0;
        if (is_known) {
                memcpy(ticket.name, pool->name, sizeof(ticket.name));
                device = pool->device;
        }
        pthread_mutex_unlock(&pools.lock);
        if (is_known) {
                pool_ticket_write(&ticket, get_id(device));
                fd = ticket_to_fd(&ticket);
        }
        *ret_fd = fd;
        *ret_result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
        return is_ours;
}

static CUresult describe_locked(struct gate_ticket *ticket, const struct stock_range *range)
{
        struct stock_chunk *chunk = range->chunk;
        struct pool *pool = pool_of(chunk->stock);
        struct pool_place place = { .offset = range->address - chunk->mapping->address,
                                    .size = range->requested,
                                    .piece = chunk->mapping->size };

        if (!is_exportable(pool) || range->is_being_freed)
                return CUDA_ERROR_INVALID_VALUE;
        if (name_locked(pool) < 0 || offer_name(chunk->mapping, ticket->name) < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        place.pool = pool_ticket_mark(pool->name);
        return pool_place_write(ticket, &place) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

bool pool_export_pointer(CUdeviceptr address, struct gate_ticket *ret_ticket, CUresult *ret_result)
{
        bool is_known = ticket_identify(ret_ticket);
        const struct stock_range *range;

        pthread_mutex_lock(&pools.lock);
        range = (struct stock_range *)hash_find(&pools.allocations, address);
        if (range)
                *ret_result =
                        is_known ? describe_locked(ret_ticket, range) : CUDA_ERROR_OPERATING_SYSTEM;
        pthread_mutex_unlock(&pools.lock);
        return range != NULL;
}

/* To who has exported it. */

bool pool_has_exported(const uint8_t name[GATE_NAME_SIZE])
{
        const struct pool *pool;

        pthread_mutex_lock(&pools.lock);
        pool = pools.first;
        while (pool && !(pool->is_named && memcmp(pool->name, name, GATE_NAME_SIZE) == 0))
                pool = pool->next;
        pthread_mutex_unlock(&pools.lock);
        return pool;
}

static const struct stock_chunk *find_chunk_locked(const uint8_t name[GATE_NAME_SIZE])
{
        for (const struct pool *pool = pools.first; pool; pool = pool->next)
                for (const struct stock_chunk *it = pool->stock.chunks; it; it = it->next)
                        if (offer_has_name(it->mapping, name))
                                return it;
        return NULL;
}

bool pool_find_exported(const uint8_t name[GATE_NAME_SIZE], uint64_t offset, CUdeviceptr *ret_piece)
{
        const struct stock_chunk *chunk;
        bool is_there = false;

        pthread_mutex_lock(&pools.lock);
        chunk = find_chunk_locked(name);
        if (chunk) {
                *ret_piece = chunk->mapping->address;
                is_there = hash_find(&pools.allocations, *ret_piece + offset) != NULL;
        }
        pthread_mutex_unlock(&pools.lock);
        return is_there;
}
