/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Legacy IPC: a handle names the process, its descriptor of the memory file, and where in the file the
 * allocation is. Who opens it maps the whole file, as on a real device: a small allocation comes with
 * its neighbours.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/mapping.h"
#include "sim/memory.h"

#define IPC_MAGIC 0x43504956u

/* What CUipcMemHandle has here. */
struct ipc_handle {
        uint32_t magic;
        int32_t pid, fd;
        uint32_t reserved;
        uint64_t offset, size;
};

_Static_assert(sizeof(struct ipc_handle) <= sizeof(CUipcMemHandle), "64 bytes");

CUresult sim_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
        struct ipc_handle told = { .magic = IPC_MAGIC, .pid = getpid() };
        CUresult result = CUDA_SUCCESS;
        struct region *region;
        PROCESS_LOCKED();

        region = memory_find(pointer);
        if (!handle || !region || region->kind != REGION_PLAIN)
                return CUDA_ERROR_INVALID_VALUE;
        if (region->shared_fd < 0)
                result = memory_file_export(region->mapping->file, &region->shared_fd);
        if (result != CUDA_SUCCESS)
                return result;
        told.fd = region->shared_fd;
        told.offset = region->range.address - region->mapping->address;
        told.size = region->range.size;
        *handle = (CUipcMemHandle){ { 0 } };
        memcpy(handle, &told, sizeof(told));
        return CUDA_SUCCESS;
}

static CUresult import_file(struct memory_file **ret_file, const struct ipc_handle *told)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", told->pid, told->fd);
        fd = open(path, O_RDWR | O_CLOEXEC);
        return fd < 0 ? CUDA_ERROR_INVALID_VALUE : memory_file_import(ret_file, fd);
}

/* Opened before in this context: the same pointer, once more. */
static struct region *find_open(CUcontext context, const CUipcMemHandle *handle)
{
        for (size_t i = 0; i < process.regions.n; i++) {
                struct region *region = (struct region *)process.regions.ranges[i];

                if (region->kind == REGION_OPENED && region->context == context &&
                    memcmp(&region->opened, handle, sizeof(*handle)) == 0)
                        return region;
        }
        return NULL;
}

static CUresult open_new(struct region **ret_region, CUcontext context,
                         const struct ipc_handle *told)
{
        CLEANUP(memory_file_unrefp) struct memory_file *file = NULL;
        CLEANUP(mapping_freep) struct mapping *mapping = NULL;
        CUresult result;

        result = import_file(&file, told);
        if (result == CUDA_SUCCESS && (told->offset > file->size || told->size > file->size))
                result = CUDA_ERROR_INVALID_VALUE;
        if (result == CUDA_SUCCESS)
                result = mapping_create(&mapping, file, 0);
        if (result == CUDA_SUCCESS)
                result = mapping_set_access(mapping, UINT32_MAX, UINT32_MAX);
        if (result == CUDA_SUCCESS)
                result = memory_add(ret_region, REGION_OPENED, mapping->address + told->offset,
                                    told->size);
        if (result != CUDA_SUCCESS)
                return result;
        (*ret_region)->context = context;
        (*ret_region)->device = context->device;
        (*ret_region)->mapping = TAKE(mapping);
        return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
        struct ipc_handle told;
        struct region *region;
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        memcpy(&told, &handle, sizeof(told));
        if (!pointer || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || told.magic != IPC_MAGIC)
                return CUDA_ERROR_INVALID_VALUE;
        if (told.pid == getpid())
                return CUDA_ERROR_INVALID_CONTEXT;
        region = find_open(context, &handle);
        if (!region)
                result = open_new(&region, context, &told);
        if (result != CUDA_SUCCESS)
                return result;
        region->opened = handle;
        region->n_opened++;
        *pointer = region->range.address;
        return CUDA_SUCCESS;
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr pointer)
{
        struct region *region;
        PROCESS_LOCKED();

        region = memory_find(pointer);
        if (!region || region->kind != REGION_OPENED || region->range.address != pointer)
                return CUDA_ERROR_INVALID_VALUE;
        if (--region->n_opened == 0)
                memory_release(region);
        return CUDA_SUCCESS;
}
