/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries about a pointer. The driver sees whole mappings of the virtual-memory calls; the
 * application must see the ordinary allocation that it made.
 *
 * Changed are those answers that measurably differ (driver 580): the context, the range, the
 * handle types, the pool, the id of the buffer, which must be a small allocation's own, and that legacy IPC is
 * possible (hook-ipc.c). The rest is the driver's.
 */
#include <string.h>

#include "gate/entry.h"
#include "gate/holding.h"
#include "gate/hook.h"
#include "gate/memory.h"
#include "gate/pool-import.h"
#include "gate/pool.h"
#include "gate/quota.h"
#include "gate/vmm.h"
#include "wire/gate.h"

static bool find(CUdeviceptr pointer, struct memory_info *ret_info)
{
        return memory_find(pointer, ret_info) || pool_find(pointer, ret_info) ||
               hook_find_opened(pointer, ret_info) || pool_import_find(pointer, ret_info);
}

/* In our memory, but in no allocation. */
static bool is_nowhere(CUdeviceptr pointer)
{
        struct memory_info info;

        return (memory_is_unallocated(pointer) && !pool_find(pointer, &info)) ||
               (pool_import_overlaps(pointer, 1) && !pool_import_find(pointer, &info));
}

CUresult our_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
        struct memory_info info;

        if (is_nowhere(pointer))
                return CUDA_ERROR_NOT_FOUND;
        if (!find(pointer, &info))
                return DRIVER(cuMemGetAddressRange_v2)(base, size, pointer);
        if (base)
                *base = info.start;
        if (size)
                *size = info.size;
        return CUDA_SUCCESS;
}

/* After the driver has answered: put our answer in place of its. */
static void correct(void *data, CUpointer_attribute attribute, const struct memory_info *info)
{
        const uint64_t size = info->size;
        const unsigned long long handle_types = (unsigned int)info->handle_types;
        const unsigned long long buffer_id = info->buffer_id;
        const bool is_ipc_capable = info->buffer_id != 0 && !info->pool;

        switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
                memcpy(data, &info->context, sizeof(info->context));
                break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
                memcpy(data, &info->start, sizeof(info->start));
                break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                memcpy(data, &size, sizeof(size));
                break;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
                memcpy(data, &info->pool, sizeof(info->pool));
                break;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
                memcpy(data, &handle_types, sizeof(handle_types));
                break;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
                memcpy(data, &is_ipc_capable, sizeof(is_ipc_capable));
                break;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
                if (buffer_id == 0)
                        break; /* of another process: the driver's */
                memcpy(data, &buffer_id, sizeof(buffer_id));
                break;
        default:
                break;
        }
}

/* Memory that the program has made and maps itself. */
static void correct_view(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
        const unsigned long long none = CU_MEM_HANDLE_TYPE_NONE;
        struct physical *physical;

        if (attribute != CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)
                return;
        physical = vmm_find_behind(pointer);
        if (!physical)
                return;
        if (physical->is_private)
                memcpy(data, &none, sizeof(none));
        vmm_drop(physical);
}

CUresult our_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
        struct memory_info info;
        CUresult result;

        if (is_nowhere(pointer))
                return CUDA_ERROR_INVALID_VALUE;
        result = DRIVER(cuPointerGetAttribute)(data, attribute, pointer);
        if (result != CUDA_SUCCESS)
                return result;
        if (find(pointer, &info))
                correct(data, attribute, &info);
        else
                correct_view(data, attribute, pointer);
        return result;
}

/* Of a pointer to nothing this one does not fail, but has answers that say so. */
CUresult our_cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes, void **data,
                                    CUdeviceptr pointer)
{
        const CUdeviceptr nowhere = 1;
        struct memory_info info;
        CUresult result;

        if (is_nowhere(pointer))
                return DRIVER(cuPointerGetAttributes)(n, attributes, data, nowhere);
        result = DRIVER(cuPointerGetAttributes)(n, attributes, data, pointer);
        if (result != CUDA_SUCCESS)
                return result;
        if (find(pointer, &info))
                for (unsigned int i = 0; i < n; i++)
                        correct(data[i], attributes[i], &info);
        else
                for (unsigned int i = 0; i < n; i++)
                        correct_view(data[i], attributes[i], pointer);
        return result;
}

CUresult our_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                   CUdeviceptr pointer)
{
        CUresult result = DRIVER(cuPointerSetAttribute)(value, attribute, pointer);
        unsigned int on;

        if (result == CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
                memcpy(&on, value, sizeof(on));
                memory_set_sync_memops(pointer, on != 0);
                vmm_note_sync_memops(pointer, on != 0);
        }
        return result;
}

/* Of memory that is mapped as ours is, the driver answers as if it were the host's. */
static bool is_ours(const void *pointer)
{
        struct memory_info info;

        return find((CUdeviceptr)(uintptr_t)pointer, &info) ||
               is_nowhere((CUdeviceptr)(uintptr_t)pointer);
}

CUresult our_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags)
{
        return is_ours(host) ? CUDA_ERROR_INVALID_VALUE
                             : DRIVER(cuMemHostGetDevicePointer_v2)(device, host, flags);
}

CUresult our_cuMemHostGetFlags(unsigned int *flags, void *host)
{
        return is_ours(host) ? CUDA_ERROR_INVALID_VALUE : DRIVER(cuMemHostGetFlags)(flags, host);
}

/*
 * A dma-buf, for RDMA: whoever has it would not notice a move. That it is closed we do not learn,
 * and a network card may go on after that; so it counts until the memory is freed.
 */
CUresult our_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr pointer, size_t size, int type,
                                           unsigned long long flags)
{
        CUresult result = DRIVER(cuMemGetHandleForAddressRange)(handle, pointer, size, type, flags);

        if (result == CUDA_SUCCESS && !memory_register(pointer, size) &&
            !hook_register_view(pointer, size))
                holding_mark(pointer, GATE_HOLDS_REGISTERED);
        return result;
}
