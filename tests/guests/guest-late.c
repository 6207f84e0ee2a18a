/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that joins its vGPU and has nothing to do there for a while:
 *
 *     guest-late SECONDS [SIZE]
 *
 * initialises the driver, prints "ready", and makes its first call of the driver after SECONDS: then it makes a context,
 * takes SIZE bytes (4 MiB unless said otherwise), fills them, prints "worked" if they come back as they were, and ends
 * with its standard input.
 */
#include <string.h>

#include "base/size.h"
#include "tests/guests/driver.h"

#define WORD 0x5a5a1234u

static void rest(double seconds)
{
        const struct timespec time = { .tv_sec = (time_t)seconds,
                                       .tv_nsec =
                                               (long)((seconds - (double)(time_t)seconds) * 1e9) };

        nanosleep(&time, NULL);
}

static void work(uint64_t size)
{
        unsigned int last = 0;
        CUcontext context;
        CUdeviceptr memory;
        CUdevice device;

        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuMemAlloc_v2)(&memory, size));
        must(DRIVER(cuMemsetD32_v2)(memory, WORD, size / sizeof(last)));
        must(DRIVER(cuMemcpyDtoH_v2)(&last, memory + size - sizeof(last), sizeof(last)));
        if (last != WORD) {
                fprintf(stderr, "its memory is wrong\n");
                exit(1);
        }
}

int main(int argc, char **argv)
{
        uint64_t size = 4 * MIB;

        if (argc < 2 || argc > 3 || (argc == 3 && size_parse(&size, argv[2]) < 0)) {
                fprintf(stderr, "usage: guest-late SECONDS [SIZE]\n");
                return 2;
        }
        must(DRIVER(cuInit)(0));
        puts("ready");
        (void)fflush(stdout);
        rest(strtod(argv[1], NULL));
        work(size);
        puts("worked");
        (void)fflush(stdout);
        while (getchar() != EOF)
                ;
        return 0;
}
