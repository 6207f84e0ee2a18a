/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gate/entry.h"
#include "gate/fork-guard.h"
#include "gate/log.h"
#include "gate/peer.h"
#include "gate/physical.h"
#include "gate/quota.h"
#include "gate/range.h"
#include "gate/reservation.h"
#include "wire/gate.h"

/* Out of the range of the driver's own ids, which count from 1; a block has one for each granule. */
#define BUFFER_ID_FIRST ((uint64_t)1 << 62)

/* Address space costs nothing; more than this in use at once goes outside of the arena. */
#define ARENA_SIZE (RANGE_PAGES * BLOCK_SIZE)

static struct {
        pthread_once_t once;
        CUdeviceptr base;
        _Atomic CUdeviceptr end; /* set last: 0 until the others are there */
        CUdeviceptr lowest;      /* all below is taken */
} arena = { .once = PTHREAD_ONCE_INIT };

static struct {
        struct mapping **sorted;
        size_t n, room;
        _Atomic uint64_t next_buffer_id;
} table;

static CUresult failed(CUresult result, const char *call, const char **ret_call)
{
        log_write("%s failed: %d", call, result);
        *ret_call = call;
        return result;
}

static bool has_attribute(CUdevice device, CUdevice_attribute attribute)
{
        int value = 0;

        return DRIVER(cuDeviceGetAttribute)(&value, attribute, device) == CUDA_SUCCESS && value;
}

bool mapping_is_possible(CUdevice device)
{
        return device >= 0 && device < PEER_DEVICES_MAX &&
               has_attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
               has_attribute(device,
                             CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
}

static CUmemAllocationProp properties(CUdevice device)
{
        CUmemAllocationProp prop;

        memset(&prop, 0, sizeof(prop));
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = device;
        prop.allocFlags.gpuDirectRDMACapable =
                has_attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
        return prop;
}

static CUresult handle_create(CUmemGenericAllocationHandle *ret_handle,
                              const struct mapping *mapping)
{
        const struct physical *physical = mapping->physical;
        CUmemAllocationProp prop = physical ? physical->prop : properties(mapping->device);
        CUresult result = DRIVER(cuMemCreate)(ret_handle, mapping->size, &prop, 0);

        if (physical || result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY ||
            !prop.allocFlags.gpuDirectRDMACapable)
                return result;
        prop.allocFlags.gpuDirectRDMACapable = 0; /* a request, not a need */
        return DRIVER(cuMemCreate)(ret_handle, mapping->size, &prop, 0);
}

CUresult mapping_grant(const struct mapping *mapping)
{
        CUmemAccessDesc access[PEER_DEVICES_MAX];
        size_t n = peer_access(access, mapping->device, mapping->peers);

        return DRIVER(cuMemSetAccess)(mapping->address, mapping->size, access, n);
}

static CUresult put_at_address(struct mapping *mapping, CUmemGenericAllocationHandle handle,
                               const char **ret_call)
{
        const unsigned int on = 1;
        CUresult result;

        result = DRIVER(cuMemMap)(mapping->address, mapping->size, 0, handle, 0);
        if (result != CUDA_SUCCESS)
                return failed(result, "cuMemMap", ret_call);

        result = mapping_grant(mapping);
        if (result != CUDA_SUCCESS) {
                mapping->is_stuck =
                        DRIVER(cuMemUnmap)(mapping->address, mapping->size) != CUDA_SUCCESS;
                return failed(result, "cuMemSetAccess", ret_call);
        }
        if (mapping->sync_memops) /* the guest would rather go on without than not go on */
                (void)DRIVER(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                    mapping->address);
        return CUDA_SUCCESS;
}

static CUresult put_in_place(struct mapping *mapping, CUmemGenericAllocationHandle handle,
                             const char **ret_call)
{
        CUresult result = mapping->physical ? physical_map(mapping->physical, handle, ret_call)
                                            : put_at_address(mapping, handle, ret_call);

        if (result != CUDA_SUCCESS)
                return result;
        mapping->handle = handle;
        mapping->has_memory = true;
        mapping->buffer_id =
                BUFFER_ID_FIRST + atomic_fetch_add(&table.next_buffer_id, BLOCK_GRANULES);
        return CUDA_SUCCESS;
}

CUresult mapping_create(struct mapping *mapping, const char **ret_call)
{
        CUmemGenericAllocationHandle handle;
        CUresult result;

        result = handle_create(&handle, mapping);
        if (result != CUDA_SUCCESS)
                return failed(result, "cuMemCreate", ret_call);
        result = put_in_place(mapping, handle, ret_call);
        if (result != CUDA_SUCCESS)
                DRIVER(cuMemRelease)(handle);
        return result;
}

/*
 * Is its descriptor kept? So there are at most so many of them, and what is not kept needs no more
 * than that part of the device as room for its copy.
 */
#define KEPT_MAX 256

static bool is_kept(const struct mapping *mapping)
{
        size_t total = 0;

        if (atomic_load_explicit(&mapping->is_named, memory_order_relaxed))
                return true; /* it may be asked for while the application uses it */
        return DRIVER(cuDeviceTotalMem_v2)(&total, mapping->device) != CUDA_SUCCESS ||
               mapping->size >= total / KEPT_MAX;
}

bool mapping_is_plain(const struct mapping *mapping)
{
        return !mapping->physical && !mapping->is_registered &&
               !atomic_load_explicit(&mapping->is_named, memory_order_relaxed);
}

CUresult mapping_attach(struct mapping *mapping, int *fd, bool is_given, const char **ret_call)
{
        CUmemGenericAllocationHandle handle;
        CUresult result;

        /* The driver takes the number of the descriptor in place of a pointer. */
        result = DRIVER(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)*fd,
                                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (result != CUDA_SUCCESS)
                return failed(result, "cuMemImportFromShareableHandle", ret_call);
        result = put_in_place(mapping, handle, ret_call);
        if (result != CUDA_SUCCESS) {
                DRIVER(cuMemRelease)(handle);
                return result;
        }
        mapping->is_imported = true;
        if (is_given || is_kept(mapping)) {
                fork_guard_enter();
                mapping->imported_fd = TAKE_FD(*fd);
                fork_guard_leave();
        }
        return CUDA_SUCCESS;
}

/* From the mapping to @address, both mapped. */
static CUresult copy_to(const struct mapping *mapping, CUdeviceptr address, const char **ret_call)
{
        CUcontext context = mapping->context;
        CUresult result = CUDA_SUCCESS;

        if (!context)
                result = DRIVER(cuDevicePrimaryCtxRetain)(&context, mapping->device);
        if (result == CUDA_SUCCESS)
                result = DRIVER(cuCtxPushCurrent_v2)(context);
        if (result != CUDA_SUCCESS)
                return failed(result, "cuCtxPushCurrent", ret_call);
        result = DRIVER(cuMemcpyDtoD_v2)(address, mapping->address, mapping->size);
        if (result == CUDA_SUCCESS)
                result = DRIVER(cuCtxSynchronize)();
        DRIVER(cuCtxPopCurrent_v2)(&context);
        if (!mapping->context)
                (void)DRIVER(cuDevicePrimaryCtxRelease_v2)(mapping->device);
        return result == CUDA_SUCCESS ? result : failed(result, "cuMemcpyDtoD", ret_call);
}

/* The memory of @handle for a moment at @address, for the mapping's device. */
static CUresult map_for_copy(CUdeviceptr address, const struct mapping *mapping,
                             CUmemGenericAllocationHandle handle, const char **ret_call)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, mapping->device },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUresult result = DRIVER(cuMemMap)(address, mapping->size, 0, handle, 0);

        if (result != CUDA_SUCCESS)
                return failed(result, "cuMemMap", ret_call);
        result = DRIVER(cuMemSetAccess)(address, mapping->size, &access, 1);
        if (result == CUDA_SUCCESS)
                return result;
        (void)DRIVER(cuMemUnmap)(address, mapping->size);
        return failed(result, "cuMemSetAccess", ret_call);
}

/* What the application maps elsewhere is also mapped at its own address meanwhile. */
static CUresult copy_all(const struct mapping *mapping, CUdeviceptr address, const char **ret_call)
{
        CUresult result = CUDA_SUCCESS;

        if (mapping->physical)
                result = map_for_copy(mapping->address, mapping, mapping->handle, ret_call);
        if (result != CUDA_SUCCESS)
                return result;
        result = copy_to(mapping, address, ret_call);
        if (mapping->physical)
                (void)DRIVER(cuMemUnmap)(mapping->address, mapping->size);
        return result;
}

/* What the mapping has, into the memory of @handle, which is mapped for that only. */
static CUresult fill(const struct mapping *mapping, CUmemGenericAllocationHandle handle,
                     const char **ret_call)
{
        CUdeviceptr address;
        CUresult result;

        result = reservation_make(&address, mapping->size);
        if (result != CUDA_SUCCESS)
                return failed(result, "cuMemAddressReserve", ret_call);
        result = map_for_copy(address, mapping, handle, ret_call);
        if (result == CUDA_SUCCESS) {
                result = copy_all(mapping, address, ret_call);
                (void)DRIVER(cuMemUnmap)(address, mapping->size);
        }
        reservation_free(address, mapping->size);
        return result;
}

/* The memory of @handle in place of what was imported; or that again, when it fails. */
static CUresult exchange(struct mapping *mapping, CUmemGenericAllocationHandle handle,
                         const char **ret_call)
{
        CUmemGenericAllocationHandle imported = mapping->handle;
        const char *call;
        CUresult result = mapping_unmap(mapping, ret_call);

        if (result != CUDA_SUCCESS)
                return result;
        result = put_in_place(mapping, handle, ret_call);
        if (result != CUDA_SUCCESS) {
                (void)put_in_place(mapping, imported, &call);
                return result;
        }
        (void)DRIVER(cuMemRelease)(imported);
        mapping->is_imported = false;
        return CUDA_SUCCESS;
}

bool mapping_is_exportable(const struct mapping *mapping)
{
        return !mapping->is_imported || mapping->imported_fd >= 0;
}

CUresult mapping_make_own(struct mapping *mapping, const char **ret_call)
{
        CUmemGenericAllocationHandle handle;
        CUresult result;

        if (mapping_is_exportable(mapping))
                return CUDA_SUCCESS;
        result = handle_create(&handle, mapping);
        if (result != CUDA_SUCCESS)
                return failed(result, "cuMemCreate", ret_call);
        result = fill(mapping, handle, ret_call);
        if (result == CUDA_SUCCESS)
                result = exchange(mapping, handle, ret_call);
        if (result != CUDA_SUCCESS)
                (void)DRIVER(cuMemRelease)(handle);
        return result;
}

CUresult mapping_export(const struct mapping *mapping, int *ret_fd, const char **ret_call)
{
        CUresult result;
        int fd;

        if (mapping->imported_fd >= 0) {
                fd = fcntl(mapping->imported_fd, F_DUPFD_CLOEXEC, 0);
                if (fd < 0)
                        return failed(CUDA_ERROR_OPERATING_SYSTEM, "dup", ret_call);
                *ret_fd = fd;
                return CUDA_SUCCESS;
        }
        result = DRIVER(cuMemExportToShareableHandle)(&fd, mapping->handle,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        if (result != CUDA_SUCCESS)
                return failed(result, "cuMemExportToShareableHandle", ret_call);
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        *ret_fd = fd;
        return CUDA_SUCCESS;
}

CUresult mapping_unmap(struct mapping *mapping, const char **ret_call)
{
        CUresult result = mapping->physical
                                  ? physical_unmap(mapping->physical, mapping->handle, ret_call)
                                  : DRIVER(cuMemUnmap)(mapping->address, mapping->size);

        if (result != CUDA_SUCCESS)
                return mapping->physical ? result : failed(result, "cuMemUnmap", ret_call);
        mapping->has_memory = false;
        return CUDA_SUCCESS;
}

CUresult mapping_map_again(struct mapping *mapping, const char **ret_call)
{
        return put_in_place(mapping, mapping->handle, ret_call);
}

void mapping_release(struct mapping *mapping)
{
        CUresult result = DRIVER(cuMemRelease)(mapping->handle);

        /* It cannot be undone any more; the memory is lost to the device until the process ends. */
        if (result != CUDA_SUCCESS)
                log_write("cuMemRelease failed: %d", result);
        mapping->handle = 0;
        mapping->is_imported = false;
        if (mapping->imported_fd < 0)
                return;
        fork_guard_enter();
        mapping->imported_fd = fd_close(mapping->imported_fd);
        fork_guard_leave();
}

struct mapping *mapping_new(CUcontext context, CUdevice device, uint64_t size)
{
        struct mapping *mapping = calloc(1, sizeof(*mapping));

        if (!mapping || quota_charge(device, INSTANCE_PAGE_MOVABLE, size) < 0) {
                free(mapping);
                return NULL;
        }
        mapping->context = context;
        mapping->device = device;
        mapping->size = size;
        mapping->imported_fd = -1;
        return mapping;
}

void mapping_free(struct mapping *mapping)
{
        if (!mapping)
                return;
        quota_refund(mapping->device,
                     mapping->is_pinned ? INSTANCE_PAGE_FIXED : INSTANCE_PAGE_MOVABLE,
                     mapping->size);
        if (mapping->is_registered)
                quota_count_holds(GATE_HOLDS_REGISTERED, -1);
        free(mapping->block);
        free(mapping);
}

static void arena_reserve(void)
{
        CUdeviceptr base;

        reservation_hold(); /* nor does the arena become ours behind somebody's check */
        if (DRIVER(cuMemAddressReserve)(&base, ARENA_SIZE, 0, 0, 0) == CUDA_SUCCESS) {
                arena.lowest = arena.base = base;
                range_open(base);
                arena.end = base + ARENA_SIZE;
        }
        reservation_let_go();
}

void mapping_arena_open(void)
{
        pthread_once(&arena.once, arena_reserve);
}

bool mapping_arena_overlaps(CUdeviceptr address, uint64_t size)
{
        return address < atomic_load(&arena.end) && address + size > arena.base;
}

/* Where @address is or would be: the first mapping that ends behind it. */
static size_t position(CUdeviceptr address)
{
        size_t low = 0, high = table.n;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (table.sorted[middle]->address + table.sorted[middle]->size <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int table_grow(void)
{
        size_t room = table.room ? 2 * table.room : 64;
        struct mapping **sorted = realloc(table.sorted, room * sizeof(struct mapping *));

        if (!sorted)
                return -ENOMEM;
        table.sorted = sorted;
        table.room = room;
        return 0;
}

static int insert_at(size_t at, struct mapping *mapping)
{
        if (table.n == table.room && table_grow() < 0)
                return -ENOMEM;
        memmove(&table.sorted[at + 1], &table.sorted[at],
                (table.n - at) * sizeof(struct mapping *));
        table.sorted[at] = mapping;
        table.n++;
        return 0;
}

int mapping_table_insert(struct mapping *mapping)
{
        return insert_at(position(mapping->address), mapping);
}

int mapping_table_place(struct mapping *mapping)
{
        CUdeviceptr address = arena.lowest, end;
        size_t at = position(address);
        int r;

        /* Past one after the other, until one begins far enough behind the last one's end. */
        for (; at < table.n && table.sorted[at]->address < address + mapping->size; at++)
                address = table.sorted[at]->address + table.sorted[at]->size;
        end = atomic_load(&arena.end);
        if (address < arena.base || address > end || end - address < mapping->size)
                return -ENOMEM; /* behind the arena are others' addresses */
        mapping->address = address;
        r = insert_at(at, mapping);
        if (r == 0 && address == arena.lowest)
                arena.lowest += mapping->size;
        return r;
}

void mapping_table_remove(const struct mapping *mapping)
{
        size_t at = position(mapping->address);

        if (!mapping->is_outside && mapping->address < arena.lowest)
                arena.lowest = mapping->address;
        table.n--;
        memmove(&table.sorted[at], &table.sorted[at + 1],
                (table.n - at) * sizeof(struct mapping *));
}

struct mapping *mapping_table_find_from(CUdeviceptr address)
{
        return mapping_table_get(position(address));
}

struct mapping *mapping_table_find(CUdeviceptr address)
{
        struct mapping *mapping = mapping_table_find_from(address);

        return mapping && mapping->address <= address ? mapping : NULL;
}

struct mapping *mapping_table_get(size_t at)
{
        return at < table.n ? table.sorted[at] : NULL;
}

void mapping_table_clear(void)
{
        for (size_t i = 0; i < table.n; i++)
                fd_close(table.sorted[i]->imported_fd);
        table.n = 0;
}
