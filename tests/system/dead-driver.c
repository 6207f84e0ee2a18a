/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 without a driver in the kernel, as a half-removed package leaves it. */

#define NO_DRIVER 999
#define EXPORTED  __attribute__((visibility("default")))

EXPORTED int cuInit(unsigned int flags);
EXPORTED int cuDeviceGetCount(int *count);
EXPORTED int cuGetErrorName(int error, const char **name);

int cuInit(unsigned int flags)
{
        (void)flags;
        return NO_DRIVER;
}

int cuDeviceGetCount(int *count)
{
        (void)count;
        return NO_DRIVER;
}

int cuGetErrorName(int error, const char **name)
{
        *name = error == NO_DRIVER ? "CUDA_ERROR_UNKNOWN" : 0;
        return 0;
}
