/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDART_RUNTIME_H
#define CUDART_RUNTIME_H

/*
 * A CUDA runtime for the simulated GPU: memory, copies, streams, events and graphs in terms of the
 * driver API, so that programs which are linked with the shared runtime (nvcc -cudart shared) run
 * there.
 *
 * NVIDIA's own runtime runs only on NVIDIA's driver: it makes the driver prove its identity. The
 * simulated driver does not pretend to be NVIDIA's. It has a runtime of its own instead.
 *
 * The exported functions are generated from abi/cudart.abi: each is a runtime_enter(), the function
 * runtime_NAME() that somebody wrote, and a runtime_leave(). Errors of the driver are passed on:
 * the numbers are the same.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cudart-entries.h"

#define RUNTIME_DEVICES_MAX 64

/* What is called of the driver, by the names that its library exports. */
#define RUNTIME_DRIVER(X)                              \
        X(cuInit)                                      \
        X(cuDriverGetVersion)                          \
        X(cuGetErrorString)                            \
        X(cuGetProcAddress_v2)                         \
        X(cuGetExportTable)                            \
        X(cuDeviceGetCount)                            \
        X(cuDeviceGetName)                             \
        X(cuDeviceGetUuid)                             \
        X(cuDeviceGetAttribute)                        \
        X(cuDeviceTotalMem_v2)                         \
        X(cuDeviceGetPCIBusId)                         \
        X(cuDeviceGetByPCIBusId)                       \
        X(cuDeviceGetP2PAttribute)                     \
        X(cuDeviceCanAccessPeer)                       \
        X(cuDeviceGetDefaultMemPool)                   \
        X(cuDeviceGetMemPool)                          \
        X(cuDeviceSetMemPool)                          \
        X(cuDevicePrimaryCtxRetain)                    \
        X(cuDevicePrimaryCtxReset_v2)                  \
        X(cuDevicePrimaryCtxGetState)                  \
        X(cuDevicePrimaryCtxSetFlags_v2)               \
        X(cuCtxGetCurrent)                             \
        X(cuCtxSetCurrent)                             \
        X(cuCtxGetDevice)                              \
        X(cuCtxSynchronize)                            \
        X(cuCtxEnablePeerAccess)                       \
        X(cuCtxDisablePeerAccess)                      \
        X(cuCtxGetLimit)                               \
        X(cuCtxSetLimit)                               \
        X(cuCtxGetCacheConfig)                         \
        X(cuCtxSetCacheConfig)                         \
        X(cuCtxGetSharedMemConfig)                     \
        X(cuCtxSetSharedMemConfig)                     \
        X(cuCtxGetStreamPriorityRange)                 \
        X(cuMemGetInfo_v2)                             \
        X(cuMemAlloc_v2)                               \
        X(cuMemAllocManaged)                           \
        X(cuMemAllocPitch_v2)                          \
        X(cuMemFree_v2)                                \
        X(cuMemHostAlloc)                              \
        X(cuMemFreeHost)                               \
        X(cuMemHostRegister_v2)                        \
        X(cuMemHostUnregister)                         \
        X(cuMemHostGetDevicePointer_v2)                \
        X(cuMemHostGetFlags)                           \
        X(cuPointerGetAttributes)                      \
        X(cuMemcpyAsync)                               \
        X(cuMemcpyPeer)                                \
        X(cuMemcpyPeerAsync)                           \
        X(cuMemcpy2DAsync_v2)                          \
        X(cuMemsetD8Async)                             \
        X(cuMemsetD2D8Async)                           \
        X(cuMemPrefetchAsync_v2)                       \
        X(cuMemAdvise)                                 \
        X(cuMemAllocAsync)                             \
        X(cuMemAllocFromPoolAsync)                     \
        X(cuMemFreeAsync)                              \
        X(cuMemPoolCreate)                             \
        X(cuMemPoolDestroy)                            \
        X(cuMemPoolTrimTo)                             \
        X(cuMemPoolSetAttribute)                       \
        X(cuMemPoolGetAttribute)                       \
        X(cuMemPoolSetAccess)                          \
        X(cuMemPoolGetAccess)                          \
        X(cuMemPoolExportToShareableHandle)            \
        X(cuMemPoolImportFromShareableHandle)          \
        X(cuMemPoolExportPointer)                      \
        X(cuMemPoolImportPointer)                      \
        X(cuStreamCreateWithPriority)                  \
        X(cuStreamDestroy_v2)                          \
        X(cuStreamSynchronize)                         \
        X(cuStreamQuery)                               \
        X(cuStreamWaitEvent)                           \
        X(cuStreamGetPriority)                         \
        X(cuStreamGetFlags)                            \
        X(cuStreamGetId)                               \
        X(cuStreamGetDevice)                           \
        X(cuStreamAddCallback)                         \
        X(cuStreamBeginCapture_v2)                     \
        X(cuStreamEndCapture)                          \
        X(cuStreamIsCapturing)                         \
        X(cuStreamGetCaptureInfo_v3)                   \
        X(cuThreadExchangeStreamCaptureMode)           \
        X(cuLaunchHostFunc)                            \
        X(cuEventCreate)                               \
        X(cuEventDestroy_v2)                           \
        X(cuEventRecordWithFlags)                      \
        X(cuEventQuery)                                \
        X(cuEventSynchronize)                          \
        X(cuEventElapsedTime)                          \
        X(cuGraphCreate)                               \
        X(cuGraphDestroy)                              \
        X(cuGraphGetNodes)                             \
        X(cuGraphInstantiateWithFlags)                 \
        X(cuGraphUpload)                               \
        X(cuGraphLaunch)                               \
        X(cuGraphExecDestroy)                          \
        X(cuLibraryLoadData)                           \
        X(cuLibraryUnload)                             \
        X(cuLibraryGetKernel)                          \
        X(cuKernelGetFunction)                         \
        X(cuFuncGetAttribute)                          \
        X(cuFuncSetAttribute)                          \
        X(cuFuncSetCacheConfig)                        \
        X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
        X(cuLaunchKernel)                              \
        X(cuLaunchCooperativeKernel)

struct runtime_driver {
#define MEMBER(name) __typeof__(&name) name;
        RUNTIME_DRIVER(MEMBER)
#undef MEMBER
};

/* Filled by the first runtime_enter() or runtime_start(). */
extern struct runtime_driver driver;

/*
 * runtime_start() - load and start the driver, once. Errors: cudaErrorInsufficientDriver where
 * there is none, cudaErrorNoDevice, cudaErrorSoftwareValidityNotEstablished where the driver has
 * other devices than it shows.
 */
cudaError_t runtime_start(void);

/* runtime_enter() - @is_per_thread: until runtime_leave(), stream 0 is the thread's own. */
cudaError_t runtime_enter(bool needs_context, bool is_per_thread);

/* runtime_leave() - remember @error as the thread's last; returns it. */
cudaError_t runtime_leave(cudaError_t error);

/* runtime_refuse() - the answer of an entry point that is not there. */
cudaError_t runtime_refuse(const char *name);

/* runtime_stream() - what the driver calls @stream in the call that this thread is in. */
CUstream runtime_stream(CUstream stream);

/* The device of this thread: of its context, else the one that it chose. */
cudaError_t runtime_get_device(int *ret_device);
cudaError_t runtime_set_device(int device);

/* runtime_context() - the primary context of @device, made if there is none. */
cudaError_t runtime_context(CUcontext *ret_context, int device);
cudaError_t runtime_reset(void);

#endif
