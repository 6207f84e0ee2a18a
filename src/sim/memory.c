/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that programs may name by an address. */

#include "sim/memory.h"

#include <errno.h>
#include <stdlib.h>

struct region *memory_find(uint64_t address)
{
        return (struct region *)space_find(&process.regions, address);
}

CUresult memory_add(struct region **ret_region, enum region_kind kind, uint64_t address,
                    uint64_t size)
{
        CLEANUP(freep) struct region *region = calloc(1, sizeof(*region));
        int r;

        if (!region)
                return CUDA_ERROR_OUT_OF_MEMORY;
        region->range.address = address;
        region->range.size = size;
        region->kind = kind;
        region->id = process.next_id++;
        region->shared_fd = -1;
        r = space_insert(&process.regions, &region->range);
        if (r < 0)
                return r == -EEXIST ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
        *ret_region = TAKE(region);
        return CUDA_SUCCESS;
}

void memory_remove(struct region *region)
{
        fd_close(region->shared_fd);
        space_remove(&process.regions, &region->range);
        free(region);
}

static bool may_use(const struct region *region, CUdevice device)
{
        if (region->kind != REGION_VIRTUAL)
                return true;
        return region->mapping->readers & (1u << device);
}

/* Every byte of it lies in regions that @may_use (NULL: any) accepts. */
static bool is_covered(uint64_t address, uint64_t size,
                       bool (*accepts)(const struct region *, CUdevice), CUdevice device)
{
        uint64_t end = address + size;

        if (end < address)
                return false;
        while (address < end) {
                struct region *region = memory_find(address);

                if (!region || !accepts(region, device))
                        return false;
                address = region->range.address + region->range.size;
        }
        return true;
}

static bool has_access(const struct region *region, CUdevice device)
{
        (void)device;
        return region->kind != REGION_VIRTUAL || region->mapping->readers;
}

bool memory_is_accessible(uint64_t address, uint64_t size, CUdevice device)
{
        return is_covered(address, size, may_use, device);
}

bool memory_is_device(uint64_t address, uint64_t size)
{
        return size == 0 || is_covered(address, size, has_access, 0);
}

bool memory_is_usable(uint64_t address, uint64_t size)
{
        if (memory_find(address))
                return memory_is_device(address, size);
        return address && !space_find(&process.reservations, address);
}

bool memory_is_pageable(uint64_t address)
{
        return !memory_find(address);
}

bool memory_has_managed(void)
{
        for (size_t i = 0; i < process.regions.n; i++)
                if (((struct region *)process.regions.ranges[i])->kind == REGION_MANAGED)
                        return true;
        return false;
}

static CUresult map_own(struct mapping **ret_mapping, CUdevice device, uint64_t size)
{
        CLEANUP(memory_file_unrefp) struct memory_file *file = NULL;
        CLEANUP(mapping_freep) struct mapping *mapping = NULL;
        CUresult result;

        if (size > UINT64_MAX - MEMORY_PAGE)
                return CUDA_ERROR_OUT_OF_MEMORY;
        size = (size + MEMORY_PAGE - 1) & ~(MEMORY_PAGE - 1);
        result = memory_file_create(&file, process.device[device].at, size);
        if (result == CUDA_SUCCESS)
                result = mapping_create(&mapping, file, 0);
        if (result == CUDA_SUCCESS)
                result = mapping_set_access(mapping, UINT32_MAX, UINT32_MAX);
        if (result == CUDA_SUCCESS)
                *ret_mapping = TAKE(mapping);
        return result;
}

CUresult memory_allocate(struct region **ret_region, enum region_kind kind, CUcontext context,
                         CUmemoryPool pool, uint64_t size)
{
        struct block_owner owner = { context, pool };
        struct mapping *mapping = NULL;
        struct block *block = NULL;
        struct region *region;
        uint64_t address;
        CUresult result;

        if (size <= BLOCK_REQUEST_MAX && kind != REGION_MANAGED) {
                result = block_allocate(&block, &address, owner, context->device, size);
        } else {
                result = map_own(&mapping, context->device, size);
                address = mapping ? mapping->address : 0;
        }
        if (result != CUDA_SUCCESS)
                return result;
        result = memory_add(&region, kind, address, size);
        if (result != CUDA_SUCCESS) {
                if (block)
                        block_release(block, address, size);
                (void)mapping_free(mapping);
                return result;
        }
        region->context = context;
        region->device = context->device;
        region->pool = pool;
        region->block = block;
        region->mapping = block ? block_get_mapping(block) : mapping;
        *ret_region = region;
        return CUDA_SUCCESS;
}

void memory_release(struct region *region)
{
        if (region->block)
                block_release(region->block, region->range.address, region->range.size);
        else if (region->kind != REGION_HOST && region->kind != REGION_REGISTERED)
                (void)mapping_free(region->mapping);
        else if (region->kind == REGION_HOST)
                mapping_unreserve(region->range.address, region->range.size);
        memory_remove(region);
}

void memory_release_pooled(uint64_t address)
{
        struct region *region = memory_find(address);

        if (region && region->kind == REGION_POOLED && region->range.address == address)
                memory_release(region);
}

void memory_release_all(CUcontext context)
{
        for (size_t i = process.regions.n; i-- > 0;) {
                struct region *region = (struct region *)process.regions.ranges[i];

                if (region->context == context)
                        memory_release(region);
        }
}

void memory_release_pool(CUmemoryPool pool)
{
        for (size_t i = process.regions.n; i-- > 0;) {
                struct region *region = (struct region *)process.regions.ranges[i];

                if (region->pool == pool)
                        memory_release(region);
        }
}
