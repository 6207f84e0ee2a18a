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

#include <stddef.h>
#include <stdint.h>

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef enum {
        CUDA_SUCCESS = 0,
        CUDA_ERROR_INVALID_VALUE = 1,
        CUDA_ERROR_OUT_OF_MEMORY = 2,
        CUDA_ERROR_NOT_INITIALIZED = 3,
        CUDA_ERROR_DEINITIALIZED = 4,
        CUDA_ERROR_NO_DEVICE = 100,
        CUDA_ERROR_INVALID_DEVICE = 101,
        CUDA_ERROR_INVALID_IMAGE = 200,
        CUDA_ERROR_INVALID_CONTEXT = 201,
        CUDA_ERROR_MAP_FAILED = 205,
        CUDA_ERROR_UNMAP_FAILED = 206,
        CUDA_ERROR_ECC_UNCORRECTABLE = 214,
        CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
        CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
        CUDA_ERROR_CONTAINED = 226,
        CUDA_ERROR_INVALID_SOURCE = 300,
        CUDA_ERROR_FILE_NOT_FOUND = 301,
        CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
        CUDA_ERROR_OPERATING_SYSTEM = 304,
        CUDA_ERROR_INVALID_HANDLE = 400,
        CUDA_ERROR_ILLEGAL_STATE = 401,
        CUDA_ERROR_NOT_FOUND = 500,
        CUDA_ERROR_NOT_READY = 600,
        CUDA_ERROR_ILLEGAL_ADDRESS = 700,
        CUDA_ERROR_LAUNCH_TIMEOUT = 702,
        CUDA_ERROR_ASSERT = 710,
        CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
        CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
        CUDA_ERROR_MISALIGNED_ADDRESS = 716,
        CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
        CUDA_ERROR_INVALID_PC = 718,
        CUDA_ERROR_LAUNCH_FAILED = 719,
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
        CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
        CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
        CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
        CUDA_ERROR_NOT_PERMITTED = 800,
        CUDA_ERROR_NOT_SUPPORTED = 801,
        CUDA_ERROR_SYSTEM_NOT_READY = 802,
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
        CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
        CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
        CUDA_ERROR_TIMEOUT = 909,
        CUDA_ERROR_UNKNOWN = 999,
} CUresult;

typedef struct {
        unsigned char bytes[16];
} CUuuid;

typedef enum {
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
        CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
        CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
        CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
        CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
        CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
        CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
        CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
        CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
        CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
        CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT = 51,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
        CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
        CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
        CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE = 108,
        CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE = 109,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
} CUdevice_attribute;

typedef enum {
        CU_POINTER_ATTRIBUTE_CONTEXT = 1,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
        CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
        CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
        CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
        CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
        CU_POINTER_ATTRIBUTE_MAPPED = 13,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
        CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
        CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
        CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
} CUpointer_attribute;

typedef enum {
        CU_MEMORYTYPE_HOST = 1,
        CU_MEMORYTYPE_DEVICE = 2,
        CU_MEMORYTYPE_ARRAY = 3,
        CU_MEMORYTYPE_UNIFIED = 4,
} CUmemorytype;

/* Virtual memory management. */

#define CU_MEM_ALLOCATION_TYPE_PINNED            1
#define CU_MEM_LOCATION_TYPE_DEVICE              1
#define CU_MEM_HANDLE_TYPE_NONE                  0
#define CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR 1
#define CU_MEM_HANDLE_TYPE_FABRIC                8
#define CU_MEM_ACCESS_FLAGS_PROT_NONE            0
#define CU_MEM_ACCESS_FLAGS_PROT_READ            1
#define CU_MEM_ACCESS_FLAGS_PROT_READWRITE       3
#define CU_MEM_ALLOC_GRANULARITY_MINIMUM         0
#define CU_MEM_ALLOC_GRANULARITY_RECOMMENDED     1

typedef struct {
        int type; /* CU_MEM_LOCATION_TYPE_* */
        int id;
} CUmemLocation;

typedef struct {
        int type;                 /* CU_MEM_ALLOCATION_TYPE_* */
        int requestedHandleTypes; /* CU_MEM_HANDLE_TYPE_* */
        CUmemLocation location;
        void *win32HandleMetaData;
        struct {
                unsigned char compressionType;
                unsigned char gpuDirectRDMACapable;
                unsigned short usage;
                unsigned char reserved[4];
        } allocFlags;
} CUmemAllocationProp;

typedef struct {
        CUmemLocation location;
        int flags; /* CU_MEM_ACCESS_FLAGS_* */
} CUmemAccessDesc;

/* Streams, events, launches. */

#define CU_STREAM_DEFAULT               0u
#define CU_STREAM_NON_BLOCKING          1u
#define CU_STREAM_LEGACY                ((CUstream)0x1)
#define CU_STREAM_PER_THREAD            ((CUstream)0x2)
#define CU_EVENT_DEFAULT                0u
#define CU_EVENT_BLOCKING_SYNC          1u
#define CU_EVENT_DISABLE_TIMING         2u
#define CU_STREAM_CAPTURE_MODE_GLOBAL   0
#define CU_STREAM_CAPTURE_MODE_RELAXED  2
#define CU_STREAM_CAPTURE_STATUS_ACTIVE 1
#define CU_STREAM_CAPTURE_STATUS_NONE   0
#define CU_MEMHOSTALLOC_PORTABLE        1u
#define CU_MEMHOSTALLOC_DEVICEMAP       2u
#define CU_MEMHOSTREGISTER_PORTABLE     1u
#define CU_MEMHOSTREGISTER_DEVICEMAP    2u
#define CU_MEM_ATTACH_GLOBAL            1u

typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

#define CU_LIMIT_STACK_SIZE               0x00
#define CU_LIMIT_PRINTF_FIFO_SIZE         0x01
#define CU_LIMIT_MALLOC_HEAP_SIZE         0x02
#define CU_LIMIT_MAX_L2_FETCH_GRANULARITY 0x05
#define CU_LIMIT_PERSISTING_L2_CACHE_SIZE 0x06

/* Attributes of launches; some are also those of streams and of kernel nodes. */
#define CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW   1
#define CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY 3
#define CU_LAUNCH_ATTRIBUTE_PRIORITY               8
#define CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN        10

#define CU_ACCESS_PROPERTY_NORMAL     0
#define CU_ACCESS_PROPERTY_STREAMING  1
#define CU_ACCESS_PROPERTY_PERSISTING 2

typedef struct {
        void *base_ptr;
        size_t num_bytes; /* 0: no window */
        float hitRatio;
        int hitProp, missProp; /* CU_ACCESS_PROPERTY_* */
} CUaccessPolicyWindow;

typedef union {
        char pad[64];
        CUaccessPolicyWindow accessPolicyWindow;
        int syncPolicy;
        int priority;
        int memSyncDomain;
} CUlaunchAttributeValue;

typedef struct {
        int id; /* CU_LAUNCH_ATTRIBUTE_* */
        char pad[4];
        CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct {
        unsigned int gridDimX, gridDimY, gridDimZ;
        unsigned int blockDimX, blockDimY, blockDimZ;
        unsigned int sharedMemBytes;
        CUstream hStream;
        CUlaunchAttribute *attrs;
        unsigned int numAttrs;
} CUlaunchConfig;

typedef struct {
        size_t srcXInBytes, srcY;
        CUmemorytype srcMemoryType;
        const void *srcHost;
        CUdeviceptr srcDevice;
        CUarray srcArray;
        size_t srcPitch;
        size_t dstXInBytes, dstY;
        CUmemorytype dstMemoryType;
        void *dstHost;
        CUdeviceptr dstDevice;
        CUarray dstArray;
        size_t dstPitch;
        size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

/* Arrays. */

typedef enum {
        CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
        CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
        CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
        CU_AD_FORMAT_SIGNED_INT8 = 0x08,
        CU_AD_FORMAT_SIGNED_INT16 = 0x09,
        CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
        CU_AD_FORMAT_HALF = 0x10,
        CU_AD_FORMAT_FLOAT = 0x20,
} CUarray_format;

#define CUDA_ARRAY3D_LAYERED          0x01u
#define CUDA_ARRAY3D_SPARSE           0x40u
#define CUDA_ARRAY3D_DEFERRED_MAPPING 0x80u

typedef struct {
        size_t Width, Height;
        CUarray_format Format;
        unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
        size_t Width, Height, Depth;
        CUarray_format Format;
        unsigned int NumChannels;
        unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

/* Textures. */

#define CU_RESOURCE_TYPE_LINEAR  2
#define CU_RESOURCE_TYPE_PITCH2D 3

typedef struct {
        int resType; /* CU_RESOURCE_TYPE_* */
        union {
                struct {
                        CUdeviceptr devPtr;
                        CUarray_format format;
                        unsigned int numChannels;
                        size_t sizeInBytes;
                } linear;
                struct {
                        CUdeviceptr devPtr;
                        CUarray_format format;
                        unsigned int numChannels;
                        size_t width, height, pitchInBytes;
                } pitch2D;
                int reserved[32];
        } res;
        unsigned int flags;
} CUDA_RESOURCE_DESC;

typedef struct {
        int addressMode[3];
        int filterMode;
        unsigned int flags;
        unsigned int maxAnisotropy;
        int mipmapFilterMode;
        float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
        float borderColor[4];
        int reserved[12];
} CUDA_TEXTURE_DESC;

/* Memory in graphs. */

typedef struct {
        int allocType;
        int handleTypes;
        CUmemLocation location;
        void *win32SecurityAttributes;
        size_t maxSize;
        unsigned short usage;
        unsigned char reserved[54];
} CUmemPoolProps;

typedef struct {
        CUmemPoolProps poolProps;
        const CUmemAccessDesc *accessDescs;
        size_t accessDescCount;
        size_t bytesize;
        CUdeviceptr dptr; /* set by the driver */
} CUDA_MEM_ALLOC_NODE_PARAMS;

#define CU_GRAPH_NODE_TYPE_MEM_ALLOC 10
#define CU_GRAPH_NODE_TYPE_MEM_FREE  11

typedef struct {
        int type; /* CU_GRAPH_NODE_TYPE_* */
        int reserved0[3];
        union {
                long long reserved1[29];
                CUDA_MEM_ALLOC_NODE_PARAMS alloc;
                CUdeviceptr free;
        };
        long long reserved2;
} CUgraphNodeParams;

/* Sharing between processes. */

typedef struct {
        char reserved[64];
} CUipcMemHandle;

#define CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS 1u

typedef struct {
        unsigned char reserved[64];
} CUmemPoolPtrExportData;

#define CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD 1

/*
 * Process checkpoint. All arguments are 64 zeroed bytes in every version: spec section 1.2.
 *
 * The checkpoint to custom storage came with CUDA 13.4: the types, names and order of its fields are
 * those of the driver API's public documentation of 13.4 (CUcheckpointCustomStorageInfo, ...PerDeviceData,
 * ...CheckpointArgs, ...RestoreArgs). What documentation does not show, padding, follows from C's rules
 * for these types; no header of 13.4 has been compared with it here.
 */

typedef enum {
        CU_PROCESS_STATE_RUNNING = 0,
        CU_PROCESS_STATE_LOCKED = 1,
        CU_PROCESS_STATE_CHECKPOINTED = 2,
        CU_PROCESS_STATE_FAILED = 3,
        CU_PROCESS_STATE_CHECKPOINTING = 4, /* 13.4: between the call and its completion */
        CU_PROCESS_STATE_RESTORING = 5,
} CUprocessState;

typedef struct CUcheckpointOperation_st *CUcheckpointOperationHandle;

/* All memory of the target on one device, mapped into the caller's primary context there. */
typedef struct {
        CUdeviceptr devPtr;
        size_t size;
        CUstream stream; /* tells the device; the completion waits for it */
} CUcheckpointCustomStoragePerDeviceData;

/* The driver's; it is gone with the completion, also with one that fails. */
typedef struct {
        CUcheckpointOperationHandle handle;
        CUcheckpointCustomStoragePerDeviceData *perDeviceData;
        unsigned int deviceCount;
} CUcheckpointCustomStorageInfo;

typedef struct {
        unsigned int timeoutMs; /* 0 waits for ever */
        unsigned int reserved0;
        uint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct {
        CUcheckpointCustomStorageInfo **customStorageInfo_out; /* 13.4; NULL: the driver keeps it */
        uint64_t reserved[7];
} CUcheckpointCheckpointArgs;

typedef struct {
        CUuuid oldUuid;
        CUuuid newUuid;
} CUcheckpointGpuPair;

typedef struct {
        CUcheckpointGpuPair *gpuPairs; /* NULL with a count crashes the real driver */
        unsigned int gpuPairsCount;
        unsigned int padding0;
        CUcheckpointCustomStorageInfo **customStorageInfo_out; /* 13.4 */
        char reserved[40];
} CUcheckpointRestoreArgs;

typedef struct {
        uint64_t reserved[8];
} CUcheckpointUnlockArgs;

_Static_assert(sizeof(CUmemAllocationProp) == 32, "CUDA ABI");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "CUDA ABI");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUDA ABI");
_Static_assert(sizeof(CUaccessPolicyWindow) == 32, "CUDA ABI");
_Static_assert(sizeof(CUlaunchAttributeValue) == 64, "CUDA ABI");
_Static_assert(sizeof(CUlaunchAttribute) == 72, "CUDA ABI");
_Static_assert(sizeof(CUDA_MEMCPY2D) == 128, "CUDA ABI");
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "CUDA ABI");
_Static_assert(sizeof(CUDA_RESOURCE_DESC) == 144, "CUDA ABI");
_Static_assert(sizeof(CUDA_TEXTURE_DESC) == 104, "CUDA ABI");
_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "CUDA ABI");
_Static_assert(sizeof(CUgraphNodeParams) == 256, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointLockArgs) == 64, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointCheckpointArgs) == 64, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointRestoreArgs) == 64, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointUnlockArgs) == 64, "CUDA ABI");
_Static_assert(offsetof(CUcheckpointCheckpointArgs, customStorageInfo_out) == 0, "CUDA ABI");
_Static_assert(offsetof(CUcheckpointRestoreArgs, customStorageInfo_out) == 16, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointCustomStoragePerDeviceData) == 24 &&
                       offsetof(CUcheckpointCustomStoragePerDeviceData, size) == 8 &&
                       offsetof(CUcheckpointCustomStoragePerDeviceData, stream) == 16,
               "CUDA ABI");
_Static_assert(sizeof(CUcheckpointCustomStorageInfo) == 24 &&
                       offsetof(CUcheckpointCustomStorageInfo, perDeviceData) == 8 &&
                       offsetof(CUcheckpointCustomStorageInfo, deviceCount) == 16,
               "CUDA ABI");

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
CUDA_API CUresult cuStreamQuery(CUstream stream);
CUDA_API CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUDA_API CUresult cuEventDestroy_v2(CUevent event);
CUDA_API CUresult cuEventRecord(CUevent event, CUstream stream);
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
CUDA_API CUresult cuCheckpointOperationComplete(CUcheckpointOperationHandle handle);

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
CUDA_API CUresult cuMemAdvise(CUdeviceptr pointer, size_t size, int advice, CUdevice device);
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
