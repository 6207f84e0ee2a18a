/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ABI_CUDA_TYPES_H
#define ABI_CUDA_TYPES_H

/* The types and numbers of the driver interface that cuda.h declares. */

#include <stddef.h>
#include <stdint.h>

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef struct CUgraphicsResource_st *CUgraphicsResource;
typedef struct CUeglStreamConnection_st *CUeglStreamConnection;
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
#define CU_MEM_ALLOCATION_TYPE_MANAGED           2
#define CU_MEM_LOCATION_TYPE_DEVICE              1
#define CU_MEM_LOCATION_TYPE_HOST                2
#define CU_MEM_LOCATION_TYPE_HOST_NUMA           3
#define CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT   4
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

/* CUmemPool_attribute. */
#define CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES   1
#define CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC         2
#define CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES 3
#define CU_MEMPOOL_ATTR_RELEASE_THRESHOLD                 4
#define CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT              5
#define CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH                 6
#define CU_MEMPOOL_ATTR_USED_MEM_CURRENT                  7
#define CU_MEMPOOL_ATTR_USED_MEM_HIGH                     8

typedef struct {
        CUmemPoolProps poolProps;
        const CUmemAccessDesc *accessDescs;
        size_t accessDescCount;
        size_t bytesize;
        CUdeviceptr dptr; /* set by the driver */
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
        size_t srcXInBytes, srcY, srcZ, srcLOD;
        int srcMemoryType; /* CU_MEMORYTYPE_* */
        const void *srcHost;
        CUdeviceptr srcDevice;
        CUarray srcArray;
        void *reserved0;
        size_t srcPitch, srcHeight;
        size_t dstXInBytes, dstY, dstZ, dstLOD;
        int dstMemoryType;
        void *dstHost;
        CUdeviceptr dstDevice;
        CUarray dstArray;
        void *reserved1;
        size_t dstPitch, dstHeight;
        size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
        int flags, reserved;
        CUcontext copyCtx;
        CUDA_MEMCPY3D copyParams;
} CUDA_MEMCPY_NODE_PARAMS;

typedef struct {
        CUdeviceptr dst;
        size_t pitch;
        unsigned int value, elementSize;
        size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
        CUDA_MEMSET_NODE_PARAMS is;
        CUcontext ctx;
} CUDA_MEMSET_NODE_PARAMS_v2;

#define CU_GRAPH_NODE_TYPE_MEMCPY    1
#define CU_GRAPH_NODE_TYPE_MEMSET    2
#define CU_GRAPH_NODE_TYPE_MEM_ALLOC 10
#define CU_GRAPH_NODE_TYPE_MEM_FREE  11

typedef struct {
        int type; /* CU_GRAPH_NODE_TYPE_* */
        int reserved0[3];
        union {
                long long reserved1[29];
                CUDA_MEM_ALLOC_NODE_PARAMS alloc;
                CUDA_MEMCPY_NODE_PARAMS memcpy;
                CUDA_MEMSET_NODE_PARAMS_v2 memset;
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
 * CUDA 13.4 can map the device memory of the process into its caller instead (custom storage), if two members
 * that are reserved here say so. We do not ask for that.
 */

typedef enum {
        CU_PROCESS_STATE_RUNNING = 0,
        CU_PROCESS_STATE_LOCKED = 1,
        CU_PROCESS_STATE_CHECKPOINTED = 2,
        CU_PROCESS_STATE_FAILED = 3,
        CU_PROCESS_STATE_CHECKPOINTING = 4, /* 13.4: to custom storage, until that is completed */
        CU_PROCESS_STATE_RESTORING = 5,
} CUprocessState;

/* What is mapped into a part of a sparse array. */
typedef struct {
        int resourceType;
        void *resource;
        int subresourceType;
        union {
                unsigned int sparseLevel[8];
                unsigned long long miptail[3];
        } subresource;
        int memOperationType, memHandleType;
        CUmemGenericAllocationHandle memHandle;
        unsigned long long offset;
        unsigned int deviceBitMask, flags, reserved[2];
} CUarrayMapInfo;

/* Parts of a device, for green contexts. */
#define CU_GREEN_CTX_DEFAULT_STREAM 1u
#define CU_DEV_RESOURCE_TYPE_SM     1
typedef struct {
        int type;
        unsigned char padding[92];
        union {
                struct {
                        unsigned int smCount;
                } sm;
                unsigned char oversize[48];
        };
} CUdevResource;

typedef struct {
        unsigned int timeoutMs; /* 0 waits for ever */
        unsigned int reserved0;
        uint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct {
        uint64_t reserved[8];
} CUcheckpointCheckpointArgs;

typedef struct {
        CUuuid oldUuid;
        CUuuid newUuid;
} CUcheckpointGpuPair;

typedef struct {
        CUcheckpointGpuPair *gpuPairs; /* NULL with a count crashes the real driver */
        unsigned int gpuPairsCount;
        unsigned int padding0;
        char reserved[48];
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
_Static_assert(sizeof(CUDA_MEMCPY3D) == 200, "CUDA ABI");
_Static_assert(sizeof(CUDA_MEMCPY_NODE_PARAMS) == 216, "CUDA ABI");
_Static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS_v2) == 48, "CUDA ABI");
_Static_assert(sizeof(CUdevResource) == 144, "CUDA ABI");
_Static_assert(sizeof(CUarrayMapInfo) == 96, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointLockArgs) == 64, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointCheckpointArgs) == 64, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointRestoreArgs) == 64, "CUDA ABI");
_Static_assert(sizeof(CUcheckpointUnlockArgs) == 64, "CUDA ABI");

#endif
