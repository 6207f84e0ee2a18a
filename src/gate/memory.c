/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/memory.h"

#include <pthread.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "gate/child.h"
#include "gate/context.h"
#include "gate/entry.h"
#include "gate/memory-internal.h"
#include "gate/offer-name.h"
#include "gate/peer.h"
#include "gate/quota.h"
#include "gate/range.h"
#include "gate/reservation.h"
#include "gate/stock.h"
#include "wire/gate.h"

pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static struct mapping *first_block;
static struct block *first_idle; /* they are not freed: a copy may look at one (range.h) */

static uint64_t round_up(uint64_t size)
{
        return (size + BLOCK_SIZE - 1) & ~(uint64_t)(BLOCK_SIZE - 1);
}

static bool is_spare(const struct mapping *mapping)
{
        return mapping->block && mapping->block->n_allocations == 0 && !mapping->is_pinned;
}

/* It is an allocation now, or a block of them, which copies are looked up in; or no longer. */
static void publish_locked(const struct mapping *mapping)
{
        if (mapping->is_outside)
                range_set_outside(mapping->address, mapping->size);
        else if (mapping->is_leaving)
                range_set(mapping->address, mapping->size, 0);
        else if (mapping->block)
                range_set_block(mapping->address, mapping->block);
        else
                range_set(mapping->address, mapping->size, mapping->address + mapping->requested);
}

/* Out of the list of blocks, if it is in it, and on its way out. */
static struct mapping *take(struct mapping *mapping)
{
        struct mapping **link = &first_block;

        while (*link && *link != mapping)
                link = &(*link)->next_block;
        if (*link)
                *link = mapping->next_block;
        mapping->is_leaving = true;
        publish_locked(mapping);
        return mapping;
}

/* An empty block, not @but, of @context, for the caller to discard. */
static struct mapping *spare_take(CUcontext context, const struct mapping *but)
{
        for (struct mapping *it = first_block; it; it = it->next_block)
                if (it != but && it->context == context && is_spare(it))
                        return take(it);
        return NULL;
}

/* Out of the table, which makes its address free for the next. */
void memory_displace(const struct mapping *mapping)
{
        pthread_mutex_lock(&memory_lock);
        mapping_table_remove(mapping);
        pthread_mutex_unlock(&memory_lock);
        if (mapping->is_outside)
                reservation_free(mapping->address, mapping->size);
}

static void put_aside(struct block *block)
{
        if (!block)
                return;
        pthread_mutex_lock(&memory_lock);
        block_empty(block);
        block->next_idle = first_idle;
        first_idle = block;
        pthread_mutex_unlock(&memory_lock);
}
DEFINE_CLEANUP(struct block *, put_aside);

static struct block *take_idle(void)
{
        struct block *block;

        pthread_mutex_lock(&memory_lock);
        block = first_idle;
        if (block)
                first_idle = block->next_idle;
        pthread_mutex_unlock(&memory_lock);
        return block ? block : block_new();
}

/*
 * The end of a mapping that nobody else finds any more, or of NULL. What the driver does not unmap is
 * still at its address, which must not be given out again: then nothing is done.
 */
static CUresult discard(struct mapping *mapping)
{
        const char *call;
        CUresult result;

        if (!mapping)
                return CUDA_SUCCESS;
        offer_withdraw(mapping);
        if (mapping->has_memory) {
                result = mapping_unmap(mapping, &call);
                if (result != CUDA_SUCCESS)
                        return result;
                mapping_release(mapping);
        }
        memory_displace(mapping);
        put_aside(TAKE(mapping->block));
        mapping_free(mapping);
        return CUDA_SUCCESS;
}

static void pin_locked(struct mapping *mapping)
{
        if (!mapping->is_pinned)
                quota_move(mapping->device, INSTANCE_PAGE_MOVABLE, INSTANCE_PAGE_FIXED,
                           mapping->size);
        mapping->is_pinned = true;
}

/* The driver could not unmap it, and nobody can free it any more: its address stays busy. */
void memory_give_up(struct mapping *mapping)
{
        pthread_mutex_lock(&memory_lock);
        mapping->is_leaving = true;
        pin_locked(mapping);
        pthread_mutex_unlock(&memory_lock);
}

/* As discard(); what is still there can be used, or freed, again. */
static CUresult discard_or_keep(struct mapping *mapping)
{
        CUresult result = discard(mapping);

        if (result == CUDA_SUCCESS)
                return result;
        pthread_mutex_lock(&memory_lock);
        mapping->is_leaving = false;
        publish_locked(mapping);
        if (mapping->block) {
                mapping->next_block = first_block;
                first_block = mapping;
        }
        pthread_mutex_unlock(&memory_lock);
        return result;
}

bool memory_discard_spares(CUcontext context)
{
        struct mapping *spare;
        bool any = false;

        for (;;) {
                pthread_mutex_lock(&memory_lock);
                spare = spare_take(context, NULL);
                pthread_mutex_unlock(&memory_lock);
                if (!spare || discard_or_keep(spare) != CUDA_SUCCESS)
                        return any;
                any = true;
        }
}

/* A new mapping. */
static CUresult mapping_add(struct mapping **ret_mapping, CUcontext context, CUdevice device,
                            uint64_t requested, struct block *block)
{
        uint64_t size = block ? BLOCK_SIZE : round_up(requested);
        uint64_t peers = peer_mask(device);
        struct mapping *mapping;
        CUresult result;

        result = memory_make_patiently(&mapping, context, device, size, NULL);
        if (result != CUDA_SUCCESS)
                return result;

        (void)fault_point("gate-made");
        pthread_mutex_lock(&memory_lock);
        mapping->requested = requested;
        mapping->block = block;
        publish_locked(mapping);
        if (block) {
                mapping->next_block = first_block;
                first_block = mapping;
        }
        pthread_mutex_unlock(&memory_lock);
        if (peer_mask(device) != peers) /* memory_grant() may have passed by before it was there */
                (void)mapping_grant(mapping);
        *ret_mapping = mapping;
        return CUDA_SUCCESS;
}

static bool take_from_blocks(CUcontext context, uint32_t size, CUdeviceptr *ret_address)
{
        uint32_t offset;
        bool taken = false;

        pthread_mutex_lock(&memory_lock);
        for (struct mapping *it = first_block; it && !taken; it = it->next_block)
                if (it->context == context && !it->is_pinned &&
                    block_take(it->block, size, &offset)) {
                        *ret_address = it->address + offset;
                        taken = true;
                }
        pthread_mutex_unlock(&memory_lock);
        return taken;
}

static CUresult allocate_small(CUdeviceptr *ret_address, CUcontext context, CUdevice device,
                               uint32_t size)
{
        CLEANUP(put_asidep) struct block *block = NULL;
        struct mapping *mapping;
        uint32_t offset;
        CUresult result;

        if (take_from_blocks(context, size, ret_address))
                return CUDA_SUCCESS;

        block = take_idle();
        if (!block || !block_take(block, size, &offset)) /* taken before others see the block */
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = mapping_add(&mapping, context, device, 0, block);
        if (result != CUDA_SUCCESS)
                return result;
        block = NULL; /* the mapping's now */
        *ret_address = mapping->address + offset;
        return CUDA_SUCCESS;
}

static CUresult allocate_large(CUdeviceptr *ret_address, CUcontext context, CUdevice device,
                               uint64_t size)
{
        struct mapping *mapping;
        CUresult result;

        result = mapping_add(&mapping, context, device, size, NULL);
        if (result == CUDA_SUCCESS)
                *ret_address = mapping->address;
        return result;
}

CUresult memory_allocate(CUdeviceptr *ret_address, uint64_t size)
{
        CUcontext context;
        CUdevice device;
        CUresult result;

        result = context_current(&context, &device);
        if (result != CUDA_SUCCESS)
                return result;
        if (size > UINT64_MAX / 2)
                return CUDA_ERROR_OUT_OF_MEMORY;

        result = size < MEMORY_LARGE ? allocate_small(ret_address, context, device, (uint32_t)size)
                                     : allocate_large(ret_address, context, device, size);
        if (result == CUDA_SUCCESS)
                quota_count_allocations(1);
        return result;
}

/* The allocation around @address: its mapping and where in it. */
struct mapping *memory_find_locked(CUdeviceptr address, struct memory_info *ret_info)
{
        struct mapping *mapping = mapping_table_find(address);
        uint64_t offset = mapping ? address - mapping->address : 0;
        uint32_t start = 0, bytes = 0;

        if (!mapping || mapping->is_leaving)
                return NULL;
        if (mapping->block ? !block_find(mapping->block, (uint32_t)offset, &start, &bytes)
                           : offset >= mapping->requested)
                return NULL;
        *ret_info = (struct memory_info){
                .start = mapping->address + start,
                .size = mapping->block ? bytes : mapping->requested,
                .context = mapping->context,
                .buffer_id = mapping->buffer_id + start / BLOCK_GRANULE,
        };
        return mapping;
}

bool memory_find(CUdeviceptr address, struct memory_info *ret_info)
{
        bool found;

        pthread_mutex_lock(&memory_lock);
        found = memory_find_locked(address, ret_info) != NULL;
        pthread_mutex_unlock(&memory_lock);
        return found;
}

/*
 * After the device is done: out of its block or on its way out, if it is still there (two threads that
 * free the same address are a mistake of the program, but must not be one of ours).
 */
static bool remove_allocation(CUdeviceptr address, struct mapping **ret_empty)
{
        struct memory_info info;
        struct mapping *mapping;

        *ret_empty = NULL;
        pthread_mutex_lock(&memory_lock);
        mapping = memory_find_locked(address, &info);
        if (mapping && mapping->block) {
                block_give_back(mapping->block, (uint32_t)(address - mapping->address));
                if (is_spare(mapping)) /* one empty block is kept */
                        *ret_empty = spare_take(mapping->context, mapping);
                else if (mapping->block->n_allocations == 0)
                        *ret_empty = take(mapping); /* nothing comes out of it any more */
        } else if (mapping) {
                *ret_empty = take(mapping);
        }
        pthread_mutex_unlock(&memory_lock);
        return mapping != NULL;
}

bool memory_free(CUdeviceptr address, CUresult *ret_result)
{
        struct memory_info info;
        struct mapping *empty;
        CUresult result;

        if (!memory_find(address, &info) || info.start != address)
                return false;

        result = context_finish(info.context);
        if (result == CUDA_SUCCESS) {
                bool is_small;

                if (!remove_allocation(address, &empty))
                        return false;
                is_small = !empty || empty->block;
                result = discard_or_keep(empty);
                if (is_small)
                        result = CUDA_SUCCESS; /* it is free; a block too many does no harm */
                if (result == CUDA_SUCCESS)
                        quota_count_allocations(-1);
        }
        *ret_result = result;
        return true;
}

bool range_is_beyond(CUdeviceptr address, uint64_t size)
{
        struct memory_info info;

        return memory_find(address, &info) && size > info.size - (address - info.start);
}

static bool overlaps_mapping(CUdeviceptr address, uint64_t size)
{
        const struct mapping *mapping;
        bool overlaps;

        pthread_mutex_lock(&memory_lock);
        mapping = mapping_table_find_from(address);
        overlaps = mapping && mapping->address < address + size; /* unlocked, it may go at once */
        pthread_mutex_unlock(&memory_lock);
        return overlaps;
}

bool memory_is_unallocated(CUdeviceptr address)
{
        struct memory_info info;
        bool is_unallocated;

        pthread_mutex_lock(&memory_lock);
        is_unallocated = mapping_table_find(address) && !memory_find_locked(address, &info);
        pthread_mutex_unlock(&memory_lock);
        return is_unallocated;
}

bool memory_register(CUdeviceptr address, uint64_t size)
{
        struct mapping *mapping;
        bool any = false;

        pthread_mutex_lock(&memory_lock);
        for (CUdeviceptr at = address; at < address + size; at = mapping->address + mapping->size) {
                mapping = mapping_table_find(at);
                if (!mapping)
                        break;
                any = true;
                if (!mapping->is_registered)
                        quota_count_holds(GATE_HOLDS_REGISTERED, 1);
                mapping->is_registered = true;
                pin_locked(mapping);
                if (mapping->chunk)
                        stock_hurry(mapping->chunk);
        }
        pthread_mutex_unlock(&memory_lock);
        return any;
}

void memory_set_sync_memops(CUdeviceptr address, bool on)
{
        struct mapping *mapping;

        pthread_mutex_lock(&memory_lock);
        mapping = mapping_table_find(address);
        if (mapping)
                mapping->sync_memops = on;
        pthread_mutex_unlock(&memory_lock);
}

/* Any mapping of @context, on its way out; with how many allocations of the application. */
static struct mapping *any_take(CUcontext context, int64_t *ret_n_allocations)
{
        struct mapping *mapping;
        size_t at = 0;

        while ((mapping = mapping_table_get(at)) &&
               (mapping->context != context || mapping->is_leaving))
                at++;
        if (!mapping)
                return NULL;
        *ret_n_allocations = mapping->block ? mapping->block->n_allocations : 1;
        return take(mapping);
}

void memory_drop_context(CUcontext context)
{
        struct mapping *mapping;
        int64_t n = 0;

        do {
                pthread_mutex_lock(&memory_lock);
                mapping = any_take(context, &n);
                pthread_mutex_unlock(&memory_lock);
                if (mapping)
                        quota_count_allocations(-n);
                if (discard(mapping) != CUDA_SUCCESS)
                        memory_give_up(mapping);
        } while (mapping);
}

static bool is_allocated(const struct mapping *mapping)
{
        return (mapping->requested > 0 || mapping->block) && !mapping->is_leaving;
}

/* One at a time by address, as the lock is not held over the driver's call. */
CUresult memory_grant(CUdevice device)
{
        CUresult first_error = CUDA_SUCCESS;
        CUdeviceptr from = 0;

        for (;;) {
                struct mapping copy = { .size = 0 };
                const struct mapping *mapping;
                CUresult result;

                pthread_mutex_lock(&memory_lock);
                mapping = mapping_table_find_from(from);
                while (mapping && (mapping->device != device || !is_allocated(mapping)))
                        mapping = mapping_table_find_from(mapping->address + mapping->size);
                if (mapping)
                        copy = *mapping;
                pthread_mutex_unlock(&memory_lock);
                if (copy.size == 0)
                        return first_error;
                result = mapping_grant(&copy);
                if (first_error == CUDA_SUCCESS && overlaps_mapping(copy.address, 1))
                        first_error = result; /* else it has been freed meanwhile */
                from = copy.address + copy.size;
        }
}

struct mapping *memory_movable(uint64_t *from)
{
        struct mapping *mapping;

        pthread_mutex_lock(&memory_lock);
        do {
                mapping = mapping_table_find_from(*from);
                if (mapping)
                        *from = mapping->address + mapping->size;
        } while (mapping && mapping->is_pinned);
        pthread_mutex_unlock(&memory_lock);
        return mapping;
}

struct mapping *memory_movable_find(CUdeviceptr address)
{
        struct mapping *mapping;

        pthread_mutex_lock(&memory_lock);
        mapping = mapping_table_find(address);
        pthread_mutex_unlock(&memory_lock);
        return mapping && !mapping->is_pinned && mapping->address == address ? mapping : NULL;
}

void memory_end(struct mapping *mapping)
{
        if (discard(mapping) != CUDA_SUCCESS)
                memory_give_up(mapping);
}

void memory_set_chunk(struct mapping *mapping, struct stock_chunk *chunk)
{
        pthread_mutex_lock(&memory_lock);
        mapping->chunk = chunk;
        pthread_mutex_unlock(&memory_lock);
}

CUresult memory_let(struct mapping *mapping, uint64_t peers)
{
        pthread_mutex_lock(&memory_lock);
        mapping->peers = peers;
        pthread_mutex_unlock(&memory_lock);
        return mapping_grant(mapping);
}

struct stock_chunk *memory_chunk_at(CUdeviceptr address)
{
        const struct mapping *mapping;
        struct stock_chunk *chunk;

        pthread_mutex_lock(&memory_lock);
        mapping = mapping_table_find(address);
        chunk = mapping ? mapping->chunk : NULL;
        pthread_mutex_unlock(&memory_lock);
        return chunk;
}

void memory_pin(struct mapping *mapping)
{
        pthread_mutex_lock(&memory_lock);
        pin_locked(mapping);
        pthread_mutex_unlock(&memory_lock);
}

void memory_forget(void)
{
        pthread_mutex_init(&memory_lock, NULL);
        first_block = NULL;
        first_idle = NULL;
        range_close();
        mapping_table_clear();
}
