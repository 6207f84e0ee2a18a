/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that holds memory and checks it: GIB GiB in allocations of 512 MiB,
 * each filled with its own number.
 *
 *     hold GIB
 *
 * Prints "ready" when filled. Each line on standard input makes it compare eight
 * words of every allocation, at places that depend on the round, and print "ok"
 * or "bad N". Ends at end of file. It sleeps in between: the driver's own
 * checkpoint, which is measured beside ours, kills a process that synchronizes.
 */
#include <stdlib.h>

#include "tests/guests/driver.h"

#define PIECE  ((size_t)512 << 20)
#define PIECES 512

static CUdeviceptr piece[PIECES];

static unsigned int count_bad(size_t n, unsigned int round)
{
        unsigned int bad = 0;

        for (size_t i = 0; i < n; i++) {
                for (size_t part = 0; part < 8; part++) {
                        size_t at = part * (PIECE / 8) + (round * 4096 + 64) % (PIECE / 8);
                        unsigned int value = 0;

                        must(DRIVER(cuMemcpyDtoH_v2)(&value, piece[i] + at, sizeof(value)));
                        bad += value != 0x5000u + i;
                }
        }
        return bad;
}

int main(int argc, char **argv)
{
        size_t n = argc == 2 ? strtoull(argv[1], NULL, 10) * 2 : 0;
        unsigned int round = 0;
        CUcontext context;
        char line[64];
        CUdevice gpu;

        if (n == 0 || n > PIECES) {
                fprintf(stderr, "usage: hold GIB (at most %d)\n", PIECES / 2);
                return 2;
        }
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&gpu, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, gpu));
        must(DRIVER(cuCtxSetCurrent)(context));
        for (size_t i = 0; i < n; i++) {
                must(DRIVER(cuMemAlloc_v2)(&piece[i], PIECE));
                must(DRIVER(cuMemsetD32_v2)(piece[i], (unsigned int)(0x5000u + i), PIECE / 4));
        }
        must(DRIVER(cuCtxSynchronize)());
        puts("ready");
        fflush(stdout);

        while (fgets(line, sizeof(line), stdin)) {
                unsigned int bad = count_bad(n, round++);

                if (bad)
                        printf("bad %u\n", bad);
                else
                        puts("ok");
                fflush(stdout);
        }
        return 0;
}
