/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: how many, which one, what they can. */

#include <string.h>

#include "cudart/runtime.h"

cudaError_t cudaRuntimeGetVersion(int *version)
{
        if (!version)
                return runtime_leave(cudaErrorInvalidValue);
        *version = CUDART_VERSION;
        return cudaSuccess;
}

/* 0 where there is no driver: that is no error. */
cudaError_t cudaDriverGetVersion(int *version)
{
        if (!version)
                return runtime_leave(cudaErrorInvalidValue);
        *version = 0;
        if (runtime_start() == cudaErrorInsufficientDriver)
                return cudaSuccess;
        return runtime_leave((cudaError_t)driver.cuDriverGetVersion(version));
}

cudaError_t cudaProfilerStart(void)
{
        return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
        return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
        cudaError_t error = runtime_start();

        if (!count)
                return runtime_leave(cudaErrorInvalidValue);
        *count = 0;
        return runtime_leave(error ? error : (cudaError_t)driver.cuDeviceGetCount(count));
}

cudaError_t runtime_cudaGetDevice(int *device)
{
        return device ? runtime_get_device(device) : cudaErrorInvalidValue;
}

cudaError_t runtime_cudaSetDevice(int device)
{
        return runtime_set_device(device);
}

cudaError_t runtime_cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
        CUcontext context;

        (void)device_flags;
        return flags ? cudaErrorInvalidValue : runtime_context(&context, device);
}

cudaError_t runtime_cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted)
{
        if (!device || !wanted)
                return cudaErrorInvalidValue;
        *device = 0;
        return cudaSuccess;
}

cudaError_t runtime_cudaDeviceGetAttribute(int *value, int attribute, int device)
{
        return (cudaError_t)driver.cuDeviceGetAttribute(value, (CUdevice_attribute)attribute,
                                                        device);
}

cudaError_t runtime_cudaDeviceGetPCIBusId(char *id, int length, int device)
{
        return (cudaError_t)driver.cuDeviceGetPCIBusId(id, length, device);
}

cudaError_t runtime_cudaDeviceGetByPCIBusId(int *device, const char *id)
{
        return (cudaError_t)driver.cuDeviceGetByPCIBusId(device, id);
}

cudaError_t runtime_cudaDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
        return (cudaError_t)driver.cuDeviceGetP2PAttribute(value, attribute, device, peer);
}

cudaError_t runtime_cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
        return (cudaError_t)driver.cuDeviceCanAccessPeer(can, device, peer);
}

cudaError_t runtime_cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
        CUcontext context;
        cudaError_t error = runtime_context(&context, peer);

        return error ? error : (cudaError_t)driver.cuCtxEnablePeerAccess(context, flags);
}

cudaError_t runtime_cudaDeviceDisablePeerAccess(int peer)
{
        CUcontext context;
        cudaError_t error = runtime_context(&context, peer);

        return error ? error : (cudaError_t)driver.cuCtxDisablePeerAccess(context);
}

cudaError_t runtime_cudaDeviceSynchronize(void)
{
        return (cudaError_t)driver.cuCtxSynchronize();
}

cudaError_t runtime_cudaDeviceReset(void)
{
        return runtime_reset();
}

cudaError_t runtime_cudaDeviceGetLimit(size_t *value, int limit)
{
        return (cudaError_t)driver.cuCtxGetLimit(value, limit);
}

cudaError_t runtime_cudaDeviceSetLimit(int limit, size_t value)
{
        return (cudaError_t)driver.cuCtxSetLimit(limit, value);
}

cudaError_t runtime_cudaDeviceGetCacheConfig(int *config)
{
        return (cudaError_t)driver.cuCtxGetCacheConfig(config);
}

cudaError_t runtime_cudaDeviceSetCacheConfig(int config)
{
        return (cudaError_t)driver.cuCtxSetCacheConfig(config);
}

cudaError_t runtime_cudaDeviceGetSharedMemConfig(int *config)
{
        return (cudaError_t)driver.cuCtxGetSharedMemConfig(config);
}

cudaError_t runtime_cudaDeviceSetSharedMemConfig(int config)
{
        return (cudaError_t)driver.cuCtxSetSharedMemConfig(config);
}

cudaError_t runtime_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
        return (cudaError_t)driver.cuCtxGetStreamPriorityRange(least, greatest);
}

cudaError_t runtime_cudaGetDeviceFlags(unsigned int *flags)
{
        int device, is_active;

        (void)runtime_get_device(&device);
        return (cudaError_t)driver.cuDevicePrimaryCtxGetState(device, flags, &is_active);
}

cudaError_t runtime_cudaSetDeviceFlags(unsigned int flags)
{
        int device;

        (void)runtime_get_device(&device);
        return (cudaError_t)driver.cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

/* What the driver says of a symbol is in @status; the call itself has succeeded then. */
cudaError_t runtime_cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                     unsigned int version, unsigned long long flags,
                                                     int *status)
{
        return (cudaError_t)driver.cuGetProcAddress_v2(symbol, function, (int)version, flags,
                                                       status);
}

cudaError_t runtime_cudaGetDriverEntryPoint(const char *symbol, void **function,
                                            unsigned long long flags, int *status)
{
        return runtime_cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags,
                                                        status);
}

/* Members that are a number of the driver's. What is not here is 0, as it is of the simulated devices. */
static const struct {
        size_t offset;
        int attribute;
        bool is_long;
} numbers[] = {
#define NUMBER(member, attribute)                                                         \
        {                                                                                 \
                offsetof(struct cudaDeviceProp, member), attribute,                       \
                        sizeof(((struct cudaDeviceProp *)NULL)->member) == sizeof(size_t) \
        }
        NUMBER(sharedMemPerBlock, 8),
        NUMBER(regsPerBlock, 12),
        NUMBER(warpSize, 10),
        NUMBER(memPitch, 11),
        NUMBER(maxThreadsPerBlock, 1),
        NUMBER(maxThreadsDim[0], 2),
        NUMBER(maxThreadsDim[1], 3),
        NUMBER(maxThreadsDim[2], 4),
        NUMBER(maxGridSize[0], 5),
        NUMBER(maxGridSize[1], 6),
        NUMBER(maxGridSize[2], 7),
        NUMBER(totalConstMem, 9),
        NUMBER(major, 75),
        NUMBER(minor, 76),
        NUMBER(textureAlignment, 14),
        NUMBER(texturePitchAlignment, 51),
        NUMBER(multiProcessorCount, 16),
        NUMBER(integrated, 18),
        NUMBER(canMapHostMemory, 19),
        NUMBER(surfaceAlignment, 30),
        NUMBER(concurrentKernels, 31),
        NUMBER(ECCEnabled, 32),
        NUMBER(pciBusID, 33),
        NUMBER(pciDeviceID, 34),
        NUMBER(pciDomainID, 50),
        NUMBER(tccDriver, 35),
        NUMBER(asyncEngineCount, 40),
        NUMBER(unifiedAddressing, 41),
        NUMBER(memoryBusWidth, 37),
        NUMBER(l2CacheSize, 38),
        NUMBER(persistingL2CacheMaxSize, 108),
        NUMBER(maxThreadsPerMultiProcessor, 39),
        NUMBER(streamPrioritiesSupported, 78),
        NUMBER(globalL1CacheSupported, 79),
        NUMBER(localL1CacheSupported, 80),
        NUMBER(sharedMemPerMultiprocessor, 81),
        NUMBER(regsPerMultiprocessor, 82),
        NUMBER(managedMemory, 83),
        NUMBER(isMultiGpuBoard, 84),
        NUMBER(multiGpuBoardGroupID, 85),
        NUMBER(hostNativeAtomicSupported, 86),
        NUMBER(pageableMemoryAccess, 88),
        NUMBER(concurrentManagedAccess, 89),
        NUMBER(computePreemptionSupported, 90),
        NUMBER(canUseHostPointerForRegisteredMem, 91),
        NUMBER(cooperativeLaunch, 95),
        NUMBER(sharedMemPerBlockOptin, 97),
        NUMBER(maxBlocksPerMultiProcessor, 106),
        NUMBER(accessPolicyMaxWindowSize, 109),
        NUMBER(reservedSharedMemPerBlock, 111),
        NUMBER(hostRegisterSupported, 99),
        NUMBER(memoryPoolsSupported, 115),
        NUMBER(gpuDirectRDMASupported, 116),
        NUMBER(memoryPoolSupportedHandleTypes, 119),
#undef NUMBER
};

static CUresult get_numbers(struct cudaDeviceProp *properties, int device)
{
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                char *member = (char *)properties + numbers[i].offset;
                int value;
                CUresult result = driver.cuDeviceGetAttribute(
                        &value, (CUdevice_attribute)numbers[i].attribute, device);

                if (result != CUDA_SUCCESS)
                        return result;
                if (numbers[i].is_long)
                        *(size_t *)(void *)member = (size_t)value;
                else
                        *(int *)(void *)member = value;
        }
        return CUDA_SUCCESS;
}

cudaError_t runtime_cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
        CUresult result;

        if (!properties)
                return cudaErrorInvalidValue;
        memset(properties, 0, sizeof(*properties));
        result = driver.cuDeviceGetName(properties->name, sizeof(properties->name), device);
        if (result == CUDA_SUCCESS)
                result = driver.cuDeviceGetUuid(&properties->uuid, device);
        if (result == CUDA_SUCCESS)
                result = driver.cuDeviceTotalMem_v2(&properties->totalGlobalMem, device);
        return (cudaError_t)(result ? result : get_numbers(properties, device));
}
