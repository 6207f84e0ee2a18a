/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_CUDART_H
#define ABI_CUDART_H

/*
 * The interface of the CUDA runtime (libcudart.so.13), as far as src/cudart/ answers it: our own
 * declarations, made from the public documentation of the CUDA runtime API 13.0. The names and the
 * layouts are the interface's. Streams, events, graphs and pools are the driver's objects, so they have
 * the driver's types here; enumerations that are only passed on are int.
 *
 * tools/gen-cudart.py reads the prototypes that begin with CUDART_API.
 */

#include "abi/cuda.h"

typedef int cudaError_t;

#define CUDART_VERSION 13000

#define cudaSuccess                             0
#define cudaErrorInvalidValue                   1
#define cudaErrorInvalidPitchValue              12
#define cudaErrorInsufficientDriver             35
#define cudaErrorMissingConfiguration           52
#define cudaErrorInvalidDeviceFunction          98
#define cudaErrorNoDevice                       100
#define cudaErrorInvalidDevice                  101
#define cudaErrorSoftwareValidityNotEstablished 103
#define cudaErrorNotReady                       600
#define cudaErrorNotSupported                   801

#define cudaMemcpyHostToHost     0
#define cudaMemcpyHostToDevice   1
#define cudaMemcpyDeviceToHost   2
#define cudaMemcpyDeviceToDevice 3
#define cudaMemcpyDefault        4

#define cudaMemoryTypeUnregistered 0
#define cudaMemoryTypeHost         1
#define cudaMemoryTypeDevice       2
#define cudaMemoryTypeManaged      3

struct dim3 {
        unsigned int x, y, z;
};

struct cudaPointerAttributes {
        int type; /* cudaMemoryType* */
        int device;
        void *devicePointer, *hostPointer;
        long reserved[8];
};

struct cudaFuncAttributes {
        size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
        int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
        int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
        int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
        int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
        int reserved[16];
};

struct cudaLaunchConfig {
        struct dim3 gridDim, blockDim;
        size_t dynamicSmemBytes;
        CUstream stream;
        CUlaunchAttribute *attrs;
        unsigned int numAttrs;
};

struct cudaDeviceProp {
        char name[256];
        CUuuid uuid;
        char luid[8];
        unsigned int luidDeviceNodeMask;
        size_t totalGlobalMem, sharedMemPerBlock;
        int regsPerBlock, warpSize;
        size_t memPitch;
        int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
        size_t totalConstMem;
        int major, minor;
        size_t textureAlignment, texturePitchAlignment;
        int multiProcessorCount, integrated, canMapHostMemory;
        int textureLimits[39]; /* maxTexture1D to maxSurfaceCubemapLayered */
        size_t surfaceAlignment;
        int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
        int asyncEngineCount, unifiedAddressing, memoryBusWidth, l2CacheSize;
        int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
        int globalL1CacheSupported, localL1CacheSupported;
        size_t sharedMemPerMultiprocessor;
        int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
        int hostNativeAtomicSupported, pageableMemoryAccess, concurrentManagedAccess;
        int computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
        size_t sharedMemPerBlockOptin;
        int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
        int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
        size_t reservedSharedMemPerBlock;
        int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
        int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
        unsigned int gpuDirectRDMAFlushWritesOptions;
        int gpuDirectRDMAWritesOrdering;
        unsigned int memoryPoolSupportedHandleTypes;
        int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
        int unifiedFunctionPointers, deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
        unsigned int gpuPciDeviceID, gpuPciSubsystemID;
        int hostNumaMultinodeIpcSupported;
        int reserved[56];
};

_Static_assert(sizeof(struct cudaPointerAttributes) == 88, "CUDA runtime ABI");
_Static_assert(sizeof(struct cudaFuncAttributes) == 144, "CUDA runtime ABI");
_Static_assert(sizeof(struct cudaLaunchConfig) == 56, "CUDA runtime ABI");
_Static_assert(sizeof(struct cudaDeviceProp) == 1008, "CUDA runtime ABI");

#define CUDART_API CUDA_API

CUDART_API cudaError_t cudaGetLastError(void);
CUDART_API cudaError_t cudaPeekAtLastError(void);
CUDART_API const char *cudaGetErrorName(cudaError_t error);
CUDART_API const char *cudaGetErrorString(cudaError_t error);
CUDART_API cudaError_t cudaRuntimeGetVersion(int *version);
CUDART_API cudaError_t cudaDriverGetVersion(int *version);
CUDART_API cudaError_t cudaProfilerStart(void);
CUDART_API cudaError_t cudaProfilerStop(void);
CUDART_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function,
                                               unsigned long long flags, int *status);
CUDART_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                        unsigned int version,
                                                        unsigned long long flags, int *status);

CUDART_API cudaError_t cudaGetDeviceCount(int *count);
CUDART_API cudaError_t cudaGetDevice(int *device);
CUDART_API cudaError_t cudaSetDevice(int device);
CUDART_API cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
CUDART_API cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted);
CUDART_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
CUDART_API cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device);
CUDART_API cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
CUDART_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id);
CUDART_API cudaError_t cudaDeviceGetP2PAttribute(int *value, int attribute, int device, int peer);
CUDART_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
CUDART_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
CUDART_API cudaError_t cudaDeviceDisablePeerAccess(int peer);
CUDART_API cudaError_t cudaDeviceSynchronize(void);
CUDART_API cudaError_t cudaDeviceReset(void);
CUDART_API cudaError_t cudaDeviceGetLimit(size_t *value, int limit);
CUDART_API cudaError_t cudaDeviceSetLimit(int limit, size_t value);
CUDART_API cudaError_t cudaDeviceGetCacheConfig(int *config);
CUDART_API cudaError_t cudaDeviceSetCacheConfig(int config);
CUDART_API cudaError_t cudaDeviceGetSharedMemConfig(int *config);
CUDART_API cudaError_t cudaDeviceSetSharedMemConfig(int config);
CUDART_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
CUDART_API cudaError_t cudaGetDeviceFlags(unsigned int *flags);
CUDART_API cudaError_t cudaSetDeviceFlags(unsigned int flags);

CUDART_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
CUDART_API cudaError_t cudaMalloc(void **pointer, size_t size);
CUDART_API cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned int flags);
CUDART_API cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
CUDART_API cudaError_t cudaFree(void *pointer);
CUDART_API cudaError_t cudaMallocHost(void **pointer, size_t size);
CUDART_API cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags);
CUDART_API cudaError_t cudaFreeHost(void *pointer);
CUDART_API cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int flags);
CUDART_API cudaError_t cudaHostUnregister(void *pointer);
CUDART_API cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags);
CUDART_API cudaError_t cudaHostGetFlags(unsigned int *flags, void *pointer);
CUDART_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                                const void *pointer);
CUDART_API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int kind);
CUDART_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int kind,
                                       CUstream stream);
CUDART_API cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                                      size_t size);
CUDART_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                           int from_device, size_t size, CUstream stream);
CUDART_API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                    size_t width, size_t height, int kind);
CUDART_API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                                         size_t from_pitch, size_t width, size_t height, int kind,
                                         CUstream stream);
CUDART_API cudaError_t cudaMemset(void *pointer, int value, size_t size);
CUDART_API cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, CUstream stream);
CUDART_API cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width,
                                    size_t height);
CUDART_API cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width,
                                         size_t height, CUstream stream);
CUDART_API cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size,
                                            CUmemLocation location, unsigned int flags,
                                            CUstream stream);
CUDART_API cudaError_t cudaMemAdvise(const void *pointer, size_t size, int advice,
                                     CUmemLocation location);

CUDART_API cudaError_t cudaMallocAsync(void **pointer, size_t size, CUstream stream);
CUDART_API cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, CUmemoryPool pool,
                                               CUstream stream);
CUDART_API cudaError_t cudaFreeAsync(void *pointer, CUstream stream);
CUDART_API cudaError_t cudaDeviceGetDefaultMemPool(CUmemoryPool *pool, int device);
CUDART_API cudaError_t cudaDeviceGetMemPool(CUmemoryPool *pool, int device);
CUDART_API cudaError_t cudaDeviceSetMemPool(int device, CUmemoryPool pool);
CUDART_API cudaError_t cudaMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties);
CUDART_API cudaError_t cudaMemPoolDestroy(CUmemoryPool pool);
CUDART_API cudaError_t cudaMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUDART_API cudaError_t cudaMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUDART_API cudaError_t cudaMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUDART_API cudaError_t cudaMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access,
                                            size_t n);
CUDART_API cudaError_t cudaMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location);
CUDART_API cudaError_t cudaMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, int type,
                                                          unsigned int flags);
CUDART_API cudaError_t cudaMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
                                                            int type, unsigned int flags);
CUDART_API cudaError_t cudaMemPoolExportPointer(CUmemPoolPtrExportData *data, void *pointer);
CUDART_API cudaError_t cudaMemPoolImportPointer(void **pointer, CUmemoryPool pool,
                                                CUmemPoolPtrExportData *data);

CUDART_API cudaError_t cudaStreamCreate(CUstream *stream);
CUDART_API cudaError_t cudaStreamCreateWithFlags(CUstream *stream, unsigned int flags);
CUDART_API cudaError_t cudaStreamCreateWithPriority(CUstream *stream, unsigned int flags,
                                                    int priority);
CUDART_API cudaError_t cudaStreamDestroy(CUstream stream);
CUDART_API cudaError_t cudaStreamSynchronize(CUstream stream);
CUDART_API cudaError_t cudaStreamQuery(CUstream stream);
CUDART_API cudaError_t cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUDART_API cudaError_t cudaStreamGetPriority(CUstream stream, int *priority);
CUDART_API cudaError_t cudaStreamGetFlags(CUstream stream, unsigned int *flags);
CUDART_API cudaError_t cudaStreamGetId(CUstream stream, unsigned long long *id);
CUDART_API cudaError_t cudaStreamGetDevice(CUstream stream, int *device);
CUDART_API cudaError_t cudaStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
                                             unsigned int flags);
CUDART_API cudaError_t cudaLaunchHostFunc(CUstream stream, CUhostFn function, void *data);
CUDART_API cudaError_t cudaEventCreate(CUevent *event);
CUDART_API cudaError_t cudaEventCreateWithFlags(CUevent *event, unsigned int flags);
CUDART_API cudaError_t cudaEventDestroy(CUevent event);
CUDART_API cudaError_t cudaEventRecord(CUevent event, CUstream stream);
CUDART_API cudaError_t cudaEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUDART_API cudaError_t cudaEventQuery(CUevent event);
CUDART_API cudaError_t cudaEventSynchronize(CUevent event);
CUDART_API cudaError_t cudaEventElapsedTime(float *milliseconds, CUevent start, CUevent end);

CUDART_API cudaError_t cudaStreamBeginCapture(CUstream stream, int mode);
CUDART_API cudaError_t cudaStreamEndCapture(CUstream stream, CUgraph *graph);
CUDART_API cudaError_t cudaStreamIsCapturing(CUstream stream, int *status);
CUDART_API cudaError_t cudaStreamGetCaptureInfo(CUstream stream, int *status,
                                                unsigned long long *id, CUgraph *graph,
                                                const CUgraphNode **dependencies,
                                                const void **edges, size_t *n);
CUDART_API cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode);
CUDART_API cudaError_t cudaGraphCreate(CUgraph *graph, unsigned int flags);
CUDART_API cudaError_t cudaGraphDestroy(CUgraph graph);
CUDART_API cudaError_t cudaGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n);
CUDART_API cudaError_t cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph,
                                            unsigned long long flags);
CUDART_API cudaError_t cudaGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                                     unsigned long long flags);
CUDART_API cudaError_t cudaGraphUpload(CUgraphExec exec, CUstream stream);
CUDART_API cudaError_t cudaGraphLaunch(CUgraphExec exec, CUstream stream);
CUDART_API cudaError_t cudaGraphExecDestroy(CUgraphExec exec);

/* A kernel by its handle (struct kernel of src/cudart/kernel.c), or by the host function beside it. */
CUDART_API cudaError_t cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block,
                                        void **arguments, size_t shared_bytes, CUstream stream);
CUDART_API cudaError_t cudaLaunchCooperativeKernel(const void *function, struct dim3 grid,
                                                   struct dim3 block, void **arguments,
                                                   size_t shared_bytes, CUstream stream);
CUDART_API cudaError_t cudaLaunchKernelExC(const struct cudaLaunchConfig *config,
                                           const void *function, void **arguments);
CUDART_API cudaError_t cudaGetFuncBySymbol(CUfunction *ret_function, const void *function);
CUDART_API cudaError_t cudaGetKernel(void **kernel, const void *function);
CUDART_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                             const void *function);
CUDART_API cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value);
CUDART_API cudaError_t cudaFuncSetCacheConfig(const void *function, int config);
CUDART_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                     const void *function,
                                                                     int block_size,
                                                                     size_t shared_bytes);
CUDART_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        int *blocks, const void *function, int block_size, size_t shared_bytes, unsigned int flags);

/* What code that nvcc has made calls: from constructors, and for <<< >>>. */
CUDART_API void **__cudaRegisterFatBinary(void *wrapper);
CUDART_API void __cudaRegisterFatBinaryEnd(void **binary);
CUDART_API void __cudaUnregisterFatBinary(void **binary);
CUDART_API char __cudaInitModule(void **binary);
CUDART_API void __cudaRegisterFunction(void **binary, const char *function, char *device_function,
                                       const char *name, int thread_limit, void *thread,
                                       void *block, void *block_size, void *grid_size,
                                       int *warp_size);
CUDART_API void __cudaRegisterVar(void **binary, char *host, char *device, const char *name,
                                  int is_external, size_t size, int is_constant, int is_global);
CUDART_API void __cudaRegisterManagedVar(void **binary, void **host, char *device, const char *name,
                                         int is_external, size_t size, int is_constant,
                                         int is_global);
CUDART_API void __cudaRegisterHostVar(void **binary, const char *name, char *host, size_t size);
CUDART_API unsigned int __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block,
                                                    size_t shared_bytes, CUstream stream);
CUDART_API cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block,
                                                  size_t *shared_bytes, void *stream);
CUDART_API cudaError_t __cudaGetKernel(void **kernel, const void *function);
CUDART_API cudaError_t __cudaLaunchKernel(void *kernel, struct dim3 grid, struct dim3 block,
                                          void **arguments, size_t shared_bytes, CUstream stream);

#endif
