/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest whose handler of SIGTERM calls exit(), and whose exit handler gives back what it has:
 *
 *     guest-exit [busy]
 *
 * It prints "ready", and at its end "freed CODE" and "destroyed CODE". A busy one calls the driver all the time, so that the
 * signal finds it there or at the gate.
 */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "tests/guests/driver.h"

#define STATUS 7

static CUcontext context;
static CUdeviceptr memory;

static void say(const char *what, int code)
{
        printf("%s %d\n", what, code);
        (void)fflush(stdout);
}

static void give_back(void)
{
        say("freed", DRIVER(cuMemFree_v2)(memory));
        say("destroyed", DRIVER(cuCtxDestroy_v2)(context));
}

/* It is no function for handlers, and programs call it there. */
static void on_signal(int number)
{
        (void)number;
        exit(STATUS);
}

int main(int argc, char **argv)
{
        bool is_busy = argc == 2 && strcmp(argv[1], "busy") == 0;
        size_t left, total;
        CUdevice device;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuCtxCreate_v2)(&context, 0, device));
        must(DRIVER(cuMemAlloc_v2)(&memory, MIB));
        (void)atexit(give_back);
        (void)signal(SIGTERM, on_signal);
        say("ready", 0);
        for (;;) {
                if (is_busy)
                        must(DRIVER(cuMemGetInfo_v2)(&left, &total));
                else
                        (void)pause();
        }
}
