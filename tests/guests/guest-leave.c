/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stranger, outside of any vGPU, who crowds the devices:
 *
 *     guest-leave SIZE [PIECE]
 *
 * takes all memory of each device but SIZE and less than a PIECE (16M), prints "ready", and gives it back at the end of its
 * standard input.
 */
#include "base/size.h"
#include "tests/guests/driver.h"

static void crowd(CUdevice device, uint64_t left, uint64_t size)
{
        CUcontext context;
        CUdeviceptr piece;
        size_t free, total;

        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        for (;;) {
                must(DRIVER(cuMemGetInfo_v2)(&free, &total));
                if (free < left + size || DRIVER(cuMemAlloc_v2)(&piece, size) != CUDA_SUCCESS)
                        return;
        }
}

int main(int argc, char **argv)
{
        uint64_t left, piece = 16 * MIB;
        int n;

        if (argc < 2 || argc > 3 || size_parse(&left, argv[1]) < 0 ||
            (argc == 3 && size_parse(&piece, argv[2]) < 0)) {
                fprintf(stderr, "usage: guest-leave SIZE [PIECE]\n");
                return 2;
        }
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGetCount)(&n));
        for (int i = 0; i < n; i++) {
                CUdevice device;

                must(DRIVER(cuDeviceGet)(&device, i));
                crowd(device, left, piece);
        }
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF)
                ;
        return 0;
}
