/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and copies. The driver knows from an address what it is, so the direction of a copy says
 * nothing new and is only checked to be one. A call that does not name a stream is the asynchronous one
 * in stream 0, which is the thread's own for names in _ptds, and then the end of it.
 */

#include <string.h>

#include "cudart/runtime.h"

static CUdeviceptr address(const void *pointer)
{
        return (CUdeviceptr)(uintptr_t)pointer;
}

static cudaError_t finish(CUresult result)
{
        return (cudaError_t)(result ? result : driver.cuStreamSynchronize(runtime_stream(NULL)));
}

cudaError_t runtime_cudaMemGetInfo(size_t *free, size_t *total)
{
        return (cudaError_t)driver.cuMemGetInfo_v2(free, total);
}

/* Nothing is a piece of memory, too: NULL. */
static cudaError_t give(void **pointer, CUdeviceptr allocated, CUresult result)
{
        if (result == CUDA_SUCCESS)
                *pointer = (void *)(uintptr_t)allocated;
        return (cudaError_t)result;
}

cudaError_t runtime_cudaMalloc(void **pointer, size_t size)
{
        CUdeviceptr allocated = 0;
        CUresult result = CUDA_SUCCESS;

        if (!pointer)
                return cudaErrorInvalidValue;
        if (size)
                result = driver.cuMemAlloc_v2(&allocated, size);
        return give(pointer, allocated, result);
}

cudaError_t runtime_cudaMallocManaged(void **pointer, size_t size, unsigned int flags)
{
        CUdeviceptr allocated = 0;
        CUresult result;

        if (!pointer || !size)
                return cudaErrorInvalidValue;
        result = driver.cuMemAllocManaged(&allocated, size, flags);
        return give(pointer, allocated, result);
}

cudaError_t runtime_cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
        CUdeviceptr allocated = 0;
        CUresult result;

        if (!pointer || !pitch)
                return cudaErrorInvalidValue;
        result = driver.cuMemAllocPitch_v2(&allocated, pitch, width, height, 4);
        return give(pointer, allocated, result);
}

cudaError_t runtime_cudaFree(void *pointer)
{
        return pointer ? (cudaError_t)driver.cuMemFree_v2(address(pointer)) : cudaSuccess;
}

cudaError_t runtime_cudaHostAlloc(void **pointer, size_t size, unsigned int flags)
{
        return (cudaError_t)driver.cuMemHostAlloc(pointer, size, flags);
}

cudaError_t runtime_cudaMallocHost(void **pointer, size_t size)
{
        return runtime_cudaHostAlloc(pointer, size, 0);
}

cudaError_t runtime_cudaFreeHost(void *pointer)
{
        return pointer ? (cudaError_t)driver.cuMemFreeHost(pointer) : cudaSuccess;
}

cudaError_t runtime_cudaHostRegister(void *pointer, size_t size, unsigned int flags)
{
        return (cudaError_t)driver.cuMemHostRegister_v2(pointer, size, flags);
}

cudaError_t runtime_cudaHostUnregister(void *pointer)
{
        return (cudaError_t)driver.cuMemHostUnregister(pointer);
}

cudaError_t runtime_cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
        CUdeviceptr pointer = 0;
        CUresult result;

        if (!device)
                return cudaErrorInvalidValue;
        result = driver.cuMemHostGetDevicePointer_v2(&pointer, host, flags);
        return give(device, pointer, result);
}

cudaError_t runtime_cudaHostGetFlags(unsigned int *flags, void *pointer)
{
        return (cudaError_t)driver.cuMemHostGetFlags(flags, pointer);
}

static int get_type(unsigned int driver_type, int is_managed)
{
        if (is_managed)
                return cudaMemoryTypeManaged;
        if (driver_type == CU_MEMORYTYPE_DEVICE)
                return cudaMemoryTypeDevice;
        return driver_type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
}

/* The driver leaves what it does not know of an address 0: any memory of the program may be asked about. */
cudaError_t runtime_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                             const void *pointer)
{
        CUpointer_attribute wanted[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                         CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                         CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                         CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                         CU_POINTER_ATTRIBUTE_HOST_POINTER };
        unsigned int type = 0;
        int is_managed = 0, device = 0;
        void *device_pointer = NULL, *host_pointer = NULL;
        void *data[] = { &type, &is_managed, &device, &device_pointer, &host_pointer };
        CUresult result;

        if (!attributes || !pointer)
                return cudaErrorInvalidValue;
        result = driver.cuPointerGetAttributes(5, wanted, data, address(pointer));
        if (result != CUDA_SUCCESS)
                return (cudaError_t)result;
        memset(attributes, 0, sizeof(*attributes));
        attributes->type = get_type(type, is_managed);
        attributes->device = attributes->type == cudaMemoryTypeUnregistered ? -1 : device;
        attributes->devicePointer = device_pointer;
        attributes->hostPointer = host_pointer;
        return cudaSuccess;
}

static bool is_kind(int kind)
{
        return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

static CUresult copy(void *to, const void *from, size_t size, CUstream stream)
{
        return driver.cuMemcpyAsync(address(to), address(from), size, runtime_stream(stream));
}

cudaError_t runtime_cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
        return is_kind(kind) ? finish(copy(to, from, size, NULL)) : cudaErrorInvalidValue;
}

cudaError_t runtime_cudaMemcpyAsync(void *to, const void *from, size_t size, int kind,
                                    CUstream stream)
{
        return is_kind(kind) ? (cudaError_t)copy(to, from, size, stream) : cudaErrorInvalidValue;
}

static cudaError_t get_peers(CUcontext *ret_to, int to_device, CUcontext *ret_from, int from_device)
{
        cudaError_t error = runtime_context(ret_to, to_device);

        return error ? error : runtime_context(ret_from, from_device);
}

cudaError_t runtime_cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                        size_t size, CUstream stream)
{
        CUcontext to_context, from_context;
        cudaError_t error = get_peers(&to_context, to_device, &from_context, from_device);

        if (error != cudaSuccess)
                return error;
        return (cudaError_t)driver.cuMemcpyPeerAsync(address(to), to_context, address(from),
                                                     from_context, size, runtime_stream(stream));
}

cudaError_t runtime_cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                                   size_t size)
{
        CUcontext to_context, from_context;
        cudaError_t error = get_peers(&to_context, to_device, &from_context, from_device);

        if (error != cudaSuccess)
                return error;
        return (cudaError_t)driver.cuMemcpyPeer(address(to), to_context, address(from),
                                                from_context, size);
}

cudaError_t runtime_cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                                      size_t from_pitch, size_t width, size_t height, int kind,
                                      CUstream stream)
{
        const CUDA_MEMCPY2D rows = {
                .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                .srcDevice = address(from),
                .srcPitch = from_pitch,
                .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                .dstDevice = address(to),
                .dstPitch = to_pitch,
                .WidthInBytes = width,
                .Height = height,
        };

        if (!is_kind(kind))
                return cudaErrorInvalidValue;
        if (to_pitch < width || from_pitch < width)
                return cudaErrorInvalidPitchValue;
        return (cudaError_t)driver.cuMemcpy2DAsync_v2(&rows, runtime_stream(stream));
}

cudaError_t runtime_cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                 size_t width, size_t height, int kind)
{
        return finish((CUresult)runtime_cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width,
                                                          height, kind, NULL));
}

cudaError_t runtime_cudaMemsetAsync(void *pointer, int value, size_t size, CUstream stream)
{
        return (cudaError_t)driver.cuMemsetD8Async(address(pointer), (unsigned char)value, size,
                                                   runtime_stream(stream));
}

/* Does not wait, as documented; the next call in stream 0 comes after it. */
cudaError_t runtime_cudaMemset(void *pointer, int value, size_t size)
{
        return runtime_cudaMemsetAsync(pointer, value, size, NULL);
}

cudaError_t runtime_cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width,
                                      size_t height, CUstream stream)
{
        return (cudaError_t)driver.cuMemsetD2D8Async(address(pointer), pitch, (unsigned char)value,
                                                     width, height, runtime_stream(stream));
}

cudaError_t runtime_cudaMemset2D(void *pointer, size_t pitch, int value, size_t width,
                                 size_t height)
{
        return runtime_cudaMemset2DAsync(pointer, pitch, value, width, height, NULL);
}

cudaError_t runtime_cudaMemPrefetchAsync(const void *pointer, size_t size, CUmemLocation location,
                                         unsigned int flags, CUstream stream)
{
        return (cudaError_t)driver.cuMemPrefetchAsync_v2(address(pointer), size, location, flags,
                                                         runtime_stream(stream));
}

#define PROCESSOR (-1) /* the device that is none: the host */

cudaError_t runtime_cudaMemAdvise(const void *pointer, size_t size, int advice,
                                  CUmemLocation location)
{
        CUdevice device = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : PROCESSOR;

        return (cudaError_t)driver.cuMemAdvise(address(pointer), size, advice, device);
}

cudaError_t runtime_cudaMallocAsync(void **pointer, size_t size, CUstream stream)
{
        CUdeviceptr allocated = 0;
        CUresult result;

        if (!pointer)
                return cudaErrorInvalidValue;
        result = driver.cuMemAllocAsync(&allocated, size, runtime_stream(stream));
        return give(pointer, allocated, result);
}

cudaError_t runtime_cudaMallocFromPoolAsync(void **pointer, size_t size, CUmemoryPool pool,
                                            CUstream stream)
{
        CUdeviceptr allocated = 0;
        CUresult result;

        if (!pointer)
                return cudaErrorInvalidValue;
        result = driver.cuMemAllocFromPoolAsync(&allocated, size, pool, runtime_stream(stream));
        return give(pointer, allocated, result);
}

cudaError_t runtime_cudaFreeAsync(void *pointer, CUstream stream)
{
        return (cudaError_t)driver.cuMemFreeAsync(address(pointer), runtime_stream(stream));
}

cudaError_t runtime_cudaDeviceGetDefaultMemPool(CUmemoryPool *pool, int device)
{
        return (cudaError_t)driver.cuDeviceGetDefaultMemPool(pool, device);
}

cudaError_t runtime_cudaDeviceGetMemPool(CUmemoryPool *pool, int device)
{
        return (cudaError_t)driver.cuDeviceGetMemPool(pool, device);
}

cudaError_t runtime_cudaDeviceSetMemPool(int device, CUmemoryPool pool)
{
        return (cudaError_t)driver.cuDeviceSetMemPool(device, pool);
}

cudaError_t runtime_cudaMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
        return (cudaError_t)driver.cuMemPoolCreate(pool, properties);
}

cudaError_t runtime_cudaMemPoolDestroy(CUmemoryPool pool)
{
        return (cudaError_t)driver.cuMemPoolDestroy(pool);
}

cudaError_t runtime_cudaMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
        return (cudaError_t)driver.cuMemPoolTrimTo(pool, keep);
}

cudaError_t runtime_cudaMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
        return (cudaError_t)driver.cuMemPoolSetAttribute(pool, attribute, value);
}

cudaError_t runtime_cudaMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
        return (cudaError_t)driver.cuMemPoolGetAttribute(pool, attribute, value);
}

cudaError_t runtime_cudaMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n)
{
        return (cudaError_t)driver.cuMemPoolSetAccess(pool, access, n);
}

cudaError_t runtime_cudaMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location)
{
        return (cudaError_t)driver.cuMemPoolGetAccess(flags, pool, location);
}

cudaError_t runtime_cudaMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, int type,
                                                       unsigned int flags)
{
        return (cudaError_t)driver.cuMemPoolExportToShareableHandle(handle, pool, type, flags);
}

cudaError_t runtime_cudaMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, int type,
                                                         unsigned int flags)
{
        return (cudaError_t)driver.cuMemPoolImportFromShareableHandle(pool, handle, type, flags);
}

cudaError_t runtime_cudaMemPoolExportPointer(CUmemPoolPtrExportData *data, void *pointer)
{
        return (cudaError_t)driver.cuMemPoolExportPointer(data, address(pointer));
}

cudaError_t runtime_cudaMemPoolImportPointer(void **pointer, CUmemoryPool pool,
                                             CUmemPoolPtrExportData *data)
{
        CUdeviceptr imported = 0;
        CUresult result;

        if (!pointer)
                return cudaErrorInvalidValue;
        result = driver.cuMemPoolImportPointer(&imported, pool, data);
        return give(pointer, imported, result);
}
