/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoint and restore with custom storage, in the process that asks for it.
 *
 * Of each device all files of memory are mapped one behind the other, in the order in which they are
 * told; the other process tells them in the same order at its restore.
 */

#include "sim/custom-storage.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "sim/driver.h"
#include "sim/memory.h"
#include "sim/stream.h"

struct file {
        uint64_t size;
        int device, fd;
};

struct CUcheckpointOperation_st {
        CUcheckpointOperationHandle next, *link;
        int connection;
        CUcheckpointCustomStorageInfo info;
        CUcheckpointCustomStoragePerDeviceData data[HOST_DEVICES_MAX];
        struct file *files;
        size_t n_files;
};

static CUcheckpointOperationHandle operations;

uint32_t custom_storage_get_contexts(void)
{
        uint32_t contexts = 0;
        PROCESS_LOCKED();

        for (int i = 0; i < process.n_devices; i++)
                if (process.device[i].primary && process.device[i].primary->retained)
                        contexts |= 1u << process.device[i].at;
        return contexts;
}

static void close_files(CUcheckpointOperationHandle operation)
{
        for (size_t i = 0; i < operation->n_files; i++)
                (void)fd_close(operation->files[i].fd);
        free(operation->files);
        operation->files = NULL;
        operation->n_files = 0;
}

static int add_files(CUcheckpointOperationHandle operation, const struct checkpoint_files *message,
                     const int *fds)
{
        struct file *files = reallocarray(operation->files, operation->n_files + message->n,
                                          sizeof(*operation->files));

        if (!files && message->n > 0)
                return -ENOMEM;
        operation->files = files;
        for (uint32_t i = 0; i < message->n; i++)
                files[operation->n_files++] =
                        (struct file){ message->file[i].size, message->file[i].device, fds[i] };
        return 0;
}

static CUresult receive_files(CUcheckpointOperationHandle operation)
{
        union {
                char bytes[PACKET_SIZE_MAX];
                struct checkpoint_files files;
        } packet = { { 0 } };
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        do {
                if (packet_receive(operation->connection, packet.bytes, &size, fds, &n_fds) < 0)
                        return CUDA_ERROR_OPERATING_SYSTEM;
                if (size != sizeof(packet.files) || n_fds != packet.files.n ||
                    add_files(operation, &packet.files, fds) < 0) {
                        packet_close_fds(fds, n_fds);
                        return CUDA_ERROR_OUT_OF_MEMORY;
                }
        } while (!packet.files.is_last);
        return CUDA_SUCCESS;
}

static uint64_t sum_of_device(const struct CUcheckpointOperation_st *operation, int device)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < operation->n_files; i++)
                if (operation->files[i].device == device)
                        sum += operation->files[i].size;
        return sum;
}

static CUresult map_files(const struct CUcheckpointOperation_st *operation, int device,
                          uint64_t address)
{
        for (size_t i = 0; i < operation->n_files; i++) {
                const struct file *file = &operation->files[i];

                if (file->device != device)
                        continue;
                if (mmap((void *)(uintptr_t)address, file->size, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, file->fd, 0) == MAP_FAILED)
                        return CUDA_ERROR_OUT_OF_MEMORY;
                address += file->size;
        }
        return CUDA_SUCCESS;
}

static CUresult map_device(CUcheckpointOperationHandle operation, int ordinal)
{
        CUcheckpointCustomStoragePerDeviceData *data =
                &operation->data[operation->info.deviceCount];
        struct device *device = &process.device[ordinal];
        uint64_t size = sum_of_device(operation, device->at), address;
        struct region *region;
        CUresult result;

        if (size == 0)
                return CUDA_SUCCESS;
        result = mapping_reserve(&address, size, MEMORY_PAGE, 0);
        if (result != CUDA_SUCCESS)
                return result;
        *data = (CUcheckpointCustomStoragePerDeviceData){ .devPtr = address, .size = size };
        operation->info.deviceCount++;
        result = memory_add(&region, REGION_FOREIGN, address, size);
        if (result != CUDA_SUCCESS)
                return result;
        region->device = ordinal;
        data->stream = stream_new(device->primary, CU_STREAM_NON_BLOCKING, 0);
        return data->stream ? map_files(operation, device->at, address) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult map_all(CUcheckpointOperationHandle operation)
{
        CUresult result = CUDA_SUCCESS;
        PROCESS_LOCKED();

        for (int i = 0; i < process.n_devices && !result; i++)
                result = map_device(operation, i);
        operation->next = operations;
        operation->link = &operations;
        if (operation->next)
                operation->next->link = &operation->next;
        operations = operation;
        return result;
}

static void unmap(const CUcheckpointCustomStoragePerDeviceData *data)
{
        struct region *region;
        PROCESS_LOCKED();

        region = memory_find(data->devPtr);
        if (region)
                memory_remove(region);
        mapping_unreserve(data->devPtr, data->size);
}

static void operation_free(CUcheckpointOperationHandle operation)
{
        for (unsigned int i = 0; i < operation->info.deviceCount; i++) {
                if (operation->data[i].stream)
                        (void)sim_cuStreamDestroy_v2(operation->data[i].stream);
                unmap(&operation->data[i]);
        }
        close_files(operation);
        (void)fd_close(operation->connection);
        free(operation);
}

static void take_out(CUcheckpointOperationHandle operation)
{
        PROCESS_LOCKED();

        if (operation->next)
                operation->next->link = operation->link;
        *operation->link = operation->next;
}

CUresult custom_storage_begin(int fd, CUcheckpointCustomStorageInfo **ret_info)
{
        CUcheckpointOperationHandle operation = calloc(1, sizeof(*operation));
        CUresult result;

        if (!operation) {
                (void)fd_close(fd);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        operation->connection = fd;
        operation->info.handle = operation;
        operation->info.perDeviceData = operation->data;
        result = receive_files(operation);
        if (result != CUDA_SUCCESS) {
                operation_free(operation);
                return result;
        }
        result = map_all(operation);
        close_files(operation);
        if (result != CUDA_SUCCESS) {
                take_out(operation);
                operation_free(operation);
                return result;
        }
        *ret_info = &operation->info;
        return CUDA_SUCCESS;
}

static CUcheckpointOperationHandle find(CUcheckpointOperationHandle handle)
{
        CUcheckpointOperationHandle operation;
        PROCESS_LOCKED();

        for (operation = operations; operation && operation != handle; operation = operation->next)
                ;
        return operation;
}

static CUresult synchronize(const struct CUcheckpointOperation_st *operation)
{
        CUresult result = CUDA_SUCCESS;

        for (unsigned int i = 0; i < operation->info.deviceCount && !result; i++)
                result = sim_cuStreamSynchronize(operation->data[i].stream);
        return result;
}

static CUresult tell_the_other(const struct CUcheckpointOperation_st *operation)
{
        const struct checkpoint_request request = { .step = CHECKPOINT_COMPLETE };
        struct checkpoint_answer answer;
        ssize_t n;

        if (send(operation->connection, &request, sizeof(request), MSG_NOSIGNAL) < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        do
                n = recv(operation->connection, &answer, sizeof(answer), 0);
        while (n < 0 && errno == EINTR);
        return n == (ssize_t)sizeof(answer) ? (CUresult)answer.result : CUDA_ERROR_OPERATING_SYSTEM;
}

/* The block is gone afterwards, whatever the answer; a process that was not told has failed. */
CUresult sim_cuCheckpointOperationComplete(CUcheckpointOperationHandle handle)
{
        CUcheckpointOperationHandle operation = find(handle);
        CUresult result;

        if (driver_get_version() < DRIVER_VERSION_STORAGE)
                return CUDA_ERROR_NOT_SUPPORTED;
        if (!operation)
                return CUDA_ERROR_INVALID_VALUE;
        result = synchronize(operation);
        if (result == CUDA_SUCCESS)
                result = tell_the_other(operation);
        take_out(operation);
        operation_free(operation);
        return result;
}
