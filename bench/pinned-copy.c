/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit that suspend and resume are measured against: one copy of GIB GiB
 * between device memory and pinned host memory, each way, on one stream.
 *
 *     pinned-copy GIB     prints "out BYTES_PER_SECOND", "in BYTES_PER_SECOND", and for the halves of the memory in
 *                         both directions at once, on two streams, "both BYTES_PER_SECOND": of one of them
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/guests/driver.h"

/* Pinned in pieces of this size: what a pool of slabs looks like to the bus. */
#define PIECE ((size_t)256 << 20)

static double copy_out(char *host, CUdeviceptr device, size_t size, CUstream stream)
{
        double start = now();

        for (size_t at = 0; at < size; at += PIECE)
                must(DRIVER(cuMemcpyDtoHAsync_v2)(host + at, device + at, PIECE, stream));
        must(DRIVER(cuStreamSynchronize)(stream));
        return (double)size / (now() - start);
}

static double copy_in(CUdeviceptr device, const char *host, size_t size, CUstream stream)
{
        double start = now();

        for (size_t at = 0; at < size; at += PIECE)
                must(DRIVER(cuMemcpyHtoDAsync_v2)(device + at, host + at, PIECE, stream));
        must(DRIVER(cuStreamSynchronize)(stream));
        return (double)size / (now() - start);
}

/* The first half goes out while the second half comes in. */
static double copy_both(char *host, CUdeviceptr device, size_t size, const CUstream streams[2])
{
        double start = now();

        for (size_t at = 0; at < size / 2; at += PIECE) {
                must(DRIVER(cuMemcpyDtoHAsync_v2)(host + at, device + at, PIECE, streams[0]));
                must(DRIVER(cuMemcpyHtoDAsync_v2)(device + size / 2 + at, host + size / 2 + at,
                                                  PIECE, streams[1]));
        }
        must(DRIVER(cuStreamSynchronize)(streams[0]));
        must(DRIVER(cuStreamSynchronize)(streams[1]));
        return (double)size / 2 / (now() - start);
}

static double best(double a, double b)
{
        return a > b ? a : b;
}

int main(int argc, char **argv)
{
        size_t size = argc == 2 ? strtoull(argv[1], NULL, 10) << 30 : 0;
        double out = 0, in = 0, both = 0;
        CUdeviceptr device;
        CUcontext context;
        CUstream stream[2];
        CUdevice gpu;
        char *host;

        if (size == 0) {
                fprintf(stderr, "usage: pinned-copy GIB\n");
                return 2;
        }

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&gpu, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, gpu));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuStreamCreate)(&stream[0], CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuStreamCreate)(&stream[1], CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuMemAlloc_v2)(&device, size));

        host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (host == MAP_FAILED) {
                perror("mmap");
                return 1;
        }
        (void)madvise(host, size, MADV_HUGEPAGE);
        memset(host, 1, size);
        must(DRIVER(cuMemHostRegister_v2)(host, size, CU_MEMHOSTREGISTER_PORTABLE));

        for (int round = 0; round < 3; round++) {
                out = best(out, copy_out(host, device, size, stream[0]));
                in = best(in, copy_in(device, host, size, stream[0]));
                both = best(both, copy_both(host, device, size, stream));
        }
        printf("out %.0f\nin %.0f\nboth %.0f\n", out, in, both);
        return 0;
}
