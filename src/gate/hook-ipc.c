/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Legacy IPC. The driver's own cannot name memory of the virtual-memory calls, which backs ordinary
 * allocations here. So the 64 bytes of a handle are a ticket, and who opens it imports the whole
 * mapping that the allocation lies in, as natively: a small allocation comes with its neighbours.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gate/child.h"
#include "gate/context.h"
#include "gate/entry.h"
#include "gate/holding.h"
#include "gate/hook.h"
#include "gate/import.h"
#include "gate/log.h"
#include "gate/mapping.h"
#include "gate/memory.h"
#include "gate/offer.h"
#include "gate/reservation.h"
#include "gate/ticket.h"
#include "gate/visible.h"
#include "gate/vmm.h"
#include "wire/gate.h"

static_assert(sizeof(struct gate_ticket) == sizeof(CUipcMemHandle), "it is one");

struct opened {
        struct opened *next;
        struct gate_ticket ticket;
        CUcontext context;
        CUdeviceptr base;                /* of the mapping */
        uint64_t size;                   /* of the mapping */
        unsigned int n;                  /* times that it was opened */
        const struct physical *physical; /* used by the view of it at @base */
};

static struct {
        pthread_mutex_t lock;
        struct opened *first;
} ipc = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Of memory of the driver's: after a restore, who has opened it would go on with the old one. */
static CUresult get_native_handle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
        CUresult result = DRIVER(cuIpcGetMemHandle)(handle, pointer);

        if (result == CUDA_SUCCESS)
                holding_mark(pointer, GATE_HOLDS_EXPORTED);
        return result;
}

CUresult our_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
        struct gate_ticket ticket;
        struct memory_info info;

        if (!handle || !memory_find(pointer, &info))
                return get_native_handle(handle, pointer);
        if (!ticket_identify(&ticket)) {
                log_to_user("legacy CUDA IPC (cuIpcGetMemHandle, cudaIpcGetMemHandle) works in a "
                            "vGPU only; set OPENVGPU_NATIVE_IPC=1 for a program that needs it "
                            "without");
                return CUDA_ERROR_NOT_SUPPORTED;
        }
        if (!memory_name_at(pointer, &ticket))
                return CUDA_ERROR_INVALID_VALUE;
        memcpy(handle, &ticket, sizeof(ticket));
        return CUDA_SUCCESS;
}

static uint64_t size_of_mapping(const struct gate_ticket *ticket)
{
        return (ticket->offset + ticket->size + BLOCK_SIZE - 1) & ~(uint64_t)(BLOCK_SIZE - 1);
}

/* At an address of its own, for the current device. */
static CUresult put_in_place(struct opened *opened, struct physical *physical, CUdevice device)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, device },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CLEANUP(freep) struct view *view = calloc(1, sizeof(*view));
        CUresult result;

        if (!view)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = reservation_make(&opened->base, opened->size);
        if (result != CUDA_SUCCESS)
                return result;
        result = DRIVER(cuMemMap)(opened->base, opened->size, 0, vmm_real(physical, 0), 0);
        if (result == CUDA_SUCCESS) {
                result = DRIVER(cuMemSetAccess)(opened->base, opened->size, &access, 1);
                if (result != CUDA_SUCCESS)
                        (void)DRIVER(cuMemUnmap)(opened->base, opened->size);
        }
        if (result != CUDA_SUCCESS) {
                reservation_free(opened->base, opened->size);
                return result;
        }
        view->size = opened->size;
        opened->physical = physical;
        vmm_add_view(TAKE(view), opened->base, physical);
        vmm_note_access(opened->base, opened->size, &access, 1);
        return CUDA_SUCCESS;
}

/* Not one that is lost: nothing is at its address any more, and it is asked for anew. */
static struct opened *find_open(const struct gate_ticket *ticket, CUcontext context)
{
        struct opened *it = ipc.first;

        while (it && (memcmp(&it->ticket, ticket, sizeof(*ticket)) != 0 || it->context != context ||
                      it->physical->import->is_lost))
                it = it->next;
        return it;
}

/* The caller opens it, if it is there. */
static bool open_again(CUdeviceptr *ret_pointer, const struct gate_ticket *ticket,
                       CUcontext context)
{
        struct opened *opened;

        pthread_mutex_lock(&ipc.lock);
        opened = find_open(ticket, context);
        if (opened) {
                opened->n++;
                *ret_pointer = opened->base + ticket->offset;
        }
        pthread_mutex_unlock(&ipc.lock);
        return opened;
}

static CUresult unmap(const struct opened *opened)
{
        struct view *views = vmm_take_views(opened->base, opened->size);
        CUresult result = DRIVER(cuMemUnmap)(opened->base, opened->size);

        vmm_settle_views(views, result);
        if (result == CUDA_SUCCESS)
                reservation_free(opened->base, opened->size);
        return result;
}

/* Unless another thread was faster. */
static void add(struct opened *opened)
{
        struct opened *other;

        pthread_mutex_lock(&ipc.lock);
        other = find_open(&opened->ticket, opened->context);
        if (!other) {
                opened->next = ipc.first;
                ipc.first = opened;
        }
        pthread_mutex_unlock(&ipc.lock);
        if (!other)
                return;
        (void)unmap(opened);
        free(opened);
}

static CUresult open_new(const struct gate_ticket *ticket, CUcontext context, CUdevice device)
{
        CLEANUP(freep) struct opened *opened = calloc(1, sizeof(*opened));
        struct physical *physical;
        CUresult result;

        if (!opened)
                return CUDA_ERROR_OUT_OF_MEMORY;
        opened->ticket = *ticket;
        opened->context = context;
        opened->size = size_of_mapping(ticket);
        result = import_open(&physical, ticket);
        if (result != CUDA_SUCCESS)
                return result;
        result = put_in_place(opened, physical, device);
        if (result != CUDA_SUCCESS) {
                vmm_drop(physical);
                return result;
        }
        add(TAKE(opened));
        return CUDA_SUCCESS;
}

static CUresult open_ticket(CUdeviceptr *pointer, const struct gate_ticket *ticket)
{
        CUcontext context;
        CUdevice device;
        CUresult result = context_current(&context, &device);

        if (result != CUDA_SUCCESS)
                return result;
        if (!visible_has(device))
                return CUDA_ERROR_INVALID_DEVICE;
        if (ticket_is_own(ticket))
                return CUDA_ERROR_INVALID_CONTEXT; /* as natively, in the process that made it */
        if (ticket->size == 0 || ticket->size > UINT64_MAX / 4 || ticket->offset >= BLOCK_SIZE)
                return CUDA_ERROR_INVALID_VALUE;
        while (result == CUDA_SUCCESS && !open_again(pointer, ticket, context))
                result = open_new(ticket, context, device);
        return result;
}

/* Of a process without a gate. Not charged: its owner pays. But the driver cannot restore this one. */
static CUresult keep_native(CUresult result, const CUdeviceptr *pointer)
{
        struct holding *holding =
                result == CUDA_SUCCESS ? holding_new(HOLDING_IPC, 0, GATE_HOLDS_IMPORTED) : NULL;

        return holding ? holding_keep(holding, result, *pointer) : result;
}

static bool understand(struct gate_ticket *ret_ticket, const CUipcMemHandle *handle)
{
        memcpy(ret_ticket, handle, sizeof(*ret_ticket));
        return ticket_is(ret_ticket);
}

static CUresult open_handle(__typeof__(&cuIpcOpenMemHandle_v2) real, CUdeviceptr *pointer,
                            const CUipcMemHandle *handle, unsigned int flags)
{
        struct gate_ticket ticket;

        if (!pointer || !understand(&ticket, handle))
                return keep_native(real(pointer, *handle, flags), pointer);
        return flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ? open_ticket(pointer, &ticket)
                                                           : CUDA_ERROR_INVALID_VALUE;
}

CUresult our_cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
        return open_handle(DRIVER(cuIpcOpenMemHandle), pointer, &handle, flags);
}

CUresult our_cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
        return open_handle(DRIVER(cuIpcOpenMemHandle_v2), pointer, &handle, flags);
}

static struct opened **link_to(CUdeviceptr pointer)
{
        struct opened **link = &ipc.first;

        while (*link && (*link)->base + (*link)->ticket.offset != pointer)
                link = &(*link)->next;
        return link;
}

/* Closed for the last time: out of the list. True: @pointer is of ours. */
static bool take_closed(CUdeviceptr pointer, struct opened **ret_over)
{
        struct opened **link, *opened;

        *ret_over = NULL;
        pthread_mutex_lock(&ipc.lock);
        link = link_to(pointer);
        opened = *link;
        if (opened && --opened->n == 0) {
                *link = opened->next;
                *ret_over = opened;
        }
        pthread_mutex_unlock(&ipc.lock);
        return opened;
}

CUresult our_cuIpcCloseMemHandle(CUdeviceptr pointer)
{
        struct opened *over;
        CUresult result = CUDA_SUCCESS;

        if (!take_closed(pointer, &over)) {
                struct holding *holding = holding_take(HOLDING_IPC, pointer);

                return holding_settle(holding, DRIVER(cuIpcCloseMemHandle)(pointer));
        }
        if (over) {
                (void)context_finish(over->context);
                result = unmap(over);
                free(over);
        }
        return result;
}

bool hook_find_opened(CUdeviceptr address, struct memory_info *ret_info)
{
        const struct opened *it;

        pthread_mutex_lock(&ipc.lock);
        for (it = ipc.first; it; it = it->next) {
                CUdeviceptr start = it->base + it->ticket.offset;

                if (address < start || address - start >= it->ticket.size)
                        continue;
                *ret_info = (struct memory_info){ .start = start,
                                                  .size = it->ticket.size,
                                                  .context = it->context };
                break;
        }
        pthread_mutex_unlock(&ipc.lock);
        return it;
}

void hook_forget(void)
{
        pthread_mutex_init(&ipc.lock, NULL);
        ipc.first = NULL;
}
