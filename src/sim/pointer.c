/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointer attributes: what can be asked about an address.
 *
 * Ordinary and virtual memory differ in many of them; the differences were
 * measured on a real device.
 */

#include <string.h>

#include "sim/memory.h"

static bool is_host(const struct region *region)
{
        return region->kind == REGION_HOST || region->kind == REGION_REGISTERED;
}

static const struct range *get_range(const struct region *region)
{
        if (region->kind == REGION_VIRTUAL)
                return space_find(&process.reservations, region->range.address);
        return &region->range;
}

/* Memory of pools is no context's. */
static uint64_t get_context(const struct region *region, uint64_t address)
{
        (void)address;
        if (region->kind == REGION_POOLED)
                return 0;
        return (uint64_t)(uintptr_t)region->context;
}

static uint64_t get_memory_type(const struct region *region, uint64_t address)
{
        (void)address;
        return is_host(region) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static uint64_t get_address(const struct region *region, uint64_t address)
{
        (void)region;
        return address;
}

static uint64_t get_sync_memops(const struct region *region, uint64_t address)
{
        (void)address;
        return region->has_sync_memops;
}

static uint64_t get_buffer_id(const struct region *region, uint64_t address)
{
        (void)address;
        return region->id;
}

static uint64_t get_is_managed(const struct region *region, uint64_t address)
{
        (void)address;
        return region->kind == REGION_MANAGED;
}

static uint64_t get_ordinal(const struct region *region, uint64_t address)
{
        (void)address;
        return (uint64_t)region->device;
}

static uint64_t get_is_ipc_capable(const struct region *region, uint64_t address)
{
        (void)address;
        return region->kind == REGION_PLAIN;
}

static uint64_t get_range_start(const struct region *region, uint64_t address)
{
        (void)address;
        return get_range(region)->address;
}

static uint64_t get_range_size(const struct region *region, uint64_t address)
{
        (void)address;
        return get_range(region)->size;
}

static uint64_t get_is_mapped(const struct region *region, uint64_t address)
{
        (void)region;
        (void)address;
        return 1;
}

static uint64_t get_handle_types(const struct region *region, uint64_t address)
{
        (void)address;
        if (region->pool)
                return (uint64_t)memory_pool_handle_types(region->pool);
        if (region->kind != REGION_VIRTUAL || region->mapping->file->is_imported)
                return 0;
        return (uint64_t)region->mapping->file->props.requestedHandleTypes;
}

static uint64_t get_is_rdma_capable(const struct region *region, uint64_t address)
{
        (void)address;
        if (region->kind == REGION_VIRTUAL)
                return region->mapping->file->props.allocFlags.gpuDirectRDMACapable;
        return region->kind == REGION_PLAIN;
}

static uint64_t get_access_flags(const struct region *region, uint64_t address)
{
        (void)address;
        if (region->kind != REGION_VIRTUAL || region->mapping->writers)
                return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return region->mapping->readers ? CU_MEM_ACCESS_FLAGS_PROT_READ : 0;
}

static uint64_t get_pool(const struct region *region, uint64_t address)
{
        (void)address;
        return (uint64_t)(uintptr_t)region->pool;
}

static uint64_t get_mapping_size(const struct region *region, uint64_t address)
{
        (void)address;
        return region->mapping ? region->mapping->size : region->range.size;
}

static uint64_t get_mapping_base(const struct region *region, uint64_t address)
{
        (void)address;
        return region->mapping ? region->mapping->address : region->range.address;
}

static const struct attribute {
        uint64_t (*get)(const struct region *region, uint64_t address);
        size_t size; /* of the answer */
} attributes[] = {
        [CU_POINTER_ATTRIBUTE_CONTEXT] = { get_context, 8 },
        [CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = { get_memory_type, 4 },
        [CU_POINTER_ATTRIBUTE_DEVICE_POINTER] = { get_address, 8 },
        [CU_POINTER_ATTRIBUTE_HOST_POINTER] = { get_address, 8 },
        [CU_POINTER_ATTRIBUTE_SYNC_MEMOPS] = { get_sync_memops, 1 },
        [CU_POINTER_ATTRIBUTE_BUFFER_ID] = { get_buffer_id, 8 },
        [CU_POINTER_ATTRIBUTE_IS_MANAGED] = { get_is_managed, 1 },
        [CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] = { get_ordinal, 4 },
        [CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE] = { get_is_ipc_capable, 1 },
        [CU_POINTER_ATTRIBUTE_RANGE_START_ADDR] = { get_range_start, 8 },
        [CU_POINTER_ATTRIBUTE_RANGE_SIZE] = { get_range_size, 8 },
        [CU_POINTER_ATTRIBUTE_MAPPED] = { get_is_mapped, 1 },
        [CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES] = { get_handle_types, 8 },
        [CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE] = { get_is_rdma_capable, 1 },
        [CU_POINTER_ATTRIBUTE_ACCESS_FLAGS] = { get_access_flags, 4 },
        [CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE] = { get_pool, 8 },
        [CU_POINTER_ATTRIBUTE_MAPPING_SIZE] = { get_mapping_size, 8 },
        [CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR] = { get_mapping_base, 8 },
        [CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID] = { get_buffer_id, 8 },
};

#define ATTRIBUTE_COUNT (sizeof(attributes) / sizeof(attributes[0]))

/* Two words that a network driver of old passed on; their contents mean nothing here. */
struct p2p_tokens {
        uint64_t token;
        uint32_t space;
};

static CUresult get_p2p_tokens(void *data, const struct region *region)
{
        struct p2p_tokens tokens = { region->id, 0 };

        if (is_host(region))
                return CUDA_ERROR_INVALID_VALUE;
        memcpy(data, &tokens, sizeof(tokens));
        return CUDA_SUCCESS;
}

static CUresult get_attribute(void *data, int attribute, uint64_t address)
{
        const struct region *region = memory_find(address);
        uint64_t value;

        if (!region)
                return CUDA_ERROR_INVALID_VALUE;
        if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
                return get_p2p_tokens(data, region);
        if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && !is_host(region) &&
            region->kind != REGION_MANAGED)
                return CUDA_ERROR_INVALID_VALUE;
        value = attributes[attribute].get(region, address);
        memcpy(data, &value, attributes[attribute].size); /* little endian */
        return CUDA_SUCCESS;
}

static bool is_attribute(int attribute)
{
        return attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS ||
               (attribute > 0 && attribute < (int)ATTRIBUTE_COUNT && attributes[attribute].get);
}

CUresult sim_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
        PROCESS_LOCKED();

        if (!data || !is_attribute((int)attribute))
                return CUDA_ERROR_INVALID_VALUE;
        return get_attribute(data, (int)attribute, pointer);
}

/* Of an address that is nothing, each is 0, but the ordinal, which is -2. */
static void get_default(void *data, int attribute)
{
        static const int no_device = -2;

        if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
                memset(data, 0, sizeof(struct p2p_tokens));
        else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
                memcpy(data, &no_device, sizeof(no_device));
        else
                memset(data, 0, attributes[attribute].size);
}

CUresult sim_cuPointerGetAttributes(unsigned int n, CUpointer_attribute *wanted, void **data,
                                    CUdeviceptr pointer)
{
        PROCESS_LOCKED();

        if (n == 0 || !wanted || !data)
                return CUDA_ERROR_INVALID_VALUE;
        for (unsigned int i = 0; i < n; i++)
                if (!is_attribute((int)wanted[i]) || !data[i])
                        return CUDA_ERROR_INVALID_VALUE;
        for (unsigned int i = 0; i < n; i++)
                if (get_attribute(data[i], (int)wanted[i], pointer) != CUDA_SUCCESS)
                        get_default(data[i], (int)wanted[i]);
        return CUDA_SUCCESS;
}

/*
 * A dma-buf: as a real one, it keeps the memory that it is of. That is never less than a page, and the
 * whole of the allocation here.
 */
CUresult sim_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr pointer, size_t size, int type,
                                           unsigned long long flags)
{
        struct region *region;
        CUresult result;
        PROCESS_LOCKED();
        int fd;

        region = memory_find(pointer);
        if (!handle || size == 0 || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags ||
            pointer % 4096 || size % 4096 || !region || is_host(region) ||
            !memory_is_device(pointer, size))
                return CUDA_ERROR_INVALID_VALUE;
        if (region->kind == REGION_MANAGED || !region->mapping)
                return CUDA_ERROR_NOT_SUPPORTED;
        result = memory_file_export(region->mapping->file, &fd);
        if (result == CUDA_SUCCESS)
                memcpy(handle, &fd, sizeof(fd));
        return result;
}

CUresult sim_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                   CUdeviceptr pointer)
{
        struct region *region;
        unsigned int on;
        PROCESS_LOCKED();

        region = memory_find(pointer);
        if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !region)
                return CUDA_ERROR_INVALID_VALUE;
        if (region->kind == REGION_VIRTUAL)
                return CUDA_ERROR_NOT_SUPPORTED; /* measured */
        memcpy(&on, value, sizeof(on));
        region->has_sync_memops = on != 0;
        return CUDA_SUCCESS;
}
