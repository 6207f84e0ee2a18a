/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_DRIVER_H
#define CHECKPOINT_DRIVER_H

/*
 * The CUDA driver, loaded at run time: NVIDIA's or the simulated one. A process can have only one,
 * so the table is a global; it is written once.
 */

#include "abi/cuda.h"

/* Drivers before branch 570 lack the functions of the second list. */
#define DRIVER_FUNCTIONS(X)    \
        X(cuInit)              \
        X(cuDeviceGet)         \
        X(cuDeviceGetCount)    \
        X(cuDeviceGetName)     \
        X(cuDeviceGetUuid)     \
        X(cuDeviceTotalMem_v2) \
        X(cuGetErrorName)      \
        X(cuGetErrorString)

#define DRIVER_FUNCTIONS_CHECKPOINT(X)           \
        X(cuCheckpointProcessGetState)           \
        X(cuCheckpointProcessGetRestoreThreadId) \
        X(cuCheckpointProcessLock)               \
        X(cuCheckpointProcessCheckpoint)         \
        X(cuCheckpointProcessRestore)            \
        X(cuCheckpointProcessUnlock)

struct driver {
#define DRIVER_MEMBER(name) __typeof__(&name) name;
        DRIVER_FUNCTIONS(DRIVER_MEMBER)
        DRIVER_FUNCTIONS_CHECKPOINT(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

extern struct driver driver;

/*
 * driver_load() - open the library of $OPENVGPU_DRIVER, or the system's, and initialize it
 * @ret_problem:  on failure gets a text of at most @room bytes for the user
 *
 * The caller may repeat it, even after a failure. Errors: -ENODEV.
 */
int driver_load(char *problem, size_t room);

/* driver_error_name() - return "CUDA_ERROR_NOT_READY"; "" for a code that the driver does not know. */
const char *driver_error_name(CUresult code);

/* driver_error_text() - return the driver's words, "device not ready"; "" for a code that it does not know. */
const char *driver_error_text(CUresult code);

#endif
