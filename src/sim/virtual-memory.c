/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: addresses and physical memory apart, and physical
 * memory that is handed to other processes.
 *
 * None of this needs a context. A handle is a number that is never used again,
 * so that a stale one is an error.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/handle.h"
#include "sim/memory.h"

static CUresult new_handle(CUmemGenericAllocationHandle *ret_handle, struct memory_file *file)
{
        if (!file->handle.address) {
                struct range number = { process.next_id++, 1 };

                file->handle = number;
                if (space_insert(&process.handles, &file->handle) < 0) {
                        file->handle.address = 0;
                        (void)memory_file_unref(file);
                        return CUDA_ERROR_OUT_OF_MEMORY;
                }
        }
        file->handles++;
        *ret_handle = file->handle.address;
        return CUDA_SUCCESS;
}

static struct memory_file *find_handle(CUmemGenericAllocationHandle handle)
{
        struct memory_file *file = (struct memory_file *)space_find(&process.handles, handle);

        return file && file->handles ? file : NULL;
}

bool handle_has_imported(void)
{
        for (struct memory_file *file = process.files; file; file = file->next)
                if (file->is_imported)
                        return true;
        return false;
}

static bool is_multiple(uint64_t value)
{
        return value % MEMORY_PAGE == 0;
}

static bool is_power_of_two(uint64_t value)
{
        return (value & (value - 1)) == 0;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment,
                                 CUdeviceptr address, unsigned long long flags)
{
        CLEANUP(freep) struct range *range = NULL;
        CUresult result;
        PROCESS_LOCKED();

        if (!pointer || size == 0 || !is_multiple(size) || flags || !is_power_of_two(alignment))
                return CUDA_ERROR_INVALID_VALUE;
        range = calloc(1, sizeof(*range));
        if (!range)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = mapping_reserve(&range->address, size, alignment,
                                 is_multiple(address) ? address : 0);
        if (result != CUDA_SUCCESS)
                return result;
        range->size = size;
        if (space_insert(&process.reservations, range) < 0) {
                mapping_unreserve(range->address, range->size);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *pointer = range->address;
        (void)TAKE(range);
        return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
        struct range *range, *mapped;
        PROCESS_LOCKED();

        range = space_find(&process.reservations, pointer);
        mapped = space_next(&process.regions, pointer);
        if (!range || range->address != pointer || range->size != size ||
            (mapped && mapped->address < pointer + size))
                return CUDA_ERROR_INVALID_VALUE;
        space_remove(&process.reservations, range);
        mapping_unreserve(pointer, size);
        free(range);
        return CUDA_SUCCESS;
}

static CUresult check_props(const CUmemAllocationProp *prop)
{
        if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
            prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(prop->location.id))
                return CUDA_ERROR_INVALID_DEVICE;
        if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                return CUDA_ERROR_NOT_SUPPORTED;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                           int option)
{
        CUresult result = check_props(prop);

        if (!granularity || option < CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
            option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
                return CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                *granularity = MEMORY_PAGE;
        return result;
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
        struct memory_file *file;
        CUresult result = check_props(prop);
        PROCESS_LOCKED();

        if (result != CUDA_SUCCESS)
                return result;
        if (!handle || size == 0 || !is_multiple(size) || flags)
                return CUDA_ERROR_INVALID_VALUE;
        result = memory_file_create(&file, process.device[prop->location.id].at, size);
        if (result != CUDA_SUCCESS)
                return result;
        file->props = *prop;
        return new_handle(handle, file);
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle handle)
{
        struct memory_file *file;
        PROCESS_LOCKED();

        file = find_handle(handle);
        if (!file)
                return CUDA_ERROR_INVALID_VALUE;
        file->handles--;
        (void)memory_file_unref(file);
        return CUDA_SUCCESS;
}

CUresult sim_cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        struct memory_file *file;
        struct mapping *mapping;
        struct region *region;
        struct range *range;
        CUresult result;
        PROCESS_LOCKED();

        file = find_handle(handle);
        range = space_find(&process.reservations, pointer);
        if (!file || !range || flags || offset != 0 || size != file->size ||
            !is_multiple(pointer) || size > range->address + range->size - pointer)
                return CUDA_ERROR_INVALID_VALUE;
        result = memory_add(&region, REGION_VIRTUAL, pointer, size);
        if (result != CUDA_SUCCESS)
                return result;
        result = mapping_create(&mapping, file, pointer);
        if (result != CUDA_SUCCESS) {
                memory_remove(region);
                return result;
        }
        region->mapping = mapping;
        region->device = file->props.location.id;
        return CUDA_SUCCESS;
}

/*
 * Calls each(region) for all mappings from @pointer on, which must be exactly @size bytes without
 * a hole and without a part of one.
 */
static CUresult for_all_mappings(CUdeviceptr pointer, size_t size,
                                 CUresult (*each)(struct region *, const void *), const void *data)
{
        CUresult result = CUDA_SUCCESS;
        uint64_t at = pointer;

        while (at < pointer + size) {
                struct region *region = memory_find(at);

                if (!region || region->kind != REGION_VIRTUAL || region->range.address != at)
                        return CUDA_ERROR_INVALID_VALUE;
                at += region->range.size;
        }
        if (at != pointer + size || size == 0)
                return CUDA_ERROR_INVALID_VALUE;
        for (at = pointer; at < pointer + size && result == CUDA_SUCCESS;) {
                struct region *region = memory_find(at);

                at += region->range.size;
                result = each(region, data);
        }
        return result;
}

static CUresult unmap(struct region *region, const void *data)
{
        (void)data;
        memory_release(region);
        return CUDA_SUCCESS;
}

CUresult sim_cuMemUnmap(CUdeviceptr pointer, size_t size)
{
        PROCESS_LOCKED();

        return for_all_mappings(pointer, size, unmap, NULL);
}

/*
 * Is memory that was imported on a device that the process has now? Devices that are hidden from the
 * process (CUDA_VISIBLE_DEVICES) count as well, unless it was moved away from them.
 */
static bool is_reachable(const struct memory_file *file)
{
        bool is_left = false;

        for (int i = 0; i < process.n_devices; i++) {
                if (process.device[i].at == file->device)
                        return true;
                is_left |= process.device[i].home == file->device;
        }
        return !is_left;
}

struct access_list {
        const CUmemAccessDesc *access;
        size_t count;
};

static bool is_allowed(const struct memory_file *file, const CUmemAccessDesc *access)
{
        return access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || device_has_peers() ||
               process.device[access->location.id].at == file->device;
}

static CUresult set_access(struct region *region, const void *data)
{
        const struct access_list *list = data;
        struct mapping *mapping = region->mapping;
        uint32_t readers = mapping->readers, writers = mapping->writers;

        if (!is_reachable(mapping->file))
                return CUDA_ERROR_INVALID_DEVICE; /* measured, after a move */
        for (size_t i = 0; i < list->count; i++)
                if (!is_allowed(mapping->file, &list->access[i]))
                        return CUDA_ERROR_INVALID_DEVICE;
        for (size_t i = 0; i < list->count; i++) {
                uint32_t bit = 1u << list->access[i].location.id;

                readers &= ~bit;
                writers &= ~bit;
                if (list->access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
                        readers |= bit;
                if (list->access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                        writers |= bit;
        }
        return mapping_set_access(mapping, readers, writers);
}

static bool is_access(const CUmemAccessDesc *access)
{
        return access->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
               process_device(access->location.id) &&
               (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

CUresult sim_cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access,
                            size_t count)
{
        struct access_list list = { access, count };
        PROCESS_LOCKED();

        if (!access || count == 0)
                return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < count; i++)
                if (!is_access(&access[i]))
                        return CUDA_ERROR_INVALID_VALUE;
        return for_all_mappings(pointer, size, set_access, &list);
}

CUresult sim_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                            CUdeviceptr pointer)
{
        struct region *region;
        PROCESS_LOCKED();

        region = memory_find(pointer);
        if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
            !process_device(location->id) || !region || region->kind != REGION_VIRTUAL)
                return CUDA_ERROR_INVALID_VALUE;
        *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        if (region->mapping->readers & (1u << location->id))
                *flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
        if (region->mapping->writers & (1u << location->id))
                *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                          int type, unsigned long long flags)
{
        struct memory_file *file;
        CUresult result;
        PROCESS_LOCKED();
        int fd;

        file = find_handle(handle);
        if (!shareable || !file || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
            !(file->props.requestedHandleTypes & type))
                return CUDA_ERROR_INVALID_VALUE;
        result = memory_file_export(file, &fd);
        if (result == CUDA_SUCCESS)
                memcpy(shareable, &fd, sizeof(fd));
        return result;
}

/* The ordinal that memory on host device @at is said to be on: the one that was there at first. */
static int ordinal_of(int at)
{
        for (int i = 0; i < process.n_devices; i++)
                if (process.device[i].home == at)
                        return i;
        return 0;
}

CUresult sim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                            int type)
{
        int fd = (int)(intptr_t)shareable;
        struct memory_file *file;
        CUresult result;
        PROCESS_LOCKED();

        if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                return CUDA_ERROR_INVALID_VALUE;
        result = memory_file_import(&file, fd);
        if (result != CUDA_SUCCESS)
                return result;
        file->props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        file->props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        file->props.location.id = ordinal_of(file->device);
        return new_handle(handle, file);
}

CUresult sim_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer)
{
        struct region *region;
        PROCESS_LOCKED();

        region = memory_find((uint64_t)(uintptr_t)pointer);
        if (!handle || !region || region->kind != REGION_VIRTUAL)
                return CUDA_ERROR_INVALID_VALUE;
        return new_handle(handle, memory_file_ref(region->mapping->file));
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                    CUmemGenericAllocationHandle handle)
{
        struct memory_file *file;
        PROCESS_LOCKED();

        file = find_handle(handle);
        if (!prop || !file)
                return CUDA_ERROR_INVALID_VALUE;
        *prop = file->props;
        return CUDA_SUCCESS;
}
