/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_CUDA_H
#define ABI_CUDA_H

/*
 * The CUDA driver interface, as far as we touch it: our own declarations, made
 * from the public documentation of the CUDA driver API (12.8 to 13.0). Names and
 * layouts are the interface's; tests/abi compares them with NVIDIA's cuda.h where
 * a machine has one.
 *
 * Only functions that we define or call are declared. Each has the name that the
 * library exports: cuMemAlloc_v2, not the macro cuMemAlloc.
 */

#include "abi/cuda-types.h"

/*
 * Functions. CUDA_API is what a definition or an import of one looks like; code
 * that must find them at run time takes their types: __typeof__(&cuInit).
 */
#define CUDA_API __attribute__((visibility("default")))

CUDA_API CUresult cuInit(unsigned int flags);
CUDA_API CUresult cuDriverGetVersion(int *version);
CUDA_API CUresult cuGetErrorName(CUresult error, const char **name);
CUDA_API CUresult cuGetErrorString(CUresult error, const char **text);
CUDA_API CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                   uint64_t flags);
CUDA_API CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                      uint64_t flags, int *status);
CUDA_API CUresult cuGetExportTable(const void **table, const CUuuid *id);

CUDA_API CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUDA_API CUresult cuDeviceGetCount(int *count);
CUDA_API CUresult cuDeviceGetName(char *name, int length, CUdevice device);
CUDA_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUDA_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUDA_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
CUDA_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUDA_API CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device);
CUDA_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);

CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUDA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUDA_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUDA_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUDA_API CUresult cuCtxDestroy_v2(CUcontext context);
CUDA_API CUresult cuCtxAttach(CUcontext *context, unsigned int flags);
CUDA_API CUresult cuCtxDetach(CUcontext context);
CUDA_API CUresult cuCtxGetCurrent(CUcontext *context);
CUDA_API CUresult cuCtxSetCurrent(CUcontext context);
CUDA_API CUresult cuCtxPushCurrent_v2(CUcontext context);
CUDA_API CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUDA_API CUresult cuCtxGetDevice(CUdevice *device);
CUDA_API CUresult cuCtxSynchronize(void);
CUDA_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUDA_API CUresult cuCtxDisablePeerAccess(CUcontext peer);
CUDA_API CUresult cuThreadExchangeStreamCaptureMode(int *mode);

CUDA_API CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size);
CUDA_API CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width,
                                     size_t height, unsigned int element_size);
CUDA_API CUresult cuMemFree_v2(CUdeviceptr pointer);
CUDA_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer);
CUDA_API CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags);
CUDA_API CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream);
CUDA_API CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUDA_API CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned int flags);
CUDA_API CUresult cuMemAllocHost_v2(void **pointer, size_t size);
CUDA_API CUresult cuMemFreeHost(void *pointer);
CUDA_API CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned int flags);
CUDA_API CUresult cuMemHostUnregister(void *pointer);
CUDA_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags);
CUDA_API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                                        CUdeviceptr pointer);
CUDA_API CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes,
                                         void **data, CUdeviceptr pointer);
CUDA_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                        CUdeviceptr pointer);

CUDA_API CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment,
                                      CUdeviceptr address, unsigned long long flags);
CUDA_API CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size);
CUDA_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                              const CUmemAllocationProp *prop, unsigned long long flags);
CUDA_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUDA_API CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                           CUmemGenericAllocationHandle handle, unsigned long long flags);
CUDA_API CUresult cuMemUnmap(CUdeviceptr pointer, size_t size);
CUDA_API CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access,
                                 size_t count);
CUDA_API CUresult cuMemGetAllocationGranularity(size_t *granularity,
                                                const CUmemAllocationProp *prop, int option);
CUDA_API CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                               int type, unsigned long long flags);
CUDA_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                 void *shareable, int type);
CUDA_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer);
CUDA_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                         CUmemGenericAllocationHandle handle);
CUDA_API CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const void *prop);
CUDA_API CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset,
                                     CUmemGenericAllocationHandle handle, size_t memory_offset,
                                     size_t size, unsigned long long flags);

CUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size);
CUDA_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size);
CUDA_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size);
CUDA_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size,
                                       CUstream stream);
CUDA_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream);
CUDA_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size,
                                       CUstream stream);
CUDA_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n);
CUDA_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t n);
CUDA_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream stream);

CUDA_API CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUDA_API CUresult cuStreamDestroy_v2(CUstream stream);
CUDA_API CUresult cuStreamSynchronize(CUstream stream);
CUDA_API CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUDA_API CUresult cuStreamQuery(CUstream stream);
CUDA_API CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUDA_API CUresult cuEventDestroy_v2(CUevent event);
CUDA_API CUresult cuEventRecord(CUevent event, CUstream stream);
CUDA_API CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
CUDA_API CUresult cuEventSynchronize(CUevent event);
CUDA_API CUresult cuEventQuery(CUevent event);
CUDA_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUDA_API CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUDA_API CUresult cuModuleUnload(CUmodule module);
CUDA_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUDA_API CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                 void **parameters, void **extra);
CUDA_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                   void **parameters, void **extra);
CUDA_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data);

CUDA_API CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUDA_API CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUDA_API CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device);
CUDA_API CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int n_affinity,
                                 unsigned int flags, CUdevice device);
CUDA_API CUresult cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags,
                                 CUdevice device);
CUDA_API CUresult cuCtxDestroy(CUcontext context);

CUDA_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t size, CUstream stream);
CUDA_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                          CUstream stream);
CUDA_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                                               CUstream stream);
CUDA_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream);
CUDA_API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, int type,
                                                     unsigned long long flags);
CUDA_API CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, int type,
                                                   unsigned long long flags);
CUDA_API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer);
CUDA_API CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                         CUmemPoolPtrExportData *data);
CUDA_API CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr pointer, size_t size,
                                                int type, unsigned long long flags);
CUDA_API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer);
CUDA_API CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle,
                                     unsigned int flags);
CUDA_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle,
                                        unsigned int flags);
CUDA_API CUresult cuIpcCloseMemHandle(CUdeviceptr pointer);

CUDA_API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor);
CUDA_API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
CUDA_API CUresult cuArrayDestroy(CUarray array);
CUDA_API CUresult cuMipmappedArrayCreate(CUmipmappedArray *array,
                                         const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                         unsigned int levels);
CUDA_API CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);

CUDA_API CUresult cuGraphDestroy(CUgraph graph);
CUDA_API CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
                                         const CUgraphNode *dependencies, size_t n,
                                         CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUDA_API CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph,
                                        const CUgraphNode *dependencies, size_t n,
                                        CUdeviceptr pointer);
CUDA_API CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t n, CUgraphNodeParams *params);
CUDA_API CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph,
                                    const CUgraphNode *dependencies, const void *edges, size_t n,
                                    CUgraphNodeParams *params);

CUDA_API CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph,
                                       const CUgraphNode *dependencies, size_t n,
                                       const CUDA_MEMCPY3D *copy, CUcontext context);
CUDA_API CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph,
                                       const CUgraphNode *dependencies, size_t n,
                                       const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context);
CUDA_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_MEMCPY3D *copy, CUcontext context);
CUDA_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_MEMSET_NODE_PARAMS *set,
                                                 CUcontext context);
CUDA_API CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params);
CUDA_API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           CUgraphNodeParams *params);

CUDA_API CUresult cuStreamDestroy(CUstream stream);
CUDA_API CUresult cuStreamBeginCapture(CUstream stream);
CUDA_API CUresult cuStreamBeginCapture_ptsz(CUstream stream);
CUDA_API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUDA_API CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode);
CUDA_API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                              const CUgraphNode *dependencies, const void *edges,
                                              size_t n, int mode);
CUDA_API CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                   const CUgraphNode *dependencies,
                                                   const void *edges, size_t n, int mode);
CUDA_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUDA_API CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph);
CUDA_API CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUDA_API CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *status);

CUDA_API CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state);
CUDA_API CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid);
CUDA_API CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args);
CUDA_API CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args);
CUDA_API CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args);
CUDA_API CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args);

/*
 * The rest of what the simulated driver defines; enumerations that it only stores are int.
 */
CUDA_API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id);
CUDA_API CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device,
                                          CUdevice peer);
CUDA_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device);
CUDA_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUDA_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUDA_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUDA_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);

CUDA_API CUresult cuCtxSynchronize_v2(CUcontext context);
CUDA_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context);
CUDA_API CUresult cuCtxGetFlags(unsigned int *flags);
CUDA_API CUresult cuCtxGetId(CUcontext context, unsigned long long *id);
CUDA_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version);
CUDA_API CUresult cuCtxGetLimit(size_t *value, int limit);
CUDA_API CUresult cuCtxSetLimit(int limit, size_t value);
CUDA_API CUresult cuCtxResetPersistingL2Cache(void);
CUDA_API CUresult cuCtxGetCacheConfig(int *config);
CUDA_API CUresult cuCtxSetCacheConfig(int config);
CUDA_API CUresult cuCtxGetSharedMemConfig(int *config);
CUDA_API CUresult cuCtxSetSharedMemConfig(int config);
CUDA_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);

CUDA_API CUresult cuModuleLoad(CUmodule *module, const char *path);
CUDA_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n,
                                     int *options, void **values);
CUDA_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUDA_API CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module);
CUDA_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *size, CUmodule module,
                                       const char *name);
CUDA_API CUresult cuModuleGetLoadingMode(int *mode);
CUDA_API CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *jit_options,
                                    void **jit_values, unsigned int n_jit, int *options,
                                    void **values, unsigned int n);
CUDA_API CUresult cuLibraryUnload(CUlibrary library);
CUDA_API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUDA_API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUDA_API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUDA_API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function);
CUDA_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
CUDA_API CUresult cuFuncSetCacheConfig(CUfunction function, int config);
CUDA_API CUresult cuFuncGetName(const char **name, CUfunction function);
CUDA_API CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
CUDA_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                              int block_size, size_t shared_bytes);
CUDA_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                            unsigned int grid_y, unsigned int grid_z,
                                            unsigned int block_x, unsigned int block_y,
                                            unsigned int block_z, unsigned int shared_bytes,
                                            CUstream stream, void **parameters);

CUDA_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUDA_API CUresult cuStreamGetAttribute(CUstream stream, int attribute,
                                       CUlaunchAttributeValue *value);
CUDA_API CUresult cuStreamSetAttribute(CUstream stream, int attribute,
                                       const CUlaunchAttributeValue *value);
CUDA_API CUresult cuStreamCopyAttributes(CUstream to, CUstream from);
CUDA_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUDA_API CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags);
CUDA_API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
                                      unsigned int flags);
CUDA_API CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags);
CUDA_API CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUDA_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUDA_API CUresult cuStreamGetId(CUstream stream, unsigned long long *id);
CUDA_API CUresult cuStreamGetDevice(CUstream stream, CUdevice *device);
CUDA_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUDA_API CUresult cuCtxRecordEvent(CUcontext context, CUevent event);
CUDA_API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end);
CUDA_API CUresult cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *id);
CUDA_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id,
                                            CUgraph *graph, const CUgraphNode **dependencies,
                                            size_t *n);
CUDA_API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id,
                                            CUgraph *graph, const CUgraphNode **dependencies,
                                            const void **edges, size_t *n);
CUDA_API CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUDA_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n);
CUDA_API CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                     char *log, size_t log_size);
CUDA_API CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                        char *log, size_t log_size);
CUDA_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                              unsigned long long flags);
CUDA_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int attribute,
                                                CUlaunchAttributeValue *value);
CUDA_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int attribute,
                                                const CUlaunchAttributeValue *value);
CUDA_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
                                    int *update_result);
CUDA_API CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *params);
CUDA_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *params);
CUDA_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
CUDA_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUDA_API CUresult cuGraphExecDestroy(CUgraphExec exec);

CUDA_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                                 CUdeviceptr pointer);
CUDA_API CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer);
CUDA_API CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device,
                                     CUstream stream);
CUDA_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation location,
                                        unsigned int flags, CUstream stream);
CUDA_API CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr pointer, size_t size, CUdevice device,
                                          CUstream stream);
CUDA_API CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, size_t size,
                                             CUmemLocation location, unsigned int flags,
                                             CUstream stream);
CUDA_API CUresult cuMemPrefetchBatchAsync(CUdeviceptr *pointers, size_t *sizes, size_t n,
                                          CUmemLocation *locations, size_t *first,
                                          size_t n_locations, unsigned long long flags,
                                          CUstream stream);
CUDA_API CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr *pointers, size_t *sizes, size_t n,
                                               CUmemLocation *locations, size_t *first,
                                               size_t n_locations, unsigned long long flags,
                                               CUstream stream);
CUDA_API CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *pointers, size_t *sizes, size_t n,
                                                    CUmemLocation *locations, size_t *first,
                                                    size_t n_locations, unsigned long long flags,
                                                    CUstream stream);
CUDA_API CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr *pointers, size_t *sizes,
                                                         size_t n, CUmemLocation *locations,
                                                         size_t *first, size_t n_locations,
                                                         unsigned long long flags, CUstream stream);
CUDA_API CUresult cuMemAdvise(CUdeviceptr pointer, size_t size, int advice, CUdevice device);
CUDA_API CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t size, int advice,
                                 CUmemLocation location);
CUDA_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type);
CUDA_API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type);
CUDA_API CUresult cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool);
CUDA_API CUresult cuGLCtxCreate(CUcontext *context, unsigned int flags, CUdevice device);
CUDA_API CUresult cuGLCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUDA_API CUresult cuVDPAUCtxCreate(CUcontext *context, unsigned int flags, CUdevice device,
                                   uint32_t vdpau, void *get_address);
CUDA_API CUresult cuVDPAUCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device,
                                      uint32_t vdpau, void *get_address);
CUDA_API CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device,
                                   unsigned int flags);
CUDA_API CUresult cuGreenCtxDestroy(CUgreenCtx green);
CUDA_API CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green);
CUDA_API CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
                                         int priority);
CUDA_API CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event);
CUDA_API CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, int type);
CUDA_API CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource, int type);
CUDA_API CUresult cuDevSmResourceSplitByCount(CUdevResource *parts, unsigned int *n,
                                              const CUdevResource *whole, CUdevResource *rest,
                                              unsigned int flags, unsigned int least);
CUDA_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description,
                                            CUdevResource *resources, unsigned int n);
CUDA_API CUresult cuImportExternalMemory(CUexternalMemory *memory, const void *description);
CUDA_API CUresult cuDestroyExternalMemory(CUexternalMemory memory);
CUDA_API CUresult cuImportExternalSemaphore(CUexternalSemaphore *semaphore,
                                            const void *description);
CUDA_API CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore);
CUDA_API CUresult cuGraphicsEGLRegisterImage(CUgraphicsResource *resource, void *image,
                                             unsigned int flags);
CUDA_API CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *resource, unsigned int buffer,
                                             unsigned int flags);
CUDA_API CUresult cuGraphicsGLRegisterImage(CUgraphicsResource *resource, unsigned int image,
                                            unsigned int target, unsigned int flags);
CUDA_API CUresult cuGraphicsVDPAURegisterOutputSurface(CUgraphicsResource *resource,
                                                       uint32_t surface, unsigned int flags);
CUDA_API CUresult cuGraphicsVDPAURegisterVideoSurface(CUgraphicsResource *resource,
                                                      uint32_t surface, unsigned int flags);
CUDA_API CUresult cuGraphicsUnregisterResource(CUgraphicsResource resource);
CUDA_API CUresult cuEGLStreamConsumerConnect(CUeglStreamConnection *connection, void *stream);
CUDA_API CUresult cuEGLStreamConsumerConnectWithFlags(CUeglStreamConnection *connection,
                                                      void *stream, unsigned int flags);
CUDA_API CUresult cuEGLStreamConsumerDisconnect(CUeglStreamConnection *connection);
CUDA_API CUresult cuEGLStreamProducerConnect(CUeglStreamConnection *connection, void *stream,
                                             int32_t width, int32_t height);
CUDA_API CUresult cuEGLStreamProducerDisconnect(CUeglStreamConnection *connection);
CUDA_API CUresult cuGLRegisterBufferObject(unsigned int buffer);
CUDA_API CUresult cuGLUnregisterBufferObject(unsigned int buffer);
CUDA_API CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int n, CUstream stream);
CUDA_API CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int n, CUstream stream);
CUDA_API CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
                                        size_t offset, CUmemGenericAllocationHandle handle,
                                        size_t memory_offset, size_t size,
                                        unsigned long long flags);
CUDA_API CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset,
                                      CUdeviceptr pointer, size_t size, unsigned long long flags);
CUDA_API CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
                                         size_t offset, CUdeviceptr pointer, size_t size,
                                         unsigned long long flags);
/* Of the interface before CUDA 3.2, with addresses of 32 bits. */
CUDA_API CUresult cuMemAlloc(unsigned int *pointer, unsigned int size);
CUDA_API CUresult cuMemAllocPitch(unsigned int *pointer, unsigned int *pitch, unsigned int width,
                                  unsigned int height, unsigned int element_size);
CUDA_API CUresult cuArrayCreate(CUarray *array, const void *descriptor);
CUDA_API CUresult cuArray3DCreate(CUarray *array, const void *descriptor);
CUDA_API CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle multicast, CUdevice device);
CUDA_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUDA_API CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUDA_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUDA_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUDA_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUDA_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access,
                                     size_t count);
CUDA_API CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location);
CUDA_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array);
CUDA_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array);
CUDA_API CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmapped,
                                           unsigned int level);

CUDA_API CUresult cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
                                    const CUDA_TEXTURE_DESC *texture, const void *view);
CUDA_API CUresult cuTexObjectDestroy(CUtexObject object);

CUDA_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size);
CUDA_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream);
CUDA_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                               CUcontext from_context, size_t size);
CUDA_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                    CUcontext from_context, size_t size, CUstream stream);
CUDA_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUDA_API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy);
CUDA_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUDA_API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n);
CUDA_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream);
CUDA_API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream);
CUDA_API CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                  size_t height);
CUDA_API CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                   size_t height);
CUDA_API CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                   size_t height);
CUDA_API CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                    size_t height, CUstream stream);
CUDA_API CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value,
                                     size_t width, size_t height, CUstream stream);
CUDA_API CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                     size_t height, CUstream stream);
CUDA_API CUresult cuProfilerStart(void);
CUDA_API CUresult cuProfilerStop(void);

#endif
