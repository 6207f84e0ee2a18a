/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping: a memory file at an address of this process. */

#include "sim/mapping.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *pointer(uint64_t address)
{
        return (void *)(uintptr_t)address;
}

static int protection(const struct mapping *mapping)
{
        if (mapping->writers)
                return PROT_READ | PROT_WRITE;
        return mapping->readers ? PROT_READ : PROT_NONE;
}

static void *map_nothing(uint64_t address, uint64_t size, int flags)
{
        return mmap(pointer(address), size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

/* More than is needed, so that an aligned part can be kept. */
static uint64_t reserve_aligned(uint64_t size, uint64_t alignment)
{
        uint64_t start, aligned;
        void *map = map_nothing(0, size + alignment, 0);

        if (map == MAP_FAILED)
                return 0;
        start = (uint64_t)(uintptr_t)map;
        aligned = (start + alignment - 1) & ~(alignment - 1);
        if (aligned > start)
                (void)munmap(pointer(start), aligned - start);
        (void)munmap(pointer(aligned + size), start + alignment - aligned);
        return aligned;
}

CUresult mapping_reserve(uint64_t *ret_address, uint64_t size, uint64_t alignment, uint64_t hint)
{
        uint64_t address = 0;

        if (hint && map_nothing(hint, size, MAP_FIXED_NOREPLACE) == pointer(hint))
                address = hint;
        else
                address = reserve_aligned(size, alignment > MEMORY_PAGE ? alignment : MEMORY_PAGE);
        if (!address)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *ret_address = address;
        return CUDA_SUCCESS;
}

void mapping_unreserve(uint64_t address, uint64_t size)
{
        (void)munmap(pointer(address), size);
}

/* Not for children: a forked one would keep the memory from being free when we free it. */
CUresult mapping_put_back(struct mapping *mapping)
{
        void *map = mmap(pointer(mapping->address), mapping->size, protection(mapping),
                         MAP_SHARED | MAP_FIXED, mapping->file->fd, 0);

        if (map == MAP_FAILED)
                return CUDA_ERROR_OUT_OF_MEMORY;
        (void)madvise(map, mapping->size, MADV_DONTFORK);
        return CUDA_SUCCESS;
}

void mapping_take_off(struct mapping *mapping)
{
        (void)map_nothing(mapping->address, mapping->size, MAP_FIXED);
}

CUresult mapping_create(struct mapping **ret_mapping, struct memory_file *file, uint64_t address)
{
        struct mapping *mapping = calloc(1, sizeof(*mapping));
        CUresult result = CUDA_SUCCESS;

        if (!mapping)
                return CUDA_ERROR_OUT_OF_MEMORY;
        mapping->size = file->size;
        mapping->address = address;
        mapping->is_in_reservation = address != 0;
        mapping->file = file;
        if (!address)
                result = mapping_reserve(&mapping->address, mapping->size, MEMORY_PAGE, 0);
        if (result == CUDA_SUCCESS)
                result = mapping_put_back(mapping);
        if (result != CUDA_SUCCESS) {
                if (!address && mapping->address)
                        mapping_unreserve(mapping->address, mapping->size);
                free(mapping);
                return result;
        }

        (void)memory_file_ref(file);
        mapping->next = process.mappings;
        mapping->link = &process.mappings;
        if (mapping->next)
                mapping->next->link = &mapping->next;
        process.mappings = mapping;
        *ret_mapping = mapping;
        return CUDA_SUCCESS;
}

struct mapping *mapping_free(struct mapping *mapping)
{
        if (!mapping)
                return NULL;
        if (mapping->is_in_reservation)
                mapping_take_off(mapping);
        else
                mapping_unreserve(mapping->address, mapping->size);
        if (mapping->next)
                mapping->next->link = mapping->link;
        *mapping->link = mapping->next;
        (void)memory_file_unref(mapping->file);
        free(mapping);
        return NULL;
}

CUresult mapping_set_access(struct mapping *mapping, uint32_t readers, uint32_t writers)
{
        int before = protection(mapping);

        mapping->readers = readers;
        mapping->writers = writers;
        if (protection(mapping) == before)
                return CUDA_SUCCESS;
        if (mprotect(pointer(mapping->address), mapping->size, protection(mapping)) < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;
        return CUDA_SUCCESS;
}
