/* SPDX-License-Identifier: Apache-2.0 */
/* Prints "FREE TOTAL" in bytes for each device: what the driver says, when run without a gate. */
#include "tests/guests/driver.h"

int main(void)
{
        int n;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGetCount)(&n));
        for (int i = 0; i < n; i++) {
                CUcontext context;
                CUdevice device;
                size_t free, total;

                must(DRIVER(cuDeviceGet)(&device, i));
                must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
                must(DRIVER(cuCtxSetCurrent)(context));
                must(DRIVER(cuMemGetInfo_v2)(&free, &total));
                printf("%zu %zu\n", free, total);
                must(DRIVER(cuDevicePrimaryCtxRelease_v2)(device));
        }
        return 0;
}
