/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_DRIVER_H
#define MOVER_DRIVER_H

/*
 * The CUDA driver, loaded at run time: NVIDIA's or the simulated one.
 *
 * The table is the one global of this program: a process can have only one CUDA
 * driver. It is written once, before there are threads.
 *
 * Call it through DRIVER_CALL(), which turns the driver's answer into 0 or a
 * negative errno and notes in @done which call failed, and how.
 */

#include "abi/cuda.h"
#include "wire/mover.h"

/* Every function that we call. Those of the second list may be missing in older drivers. */
#define DRIVER_FUNCTIONS(X)                            \
        X(cuInit)                                      \
        X(cuDriverGetVersion)                          \
        X(cuDeviceGet)                                 \
        X(cuDeviceGetCount)                            \
        X(cuDeviceGetName)                             \
        X(cuDeviceGetUuid)                             \
        X(cuDeviceGetPCIBusId)                         \
        X(cuDeviceTotalMem_v2)                         \
        X(cuDeviceCanAccessPeer)                       \
        X(cuDevicePrimaryCtxRetain)                    \
        X(cuDevicePrimaryCtxRelease_v2)                \
        X(cuCtxSetCurrent)                             \
        X(cuDeviceGetAttribute)                        \
        X(cuMemGetInfo_v2)                             \
        X(cuMemAllocHost_v2)                           \
        X(cuMemFreeHost)                               \
        X(cuModuleLoadData)                            \
        X(cuModuleUnload)                              \
        X(cuModuleGetFunction)                         \
        X(cuLaunchKernel)                              \
        X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
        X(cuMemHostRegister_v2)                        \
        X(cuMemHostUnregister)                         \
        X(cuMemAddressReserve)                         \
        X(cuMemAddressFree)                            \
        X(cuMemCreate)                                 \
        X(cuMemRelease)                                \
        X(cuMemMap)                                    \
        X(cuMemUnmap)                                  \
        X(cuMemSetAccess)                              \
        X(cuMemImportFromShareableHandle)              \
        X(cuMemcpyDtoHAsync_v2)                        \
        X(cuMemcpyHtoDAsync_v2)                        \
        X(cuMemcpyDtoDAsync_v2)                        \
        X(cuMemcpyPeerAsync)                           \
        X(cuStreamCreate)                              \
        X(cuStreamDestroy_v2)                          \
        X(cuStreamSynchronize)                         \
        X(cuEventCreate)                               \
        X(cuEventDestroy_v2)                           \
        X(cuEventRecord)                               \
        X(cuEventSynchronize)

#define DRIVER_FUNCTIONS_OPTIONAL(X)     \
        X(cuCheckpointProcessGetState)   \
        X(cuCheckpointProcessLock)       \
        X(cuCheckpointProcessCheckpoint) \
        X(cuCheckpointProcessRestore)    \
        X(cuCheckpointProcessUnlock)

struct driver {
#define DRIVER_MEMBER(name) __typeof__(&name) name;
        DRIVER_FUNCTIONS(DRIVER_MEMBER)
        DRIVER_FUNCTIONS_OPTIONAL(DRIVER_MEMBER) /* NULL when missing */
#undef DRIVER_MEMBER
};

extern struct driver driver;

/*
 * driver_load() - open the library of $OPENVGPU_DRIVER, or the system's, and cuInit() it
 * Errors: -ENOENT (cannot be loaded, or is too old), -ENODEV (no device), -EIO; the reason is on
 * stderr.
 */
int driver_load(void);

/*
 * driver_check() - what a call answered: 0, or -ENOMEM for want of memory, -EIO for the rest, with
 * @call and @code noted in @done.
 */
int driver_check(struct mover_done *done, const char *call, CUresult code);

#define DRIVER_CALL(done, name, ...) driver_check(done, #name, driver.name(__VA_ARGS__))

/* driver_forget() - a failed call that is in @done is none, after all. */
void driver_forget(struct mover_done *done);

/* driver_fault_point() - the fault point @name as if it were a driver call. */
int driver_fault_point(struct mover_done *done, const char *name);

#endif
