/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of errors. What the driver knows too, it says: the numbers are the same. */

#include "cudart/runtime.h"

static const struct error {
        cudaError_t error;
        const char *name, *text; /* NULL: the driver's */
} errors[] = {
        { 0, "cudaSuccess", "no error" },
        { 1, "cudaErrorInvalidValue", "invalid argument" },
        { 2, "cudaErrorMemoryAllocation", "out of memory" },
        { 3, "cudaErrorInitializationError", "initialization error" },
        { 4, "cudaErrorCudartUnloading", "driver shutting down" },
        { 9, "cudaErrorInvalidConfiguration", "invalid configuration argument" },
        { 12, "cudaErrorInvalidPitchValue", "invalid pitch argument" },
        { 13, "cudaErrorInvalidSymbol", "invalid device symbol" },
        { 21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy" },
        { 35, "cudaErrorInsufficientDriver", "no CUDA driver, or one that is too old" },
        { 52, "cudaErrorMissingConfiguration", "launch without a configuration" },
        { 98, "cudaErrorInvalidDeviceFunction", "invalid device function" },
        { 100, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
        { 101, "cudaErrorInvalidDevice", "invalid device ordinal" },
        { 103, "cudaErrorSoftwareValidityNotEstablished",
          "the driver has other devices than it shows" },
        { 200, "cudaErrorInvalidKernelImage", NULL },
        { 201, "cudaErrorDeviceUninitialized", NULL },
        { 205, "cudaErrorMapBufferObjectFailed", NULL },
        { 206, "cudaErrorUnmapBufferObjectFailed", NULL },
        { 214, "cudaErrorECCUncorrectable", NULL },
        { 215, "cudaErrorUnsupportedLimit", NULL },
        { 217, "cudaErrorPeerAccessUnsupported", "peer access is not supported" },
        { 220, "cudaErrorNvlinkUncorrectable", NULL },
        { 226, "cudaErrorContained", NULL },
        { 300, "cudaErrorInvalidSource", NULL },
        { 301, "cudaErrorFileNotFound", NULL },
        { 302, "cudaErrorSharedObjectSymbolNotFound", NULL },
        { 304, "cudaErrorOperatingSystem", NULL },
        { 400, "cudaErrorInvalidResourceHandle", NULL },
        { 401, "cudaErrorIllegalState", NULL },
        { 500, "cudaErrorSymbolNotFound", NULL },
        { 600, "cudaErrorNotReady", NULL },
        { 700, "cudaErrorIllegalAddress", NULL },
        { 702, "cudaErrorLaunchTimeout", NULL },
        { 704, "cudaErrorPeerAccessAlreadyEnabled", NULL },
        { 705, "cudaErrorPeerAccessNotEnabled", NULL },
        { 708, "cudaErrorSetOnActiveProcess", NULL },
        { 709, "cudaErrorContextIsDestroyed", NULL },
        { 710, "cudaErrorAssert", NULL },
        { 712, "cudaErrorHostMemoryAlreadyRegistered", NULL },
        { 713, "cudaErrorHostMemoryNotRegistered", NULL },
        { 714, "cudaErrorHardwareStackError", NULL },
        { 715, "cudaErrorIllegalInstruction", NULL },
        { 716, "cudaErrorMisalignedAddress", NULL },
        { 717, "cudaErrorInvalidAddressSpace", NULL },
        { 718, "cudaErrorInvalidPc", NULL },
        { 719, "cudaErrorLaunchFailure", NULL },
        { 800, "cudaErrorNotPermitted", NULL },
        { 801, "cudaErrorNotSupported", "operation not supported" },
        { 802, "cudaErrorSystemNotReady", NULL },
        { 900, "cudaErrorStreamCaptureUnsupported", NULL },
        { 901, "cudaErrorStreamCaptureInvalidated", NULL },
        { 902, "cudaErrorStreamCaptureMerge", NULL },
        { 903, "cudaErrorStreamCaptureUnmatched", NULL },
        { 904, "cudaErrorStreamCaptureUnjoined", NULL },
        { 905, "cudaErrorStreamCaptureIsolation", NULL },
        { 906, "cudaErrorStreamCaptureImplicit", NULL },
        { 907, "cudaErrorCapturedEvent", NULL },
        { 908, "cudaErrorStreamCaptureWrongThread", NULL },
        { 909, "cudaErrorTimeout", NULL },
        { 999, "cudaErrorUnknown", "unknown error" },
};

static const struct error *find(cudaError_t error)
{
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
                if (errors[i].error == error)
                        return &errors[i];
        return NULL;
}

const char *cudaGetErrorName(cudaError_t error)
{
        const struct error *found = find(error);

        return found ? found->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
        const struct error *found = find(error);
        const char *text = NULL;

        if (found && found->text)
                return found->text;
        if (runtime_start() != cudaErrorInsufficientDriver)
                (void)driver.cuGetErrorString((CUresult)error, &text);
        if (text)
                return text;
        return found ? found->name : "unrecognized error code";
}
