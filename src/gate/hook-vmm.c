/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual-memory calls as the application makes them; what is behind its handles is in vmm.h.
 *
 * Memory that can be exported as a descriptor is ours to move: what the application gets when it
 * exports it is a ticket (ticket.h). Other memory is charged and left to the driver's own
 * checkpoint. What comes from a process without a gate is noted, because the driver cannot restore
 * a process that holds it.
 *
 * Our own mappings, and those of legacy IPC, must look like ordinary memory, of which the driver refuses
 * to unmap or retain anything. A handle of the driver's for what we have imported would be a reference
 * that nobody lets go of before the driver's checkpoint.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gate/entry.h"
#include "gate/hook.h"
#include "gate/import.h"
#include "gate/log.h"
#include "gate/mapping.h"
#include "gate/memory.h"
#include "gate/offer-name.h"
#include "gate/offer.h"
#include "gate/patience.h"
#include "gate/quota.h"
#include "gate/reservation.h"
#include "gate/settings.h"
#include "gate/ticket.h"
#include "gate/visible.h"
#include "gate/vmm.h"
#include "wire/gate.h"

/* Memory with the driver's number. */

/* Before the driver makes a handle; NULL: over the quota, or malloc() failed. */
static struct physical *native_new(CUdevice device, uint64_t bytes, uint32_t holds)
{
        struct physical *physical = vmm_new();

        if (!physical || quota_charge(device, INSTANCE_PAGE_FIXED, bytes) < 0) {
                free(physical);
                return NULL;
        }
        physical->bytes = bytes;
        physical->holds = holds;
        physical->device = device;
        return physical;
}

static CUresult native_keep(struct physical *physical, CUresult result,
                            CUmemGenericAllocationHandle *number)
{
        quota_settle(physical->device, physical->bytes);
        if (result != CUDA_SUCCESS) {
                quota_refund(physical->device, INSTANCE_PAGE_FIXED, physical->bytes);
                free(physical);
                return result;
        }
        quota_count_holds(physical->holds, 1);
        quota_count_allocations(1);
        if (vmm_add_handle(physical, number) == 0)
                return CUDA_SUCCESS;
        (void)DRIVER(cuMemRelease)(*number);
        vmm_drop(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
}

/* A number of ours for what has come with one user, the caller. */
static CUresult give_number(struct physical *physical, CUmemGenericAllocationHandle *ret_number)
{
        CUmemGenericAllocationHandle number = 0;

        if (vmm_add_handle(physical, &number) < 0) {
                vmm_drop(physical);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *ret_number = number;
        return CUDA_SUCCESS;
}

/* What can be exported otherwise, or has a use (sparse arrays), is the driver's. */
static bool is_movable(const CUmemAllocationProp *prop, size_t size, unsigned long long flags)
{
        struct gate_ticket ticket;

        return !settings.is_native && flags == 0 && size > 0 && size % BLOCK_SIZE == 0 &&
               prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
               (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
                (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                 prop->allocFlags.usage == 0)) &&
               mapping_is_possible(prop->location.id) && ticket_identify(&ticket);
}

static CUresult create_movable(CUmemGenericAllocationHandle *ret_number, size_t size,
                               const CUmemAllocationProp *prop)
{
        struct physical *physical = vmm_new();
        CUresult result;

        if (!physical)
                return CUDA_ERROR_OUT_OF_MEMORY;
        physical->prop = *prop;
        physical->is_private = prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE;
        physical->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        result = memory_create_physical(physical, prop->location.id, size);
        if (result != CUDA_SUCCESS) {
                free(physical);
                return result;
        }
        quota_count_allocations(1);
        vmm_track(physical);
        return give_number(physical, ret_number);
}

/*
 * Who imported it could not be restored, and taking it away for that long, as with memory of a device, is out of the
 * question: processors write to it at any time. Containers that may not choose a NUMA node have none either; so
 * NCCL tries whether there is any, and shares memory by files if not.
 */
static bool is_shared_host_memory(const CUmemAllocationProp *prop)
{
        return prop && prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
               prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE && settings.is_in_vgpu &&
               !settings.is_native;
}

/* What pools hold idle goes before the charge or the driver refuses. */
static struct physical *native_new_of_idle(CUdevice device, uint64_t bytes, unsigned int *n_tries)
{
        struct physical *physical;

        do
                physical = native_new(device, bytes, 0);
        while (!physical && memory_make_room(device, bytes, n_tries));
        return physical;
}

static CUresult create_native(CUmemGenericAllocationHandle *handle, size_t size,
                              const CUmemAllocationProp *prop, unsigned long long flags)
{
        struct quota_want want = { .device = prop->location.id, .bytes = size, .is_charged = true };
        unsigned int n_tries = 0;
        struct physical *physical = native_new_of_idle(want.device, size, &n_tries);
        CUresult result;

        if (!physical)
                return CUDA_ERROR_OUT_OF_MEMORY;
        do
                result = DRIVER(cuMemCreate)(handle, size, prop, flags);
        while (result == CUDA_ERROR_OUT_OF_MEMORY &&
               (memory_make_room(want.device, 0, &n_tries) || quota_wait_for_room(&want)));
        quota_end_wait(&want);
        return native_keep(physical, result, handle);
}

CUresult our_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
        if (is_shared_host_memory(prop)) {
                log_write("host memory that is made to be exported: refused, as nobody who imports "
                          "it could be suspended; OPENVGPU_NATIVE_IPC=1 allows it");
                return CUDA_ERROR_NOT_SUPPORTED;
        }
        if (!handle || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return DRIVER(cuMemCreate)(handle, size, prop, flags);
        if (!visible_has(prop->location.id))
                return CUDA_ERROR_INVALID_DEVICE;
        if (is_movable(prop, size, flags))
                return create_movable(handle, size, prop);
        return create_native(handle, size, prop, flags);
}

/* Export and import. */

static CUresult export_ticket(int *ret_fd, const struct physical *physical)
{
        struct gate_ticket ticket;
        int fd = -1;

        if (ticket_identify(&ticket) && offer_name(physical->mapping, ticket.name) == 0) {
                ticket.size = physical->mapping->size;
                fd = ticket_to_fd(&ticket);
        }
        if (fd < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        *ret_fd = fd;
        return CUDA_SUCCESS;
}

static CUresult export(void *shareable, struct physical *physical,
                       CUmemGenericAllocationHandle number, int type, unsigned long long flags)
{
        CUresult result;
        int fd;

        if (physical->is_private)
                return CUDA_ERROR_INVALID_VALUE;
        if (!physical->mapping || !shareable || flags ||
            type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
                result = DRIVER(cuMemExportToShareableHandle)(shareable, vmm_real(physical, number),
                                                              type, flags);
                if (result == CUDA_SUCCESS)
                        vmm_hold(physical, type == CU_MEM_HANDLE_TYPE_FABRIC ? GATE_HOLDS_FABRIC
                                                                             : GATE_HOLDS_EXPORTED);
                return result;
        }
        result = export_ticket(&fd, physical);
        if (result == CUDA_SUCCESS)
                memcpy(shareable, &fd, sizeof(fd));
        return result;
}

CUresult our_cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                          int type, unsigned long long flags)
{
        struct physical *physical = vmm_find_handle(handle);
        CUresult result;

        if (!physical)
                return vmm_is_ours(handle) ? CUDA_ERROR_INVALID_VALUE
                                           : DRIVER(cuMemExportToShareableHandle)(shareable, handle,
                                                                                  type, flags);
        result = export(shareable, physical, handle, type, flags);
        vmm_drop(physical);
        return result;
}

static CUresult import_ticket(CUmemGenericAllocationHandle *ret_number,
                              const struct gate_ticket *ticket)
{
        struct physical *physical;
        CUresult result;

        if (ticket->offset != 0) /* of legacy IPC */
                return CUDA_ERROR_INVALID_VALUE;
        if (ticket_is_own(ticket)) {
                physical = vmm_find_named(ticket->name);
                return physical ? give_number(physical, ret_number) : CUDA_ERROR_INVALID_VALUE;
        }
        result = import_open(&physical, ticket);
        return result == CUDA_SUCCESS ? give_number(physical, ret_number) : result;
}

CUresult our_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                            int type)
{
        const uint32_t holds =
                type == CU_MEM_HANDLE_TYPE_FABRIC ? GATE_HOLDS_FABRIC : GATE_HOLDS_IMPORTED;
        struct physical *physical;
        struct gate_ticket ticket;

        if (!handle)
                return DRIVER(cuMemImportFromShareableHandle)(handle, shareable, type);
        if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
            ticket_from_fd(&ticket, (int)(intptr_t)shareable))
                return import_ticket(handle, &ticket);
        physical = native_new(0, 0, holds);
        if (!physical)
                return CUDA_ERROR_OUT_OF_MEMORY;
        return native_keep(physical,
                           DRIVER(cuMemImportFromShareableHandle)(handle, shareable, type), handle);
}

/* Handles. */

/*
 * Counted before the driver is asked: after its answer, it may give the same number to another
 * thread.
 */
CUresult our_cuMemRelease(CUmemGenericAllocationHandle handle)
{
        struct physical *physical = vmm_take_handle(handle);
        CUresult result = CUDA_SUCCESS;

        if (!physical && vmm_is_ours(handle))
                return CUDA_ERROR_INVALID_VALUE;
        if (!physical || !physical->number)
                result = DRIVER(cuMemRelease)(handle);
        if (physical && result == CUDA_SUCCESS)
                vmm_drop(physical);
        else if (physical)
                (void)vmm_add_handle(physical, &handle); /* else the memory stays charged */
        return result;
}

CUresult our_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                    CUmemGenericAllocationHandle handle)
{
        struct physical *physical = vmm_find_handle(handle);
        CUresult result;

        if (!physical && vmm_is_ours(handle))
                return CUDA_ERROR_INVALID_VALUE;
        result = DRIVER(cuMemGetAllocationPropertiesFromHandle)(prop, vmm_real(physical, handle));
        if (result == CUDA_SUCCESS && physical && physical->is_private)
                prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
        if (physical)
                vmm_drop(physical);
        return result;
}

/*
 * While the reservations are held. The arena stays ours: where nothing is now, another thread may have an
 * allocation in a moment.
 */
static bool looks_ordinary(CUdeviceptr address, uint64_t size)
{
        return mapping_arena_overlaps(address, size) || reservation_overlaps(address, size);
}

bool hook_looks_ordinary(CUdeviceptr address)
{
        bool is_so;

        reservation_hold();
        is_so = looks_ordinary(address, 1);
        reservation_let_go();
        return is_so;
}

/* The driver is not asked for a handle of what has a number of the gate's. */
static CUresult retain(CUmemGenericAllocationHandle *handle, void *pointer,
                       struct physical **ret_physical)
{
        CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer;
        CUresult result = CUDA_ERROR_INVALID_VALUE;

        reservation_hold();
        if (!looks_ordinary(address, 1)) {
                *ret_physical = handle ? vmm_find_behind(address) : NULL;
                result = *ret_physical && (*ret_physical)->number
                                 ? CUDA_SUCCESS
                                 : DRIVER(cuMemRetainAllocationHandle)(handle, pointer);
        }
        reservation_let_go();
        return result;
}

CUresult our_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer)
{
        struct physical *physical = NULL;
        CUresult result = retain(handle, pointer, &physical);

        if (physical && physical->number)
                return give_number(physical, handle);
        if (physical && (result != CUDA_SUCCESS || vmm_add_handle(physical, handle) < 0))
                vmm_drop(physical);
        return result;
}

/* Places. The driver takes memory for page tables. */

CUresult our_cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        struct physical *physical = vmm_find_handle(handle);
        CLEANUP(freep) struct view *view = calloc(1, sizeof(*view));
        struct patience patience = PATIENCE(cuMemMap);
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

        if (!physical && vmm_is_ours(handle))
                return CUDA_ERROR_INVALID_VALUE;
        if (view)
                do /* which may be another one when we have been away */
                        result = DRIVER(cuMemMap)(pointer, size, offset, vmm_real(physical, handle),
                                                  flags);
                while (patience_again(&patience, result));
        if (physical && result == CUDA_SUCCESS) {
                view->size = size;
                view->offset = offset;
                vmm_add_view(TAKE(view), pointer, physical);
        } else if (physical) {
                vmm_drop(physical);
        }
        return result;
}

CUresult our_cuMemUnmap(CUdeviceptr pointer, size_t size)
{
        CUresult result = CUDA_ERROR_INVALID_VALUE;
        struct view *views = NULL;

        reservation_hold();
        if (!looks_ordinary(pointer, size)) {
                views = vmm_take_views(pointer, size);
                result = DRIVER(cuMemUnmap)(pointer, size);
        }
        reservation_let_go();
        vmm_settle_views(views, result); /* which may free a reservation */
        return result;
}

CUresult our_cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
        CUresult result = CUDA_ERROR_INVALID_VALUE;

        reservation_hold();
        if (!looks_ordinary(pointer, size))
                result = DRIVER(cuMemAddressFree)(pointer, size);
        reservation_let_go();
        return result;
}

static CUresult set_access(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access,
                           size_t count)
{
        CUresult result = CUDA_ERROR_INVALID_VALUE;

        reservation_hold();
        if (!looks_ordinary(pointer, size))
                result = visible_has_access(access, count)
                                 ? DRIVER(cuMemSetAccess)(pointer, size, access, count)
                                 : CUDA_ERROR_INVALID_DEVICE;
        reservation_let_go();
        return result;
}

CUresult our_cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access,
                            size_t count)
{
        struct patience patience = PATIENCE(cuMemSetAccess);
        CUresult result;

        do
                result = set_access(pointer, size, access, count);
        while (patience_again(&patience, result));
        if (result == CUDA_SUCCESS)
                vmm_note_access(pointer, size, access, count);
        return result;
}

/* Multicast: the driver offers no way to make such an object anew. */

CUresult our_cuMulticastCreate(CUmemGenericAllocationHandle *handle, const void *prop)
{
        struct physical *physical;

        if (!handle)
                return DRIVER(cuMulticastCreate)(handle, prop);
        physical = native_new(0, 0, GATE_HOLDS_MULTICAST);
        if (!physical)
                return CUDA_ERROR_OUT_OF_MEMORY;
        return native_keep(physical, DRIVER(cuMulticastCreate)(handle, prop), handle);
}

/* The object refers to this very memory. */
static CUresult bound(CUresult result, struct physical *physical)
{
        if (!physical)
                return result;
        if (result == CUDA_SUCCESS)
                vmm_hold(physical, GATE_HOLDS_MULTICAST);
        vmm_drop(physical);
        return result;
}

CUresult our_cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset,
                                CUmemGenericAllocationHandle handle, size_t memory_offset,
                                size_t size, unsigned long long flags)
{
        struct physical *physical = vmm_find_handle(handle);

        return bound(DRIVER(cuMulticastBindMem)(multicast, offset, vmm_real(physical, handle),
                                                memory_offset, size, flags),
                     physical);
}

CUresult our_cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
                                   size_t offset, CUmemGenericAllocationHandle handle,
                                   size_t memory_offset, size_t size, unsigned long long flags)
{
        struct physical *physical = vmm_find_handle(handle);

        if (!visible_has(device)) {
                if (physical)
                        vmm_drop(physical);
                return CUDA_ERROR_INVALID_DEVICE;
        }
        return bound(DRIVER(cuMulticastBindMem_v2)(multicast, device, offset,
                                                   vmm_real(physical, handle), memory_offset, size,
                                                   flags),
                     physical);
}

/* Memory of pools, too. */
static CUresult bound_address(CUresult result, CUdeviceptr pointer, size_t size)
{
        if (result == CUDA_SUCCESS && !memory_register(pointer, size))
                (void)vmm_register(pointer, size, GATE_HOLDS_MULTICAST);
        return result;
}

CUresult our_cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset,
                                 CUdeviceptr pointer, size_t size, unsigned long long flags)
{
        return bound_address(DRIVER(cuMulticastBindAddr)(multicast, offset, pointer, size, flags),
                             pointer, size);
}

CUresult our_cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
                                    size_t offset, CUdeviceptr pointer, size_t size,
                                    unsigned long long flags)
{
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        return bound_address(
                DRIVER(cuMulticastBindAddr_v2)(multicast, device, offset, pointer, size, flags),
                pointer, size);
}

/* Memory in sparse arrays: it stays where it is, as the array knows it by the driver's handle. */

struct array_maps {
        CUarrayMapInfo *list; /* as the driver gets it */
        struct physical **physical;
};

static void array_maps_deinit(struct array_maps *maps)
{
        free(maps->list);
        free(maps->physical);
}

static bool array_maps_init(struct array_maps *maps, const CUarrayMapInfo *list, unsigned int n)
{
        maps->list = malloc(n * sizeof(*list));
        maps->physical = calloc(n, sizeof(struct physical *));
        if (!maps->list || !maps->physical)
                return false;
        memcpy(maps->list, list, n * sizeof(*list));
        for (unsigned int i = 0; i < n; i++) {
                maps->physical[i] = vmm_find_handle(list[i].memHandle);
                maps->list[i].memHandle = vmm_real(maps->physical[i], list[i].memHandle);
        }
        return true;
}

static CUresult array_maps_settle(CUresult result, struct array_maps *maps, unsigned int n)
{
        for (unsigned int i = 0; i < n; i++) {
                if (maps->physical[i] && result == CUDA_SUCCESS)
                        vmm_hold(maps->physical[i], GATE_HOLDS_UNPROVEN);
                if (maps->physical[i])
                        vmm_drop(maps->physical[i]);
        }
        return result;
}

static CUresult map_arrays(CUresult (*call)(CUarrayMapInfo *list, unsigned int n, CUstream stream),
                           CUarrayMapInfo *list, unsigned int n, CUstream stream)
{
        CLEANUP(array_maps_deinit) struct array_maps maps = { .list = NULL };

        if (!list || n == 0)
                return call(list, n, stream);
        if (!array_maps_init(&maps, list, n))
                return CUDA_ERROR_OUT_OF_MEMORY;
        return array_maps_settle(call(maps.list, n, stream), &maps, n);
}

CUresult our_cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int n, CUstream stream)
{
        return map_arrays(DRIVER(cuMemMapArrayAsync), list, n, stream);
}

CUresult our_cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int n, CUstream stream)
{
        return map_arrays(DRIVER(cuMemMapArrayAsync_ptsz), list, n, stream);
}

bool hook_register_view(CUdeviceptr address, uint64_t size)
{
        return vmm_register(address, size, GATE_HOLDS_REGISTERED);
}
