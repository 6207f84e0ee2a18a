/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stranger, outside of any vGPU, who crowds the devices:
 *
 *     guest-leave SIZE
 *
 * takes all memory of each device but SIZE, prints "ready", and gives it back at the end of its
 * standard input.
 */
#include "base/size.h"
#include "tests/guests/driver.h"

#define PIECE (16 * MIB)

static void crowd(CUdevice device, uint64_t left)
{
        CUcontext context;
        CUdeviceptr piece;
        size_t free, total;

        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        for (;;) {
                must(DRIVER(cuMemGetInfo_v2)(&free, &total));
                if (free < left + PIECE || DRIVER(cuMemAlloc_v2)(&piece, PIECE) != CUDA_SUCCESS)
                        return;
        }
}

int main(int argc, char **argv)
{
        uint64_t left;
        int n;

        if (argc != 2 || size_parse(&left, argv[1]) < 0) {
                fprintf(stderr, "usage: guest-leave SIZE\n");
                return 2;
        }
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGetCount)(&n));
        for (int i = 0; i < n; i++) {
                CUdevice device;

                must(DRIVER(cuDeviceGet)(&device, i));
                crowd(device, left);
        }
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF)
                ;
        return 0;
}
