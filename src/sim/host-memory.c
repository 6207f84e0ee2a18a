/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that devices may use: allocated by the driver, or registered with it. */

#include <sys/mman.h>

#include "sim/capture.h"
#include "sim/memory.h"
#include "sim/stream.h"

#define HOST_PAGE 4096

static void *pointer(uint64_t address)
{
        return (void *)(uintptr_t)address;
}

CUresult sim_cuMemHostAlloc(void **ret_pointer, size_t size, unsigned int flags)
{
        struct region *region;
        CUcontext context;
        CUresult result;
        void *map;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!ret_pointer || size == 0)
                return CUDA_ERROR_INVALID_VALUE;
        if (capture_invalidate_unsafe())
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = memory_add(&region, REGION_HOST, (uint64_t)(uintptr_t)map, size);
        if (result != CUDA_SUCCESS) {
                (void)munmap(map, size);
                return result;
        }
        region->context = context;
        region->device = context->device;
        region->flags = flags;
        *ret_pointer = map;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocHost_v2(void **ret_pointer, size_t size)
{
        return sim_cuMemHostAlloc(ret_pointer, size, 0);
}

static struct region *find(void *host, enum region_kind kind)
{
        struct region *region = memory_find((uint64_t)(uintptr_t)host);

        return region && region->kind == kind ? region : NULL;
}

CUresult sim_cuMemFreeHost(void *host)
{
        struct region *region;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        region = find(host, REGION_HOST);
        if (!region || region->range.address != (uint64_t)(uintptr_t)host)
                return CUDA_ERROR_INVALID_VALUE;
        if (capture_invalidate_unsafe())
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        stream_wait_for_context(region->context); /* work may still use it */
        region = find(host, REGION_HOST);
        if (!region)
                return CUDA_ERROR_INVALID_VALUE;
        memory_release(region);
        return CUDA_SUCCESS;
}

/* All of it must be memory of the process. */
static bool is_mapped(void *host, size_t size)
{
        uint64_t begin = (uint64_t)(uintptr_t)host & ~(uint64_t)(HOST_PAGE - 1);
        uint64_t end = (uint64_t)(uintptr_t)host + size;

        return end > begin && msync(pointer(begin), end - begin, MS_ASYNC) == 0;
}

CUresult sim_cuMemHostRegister_v2(void *host, size_t size, unsigned int flags)
{
        struct region *region;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!host || size == 0 || !is_mapped(host, size))
                return CUDA_ERROR_INVALID_VALUE;
        if (capture_invalidate_unsafe())
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        result = memory_add(&region, REGION_REGISTERED, (uint64_t)(uintptr_t)host, size);
        if (result != CUDA_SUCCESS)
                return result == CUDA_ERROR_INVALID_VALUE
                               ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                               : result;
        region->context = context;
        region->device = context->device;
        region->flags = flags;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemHostUnregister(void *host)
{
        struct region *region;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        region = find(host, REGION_REGISTERED);
        if (!region || region->range.address != (uint64_t)(uintptr_t)host)
                return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        memory_remove(region);
        return CUDA_SUCCESS;
}

static bool is_host(void *host)
{
        return find(host, REGION_HOST) || find(host, REGION_REGISTERED);
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags)
{
        PROCESS_LOCKED();

        if (!device || flags || !is_host(host))
                return CUDA_ERROR_INVALID_VALUE;
        *device = (CUdeviceptr)(uintptr_t)host;
        return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetFlags(unsigned int *flags, void *host)
{
        PROCESS_LOCKED();

        if (!flags || !is_host(host))
                return CUDA_ERROR_INVALID_VALUE;
        *flags = memory_find((uint64_t)(uintptr_t)host)->flags | CU_MEMHOSTALLOC_DEVICEMAP;
        return CUDA_SUCCESS;
}
