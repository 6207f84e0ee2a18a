/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual-memory calls as the application makes them. What it creates is charged and left to
 * the driver's own checkpoint; what it imports is not charged, but noted, because the driver cannot
 * restore a process that holds it.
 *
 * Physical memory lives as long as a handle or a mapping of it does, so both are counted; it may have
 * several handles, with one number or with more. Our own
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
        uint64_t bytes;   /* charged */
        uint32_t n_users; /* handles, mappings, and calls that may become one or were one */
        uint32_t holds;   /* GATE_HOLDS_* */
};

struct handle {                     /* a number that the driver gave out */
        struct hash_node by_number; /* first */
        uint32_t n;                 /* so many releases are left */
        struct physical *physical;
};

struct view {                        /* a mapping of the application's */
        struct hash_node by_address; /* first */
        uint64_t size;
        struct physical *physical;
        struct view *next; /* while being unmapped */
};

static struct {
        pthread_mutex_t lock;
        struct hash handles, views;
} vmm = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct handle *find_locked(CUmemGenericAllocationHandle number)
{
        return (struct handle *)hash_find(&vmm.handles, number);
}

/* One user fewer; without any it is gone. */
static void drop_locked(struct physical *physical)
{
        if (--physical->n_users > 0)
                return;
        quota_count_holds(physical->holds, -1);
        quota_refund(INSTANCE_PAGE_FIXED, physical->bytes);
        quota_count_allocations(-1);
        free(physical);
}

/* One more release to come of the handle with this number; @spare is used for it, or freed. */
static void add_locked(struct handle *spare, CUmemGenericAllocationHandle number,
                       struct physical *physical)
{
        struct handle *handle = find_locked(number);

        if (handle) {
                free(spare);
        } else {
                handle = spare ? spare : calloc(1, sizeof(*handle));
                if (!handle)
                        return; /* the memory stays charged */
                handle->n = 0;
                handle->physical = physical;
                hash_add(&vmm.handles, &handle->by_number, number);
        }
        handle->n++;
}

/* Before the driver makes a handle; NULL: over the quota, or malloc() failed. */
static struct handle *handle_new(uint64_t bytes)
{
        struct physical *physical = calloc(1, sizeof(*physical));
        struct handle *handle = calloc(1, sizeof(*handle));

        if (!physical || !handle || quota_charge(INSTANCE_PAGE_FIXED, bytes) < 0) {
                free(physical);
                free(handle);
                return NULL;
        }
        physical->bytes = bytes;
        physical->n_users = 1;
        handle->physical = physical;
        return handle;
}

static CUresult handle_keep(struct handle *handle, CUresult result,
                            const CUmemGenericAllocationHandle *number)
{
        struct physical *physical = handle->physical;

        quota_settle(physical->bytes);
        if (result != CUDA_SUCCESS) {
                quota_refund(INSTANCE_PAGE_FIXED, physical->bytes);
                free(physical);
                free(handle);
                return result;
        }
        pthread_mutex_lock(&vmm.lock);
        add_locked(handle, *number, physical);
        quota_count_holds(physical->holds, 1);
        pthread_mutex_unlock(&vmm.lock);
        quota_count_allocations(1);
        return CUDA_SUCCESS;
}

CUresult our_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
        struct handle *ours;
        CUresult result;

        if (!handle || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return DRIVER(cuMemCreate)(handle, size, prop, flags);
        ours = handle_new(size);
        if (!ours)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = DRIVER(cuMemCreate)(handle, size, prop, flags);
        return handle_keep(ours, result, handle);
}

CUresult our_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                            int type)
{
        struct handle *ours;
        CUresult result;

        if (!handle)
                return DRIVER(cuMemImportFromShareableHandle)(handle, shareable, type);
        ours = handle_new(0);
        if (!ours)
                return CUDA_ERROR_OUT_OF_MEMORY;
        ours->physical->holds = GATE_HOLDS_IMPORTED;
        result = DRIVER(cuMemImportFromShareableHandle)(handle, shareable, type);
        return handle_keep(ours, result, handle);
}

/*
 * Counted before the driver is asked: after its answer, it may give the same number to another thread.
 * Whose memory it is; NULL: not ours to count. @ret_spare is the handle that is gone, or NULL.
 */
static struct physical *release_begin(CUmemGenericAllocationHandle number,
                                      struct handle **ret_spare)
{
        struct physical *physical = NULL;
        struct handle *handle;

        *ret_spare = NULL;
        pthread_mutex_lock(&vmm.lock);
        handle = find_locked(number);
        if (handle) {
                physical = handle->physical; /* stays its user until the driver has answered */
                if (--handle->n == 0) {
                        hash_remove(&vmm.handles, &handle->by_number);
                        *ret_spare = handle;
                }
        }
        pthread_mutex_unlock(&vmm.lock);
        return physical;
}

CUresult our_cuMemRelease(CUmemGenericAllocationHandle handle)
{
        struct handle *spare;
        struct physical *physical = release_begin(handle, &spare);
        CUresult result = DRIVER(cuMemRelease)(handle);

        if (!physical)
                return result;
        pthread_mutex_lock(&vmm.lock);
        if (result == CUDA_SUCCESS) {
                drop_locked(physical);
                free(spare);
        } else {
                add_locked(spare, handle, physical);
        }
        pthread_mutex_unlock(&vmm.lock);
        return result;
}

CUresult our_cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        struct view *view = calloc(1, sizeof(*view));
        struct handle *ours;
        CUresult result;

        if (!view)
                return CUDA_ERROR_OUT_OF_MEMORY;
        pthread_mutex_lock(&vmm.lock);
        view->size = size;
        ours = find_locked(handle);
        if (ours) {
                view->physical = ours->physical;
                view->physical->n_users++;
        }
        pthread_mutex_unlock(&vmm.lock);

        result = DRIVER(cuMemMap)(pointer, size, offset, handle, flags);

        pthread_mutex_lock(&vmm.lock);
        if (result == CUDA_SUCCESS && view->physical) {
                hash_add(&vmm.views, &view->by_address, pointer);
                view = NULL;
        } else if (view->physical) {
                drop_locked(view->physical);
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
                drop_locked(view->physical);
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

CUresult our_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer)
{
        CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer;
        struct physical *physical;
        struct handle *spare;
        CUresult result;

        if (memory_overlaps(address, 1))
                return CUDA_ERROR_INVALID_VALUE;
        spare = calloc(1, sizeof(*spare));
        if (!spare)
                return CUDA_ERROR_OUT_OF_MEMORY;
        pthread_mutex_lock(&vmm.lock);
        physical = find_behind(address);
        if (physical)
                physical->n_users++; /* for the handle to come */
        pthread_mutex_unlock(&vmm.lock);

        result = DRIVER(cuMemRetainAllocationHandle)(handle, pointer);

        pthread_mutex_lock(&vmm.lock);
        if (physical && result == CUDA_SUCCESS) {
                add_locked(spare, *handle, physical);
                spare = NULL;
        } else if (physical) {
                drop_locked(physical);
        }
        pthread_mutex_unlock(&vmm.lock);
        free(spare);
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

static void register_locked(struct physical *physical)
{
        if (!(physical->holds & GATE_HOLDS_REGISTERED))
                quota_count_holds(GATE_HOLDS_REGISTERED, 1);
        physical->holds |= GATE_HOLDS_REGISTERED;
}

bool hook_register_view(CUdeviceptr address, uint64_t size)
{
        bool any = false;

        pthread_mutex_lock(&vmm.lock);
        for (size_t i = 0; i < HASH_CHAINS; i++)
                for (struct hash_node *node = vmm.views.chain[i]; node; node = node->next) {
                        struct view *view = (struct view *)node;

                        if (node->key >= address + size || node->key + view->size <= address)
                                continue;
                        register_locked(view->physical);
                        any = true;
                }
        pthread_mutex_unlock(&vmm.lock);
        return any;
}

void hook_forget(void)
{
        pthread_mutex_init(&vmm.lock, NULL);
        memset(&vmm.handles, 0, sizeof(vmm.handles));
        memset(&vmm.views, 0, sizeof(vmm.views));
}
