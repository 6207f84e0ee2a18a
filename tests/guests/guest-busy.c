/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest whose device is busy: guest-busy MICROSECONDS [SIZE]
 *
 * It launches one kernel of that length after another, each followed by one that
 * adds 1 to all its memory, and prints "ready" once the first is under way. At end
 * of file on standard input it waits for the last, compares every word and prints
 * "done KERNELS ok" or "done KERNELS BAD".
 */
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/size.h"
#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

struct guest {
        CUfunction busy, fill, add;
        CUdeviceptr pointer;
        uint64_t n; /* words */
        uint64_t microseconds;
        uint32_t kernels;
};

static void launch_array(const struct guest *guest, CUfunction function, uint32_t value)
{
        CUdeviceptr pointer = guest->pointer;
        uint64_t n = guest->n;
        void *parameters[] = { &pointer, &value, &n };

        must(DRIVER(cuLaunchKernel)(function, 64, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
}

static void launch_busy(struct guest *guest)
{
        uint64_t microseconds = guest->microseconds;
        void *parameters[] = { &microseconds };

        must(DRIVER(cuLaunchKernel)(guest->busy, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        launch_array(guest, guest->add, 1);
        guest->kernels++;
}

static void start(struct guest *guest)
{
        CUcontext context;
        CUmodule module;
        CUdevice device;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&guest->busy, module, "busy"));
        must(DRIVER(cuModuleGetFunction)(&guest->fill, module, "fill"));
        must(DRIVER(cuModuleGetFunction)(&guest->add, module, "add"));
        must(DRIVER(cuMemAlloc_v2)(&guest->pointer, guest->n * sizeof(uint32_t)));
        launch_array(guest, guest->fill, 0);
        must(DRIVER(cuCtxSynchronize)());
}

static bool has_input_ended(void)
{
        struct pollfd poll_fd = { .fd = STDIN_FILENO, .events = POLLIN };
        char byte;

        return poll(&poll_fd, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) == 0;
}

static bool is_right(const struct guest *guest)
{
        uint32_t *words = malloc(guest->n * sizeof(*words));
        bool right = words != NULL;

        if (words)
                must(DRIVER(cuMemcpyDtoH_v2)(words, guest->pointer, guest->n * sizeof(*words)));
        for (uint64_t i = 0; right && i < guest->n; i++)
                right = words[i] == guest->kernels;
        free(words);
        return right;
}

int main(int argc, char **argv)
{
        struct guest guest = { .n = MIB };
        uint64_t size = 4 * MIB;
        bool right;

        if (argc < 2 || argc > 3 || (argc == 3 && size_parse(&size, argv[2]) < 0)) {
                fprintf(stderr, "usage: guest-busy MICROSECONDS [SIZE]\n");
                return 2;
        }
        guest.microseconds = strtoull(argv[1], NULL, 10);
        guest.n = size / sizeof(uint32_t);

        start(&guest);
        launch_busy(&guest);
        puts("ready");
        fflush(stdout);
        while (!has_input_ended()) {
                must(DRIVER(cuCtxSynchronize)());
                launch_busy(&guest);
        }
        must(DRIVER(cuCtxSynchronize)());

        right = is_right(&guest);
        printf("done %u %s\n", guest.kernels, right ? "ok" : "BAD");
        return right ? 0 : 1;
}
