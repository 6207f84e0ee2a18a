/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that goes wrong or ends as it is told, by words on its standard input:
 *
 *     guest-end [SIZE]
 *
 *     break   a kernel writes to an address that is not there: prints "broken CODE"
 *     use     looks into its memory: prints "used CODE"
 *     end     returns from main()
 *
 * It holds SIZE bytes of device memory, 4 MiB unless said otherwise, and prints "ready". Its last exit
 * handler, for which the driver has ended, prints "ending", waits for one more line or the end of the
 * input, asks the driver for something and prints "ended CODE".
 */
#include <string.h>

#include "base/size.h"
#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

static CUdeviceptr memory;
static CUfunction fill;

static void say(const char *what, int code)
{
        printf("%s %d\n", what, code);
        (void)fflush(stdout);
}

static void on_exit_at_last(void)
{
        char line[64];

        say("ending", 0);
        (void)!fgets(line, sizeof(line), stdin);
        say("ended", DRIVER(cuMemFree_v2)(memory));
}

static CUresult write_nowhere(void)
{
        CUdeviceptr nowhere = 16;
        uint32_t value = 1;
        uint64_t n = 1;
        void *parameters[] = { &nowhere, &value, &n };

        must(DRIVER(cuLaunchKernel)(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        return DRIVER(cuCtxSynchronize)();
}

static void start(uint64_t size)
{
        CUcontext context;
        CUmodule module;
        CUdevice device;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&fill, module, "fill"));
        must(DRIVER(cuMemAlloc_v2)(&memory, size));
        say("ready", 0);
}

int main(int argc, char **argv)
{
        uint64_t size = 4 * MIB;
        char line[64];
        uint32_t word;

        if (argc > 2 || (argc == 2 && size_parse(&size, argv[1]) < 0)) {
                fprintf(stderr, "usage: guest-end [SIZE]\n");
                return 2;
        }
        atexit(on_exit_at_last); /* before the driver's own: the last comes first */
        start(size);
        while (fgets(line, sizeof(line), stdin)) {
                if (strcmp(line, "break\n") == 0)
                        say("broken", write_nowhere());
                else if (strcmp(line, "use\n") == 0)
                        say("used", DRIVER(cuMemcpyDtoH_v2)(&word, memory, sizeof(word)));
                else
                        break;
        }
        return 0;
}
