/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual-memory calls as the application makes them. What it creates is charged and left to
 * the driver's own checkpoint; what it imports is not charged, but noted, because the driver cannot
 * restore a process that holds it.
 *
 * Physical memory lives as long as a handle or a mapping of it does, so both are counted. Our own
 * mappings must look like ordinary memory, of which the driver refuses to unmap or retain anything.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gate/entry.h"
#include "gate/hash.h"
#include "gate/hook.h"
#include "gate/memory.h"
#include "gate/quota.h"
#include "wire/gate.h"

struct physical {
        struct hash_node by_handle; /* first */
        uint64_t bytes;             /* charged */
        uint32_t n_handles, n_mappings;
        bool is_imported;
};

struct view {                        /* a mapping of the application's */
        struct hash_node by_address; /* first */
        uint64_t size;
        struct physical *physical;
        struct view *next; /* while being unmapped */
};

static struct {
        pthread_mutex_t lock;
        struct hash physicals, views;
} vmm = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct physical *find_locked(CUmemGenericAllocationHandle handle)
{
        return (struct physical *)hash_find(&vmm.physicals, handle);
}

/* Without handle and mapping it is gone. */
static void settle_locked(struct physical *physical)
{
        if (physical->n_handles > 0 || physical->n_mappings > 0)
                return;
        if (physical->is_imported)
                quota_count_holds(GATE_HOLDS_IMPORTED, -1);
        quota_refund(INSTANCE_PAGE_FIXED, physical->bytes);
        quota_count_allocations(-1);
        free(physical);
}

static struct physical *physical_new(uint64_t bytes)
{
        struct physical *physical = calloc(1, sizeof(*physical));

        if (!physical || quota_charge(INSTANCE_PAGE_FIXED, bytes) < 0) {
                free(physical);
                return NULL;
        }
        physical->bytes = bytes;
        return physical;
}

static CUresult physical_keep(struct physical *physical, CUresult result,
                              CUmemGenericAllocationHandle handle)
{
        if (result != CUDA_SUCCESS) {
                quota_refund(INSTANCE_PAGE_FIXED, physical->bytes);
                free(physical);
                return result;
        }
        pthread_mutex_lock(&vmm.lock);
        physical->n_handles = 1;
        hash_add(&vmm.physicals, &physical->by_handle, handle);
        if (physical->is_imported)
                quota_count_holds(GATE_HOLDS_IMPORTED, 1);
        pthread_mutex_unlock(&vmm.lock);
        quota_count_allocations(1);
        return CUDA_SUCCESS;
}

CUresult our_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
        struct physical *physical;
        CUresult result;

        if (!handle || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return DRIVER(cuMemCreate)(handle, size, prop, flags);
        physical = physical_new(size);
        if (!physical)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuMemCreate)(handle, size, prop, flags);
        return physical_keep(physical, result, *handle);
}

CUresult our_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                            int type)
{
        struct physical *physical;
        CUresult result;

        if (!handle)
                return DRIVER(cuMemImportFromShareableHandle)(handle, shareable, type);
        physical = physical_new(0);
        if (!physical)
                return CUDA_ERROR_OUT_OF_MEMORY;
        physical->is_imported = true;
        result = DRIVER(cuMemImportFromShareableHandle)(handle, shareable, type);
        return physical_keep(physical, result, *handle);
}

/* Out of the table while the driver is asked: it may give the same handle to another thread. */
static struct physical *last_handle_take(CUmemGenericAllocationHandle handle)
{
        struct physical *physical;

        pthread_mutex_lock(&vmm.lock);
        physical = find_locked(handle);
        if (physical && physical->n_handles == 1)
                hash_remove(&vmm.physicals, &physical->by_handle);
        pthread_mutex_unlock(&vmm.lock);
        return physical;
}

CUresult our_cuMemRelease(CUmemGenericAllocationHandle handle)
{
        struct physical *physical = last_handle_take(handle);
        CUresult result = DRIVER(cuMemRelease)(handle);

        if (!physical)
                return result;
        pthread_mutex_lock(&vmm.lock);
        if (result == CUDA_SUCCESS) {
                physical->n_handles--;
                settle_locked(physical);
        } else if (physical->n_handles == 1) {
                hash_add(&vmm.physicals, &physical->by_handle, handle);
        }
        pthread_mutex_unlock(&vmm.lock);
        return result;
}

CUresult our_cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        struct view *view = calloc(1, sizeof(*view));
        CUresult result;

        if (!view)
                return CUDA_ERROR_OUT_OF_MEMORY;
        pthread_mutex_lock(&vmm.lock);
        view->size = size;
        view->physical = find_locked(handle);
        if (view->physical)
                view->physical->n_mappings++;
        pthread_mutex_unlock(&vmm.lock);

        result = DRIVER(cuMemMap)(pointer, size, offset, handle, flags);

        pthread_mutex_lock(&vmm.lock);
        if (result == CUDA_SUCCESS && view->physical) {
                hash_add(&vmm.views, &view->by_address, pointer);
                view = NULL;
        } else if (view->physical) {
                view->physical->n_mappings--;
                settle_locked(view->physical);
        }
        pthread_mutex_unlock(&vmm.lock);
        free(view);
        return result;
}

/* A call may unmap several mappings that lie side by side. */
static struct view *views_take(CUdeviceptr pointer, size_t size)
{
        struct view *taken = NULL;
        CUdeviceptr at = pointer;

        pthread_mutex_lock(&vmm.lock);
        while (at < pointer + size) {
                struct view *view = (struct view *)hash_find(&vmm.views, at);

                if (!view)
                        break;
                hash_remove(&vmm.views, &view->by_address);
                view->next = taken;
                taken = view;
                at += view->size;
        }
        pthread_mutex_unlock(&vmm.lock);
        return taken;
}

static void views_settle(struct view *views, CUresult result)
{
        pthread_mutex_lock(&vmm.lock);
        while (views) {
                struct view *view = views;

                views = view->next;
                if (result != CUDA_SUCCESS) {
                        hash_add(&vmm.views, &view->by_address, view->by_address.key);
                        continue;
                }
                view->physical->n_mappings--;
                settle_locked(view->physical);
                free(view);
        }
        pthread_mutex_unlock(&vmm.lock);
}

CUresult our_cuMemUnmap(CUdeviceptr pointer, size_t size)
{
        struct view *views;
        CUresult result;

        if (memory_overlaps(pointer, size))
                return CUDA_ERROR_INVALID_VALUE;
        views = views_take(pointer, size);
        result = DRIVER(cuMemUnmap)(pointer, size);
        views_settle(views, result);
        return result;
}

static struct physical *find_behind(CUdeviceptr address)
{
        for (size_t i = 0; i < HASH_CHAINS; i++)
                for (struct hash_node *node = vmm.views.chain[i]; node; node = node->next)
                        if (address - node->key < ((struct view *)node)->size)
                                return ((struct view *)node)->physical;
        return NULL;
}

/* One more handle; possibly the only one, when the application released its own after mapping. */
static void retained(CUmemGenericAllocationHandle handle, CUdeviceptr address)
{
        struct physical *physical;

        pthread_mutex_lock(&vmm.lock);
        physical = find_locked(handle);
        if (!physical) {
                physical = find_behind(address);
                if (physical && physical->n_handles == 0)
                        hash_add(&vmm.physicals, &physical->by_handle, handle);
                else
                        physical = NULL; /* an alias: its release is not ours to count */
        }
        if (physical)
                physical->n_handles++;
        pthread_mutex_unlock(&vmm.lock);
}

CUresult our_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer)
{
        CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer;
        CUresult result;

        if (memory_overlaps(address, 1))
                return CUDA_ERROR_INVALID_VALUE;
        result = DRIVER(cuMemRetainAllocationHandle)(handle, pointer);
        if (result == CUDA_SUCCESS)
                retained(*handle, address);
        return result;
}

CUresult our_cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
        return memory_overlaps(pointer, size) ? CUDA_ERROR_INVALID_VALUE
                                              : DRIVER(cuMemAddressFree)(pointer, size);
}

CUresult our_cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access,
                            size_t count)
{
        return memory_overlaps(pointer, size)
                       ? CUDA_ERROR_INVALID_VALUE
                       : DRIVER(cuMemSetAccess)(pointer, size, access, count);
}

void hook_forget(void)
{
        pthread_mutex_init(&vmm.lock, NULL);
        memset(&vmm.physicals, 0, sizeof(vmm.physicals));
        memset(&vmm.views, 0, sizeof(vmm.views));
}
