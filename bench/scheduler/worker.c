/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeps a device busy in the benchmark of the scheduler: bench-worker KIND PACE FILE [DEVICES]
 *
 * KIND  busy:MS   kernels that fill the device, of MS milliseconds when alone
 *       small     20 kernels of 20 us on a part of the device, then a wait: an interactive guest
 *       memory    sets 1 GiB again and again
 *       burst     one kernel of a millisecond every 50 ms: notes how long each took
 *       serve:LOAD  answers requests of 5 to 50 ms, which come at random times and would keep the device busy for
 *                 LOAD percent of the time: notes how long each took from when it came
 *       exec      kernels of a millisecond for a third of a second, and then itself anew, by exec
 *       sleep     nothing
 *       pace      print how many rounds of the kernel's loop make a millisecond, and end
 * PACE  that number: all workers measure work alike, whoever else ran when they began
 * FILE  8192 words: [0] work done, in milliseconds of the whole device or in kernels; [1] ready;
 *       [2] set by others: end; [3] number of bursts or requests, [4...] the last ones in microseconds
 * DEVICES  how many it uses, 1 or 2: the same on each at the same time
 *
 * Work is rounds of a loop and not time, so that a kernel that is held off the device does none.
 */
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guests/driver.h"

#define WORDS                8192
#define EVENT_BLOCKING       1
#define EVENT_WITHOUT_TIMING 2

#define FULL 1056 /* blocks of 256 threads: one wave on an H200 */

static const char kernels[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry spin(.param .u32 n, .param .u64 to) {\n"
        ".reg .u32 %r<2>; .reg .u64 %d<2>; .reg .f32 %f<8>; .reg .pred %p<3>;\n"
        "ld.param.u32 %r1, [n]; ld.param.u64 %d1, [to];\n"
        "mov.f32 %f1, 0f3F800001; mov.f32 %f2, 0f3F7FFFFF; mov.f32 %f3, 0f3F000000;\n"
        "mov.f32 %f4, %f1; mov.f32 %f5, %f2; mov.f32 %f6, %f3;\n"
        "again: fma.rn.f32 %f1, %f1, %f2, %f3; fma.rn.f32 %f4, %f4, %f2, %f3;\n"
        "fma.rn.f32 %f5, %f5, %f2, %f3; fma.rn.f32 %f6, %f6, %f2, %f3;\n"
        "sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra again;\n"
        "add.f32 %f1, %f1, %f4; add.f32 %f1, %f1, %f5; add.f32 %f1, %f1, %f6;\n"
        "setp.eq.f32 %p2, %f1, 0f12345678; @%p2 st.global.f32 [%d1], %f1; ret; }\n";

#define DEVICES_MAX 2

static struct {
        CUcontext context;
        CUfunction spin;
        CUdeviceptr memory;
        CUevent events[2];
} devices[DEVICES_MAX];
static unsigned int n_devices = 1;
static _Atomic uint64_t *words;
static uint32_t pace;
static char **command;

static void use(unsigned int i)
{
        if (n_devices > 1)
                must(DRIVER(cuCtxSetCurrent)(devices[i].context));
}

static void launch(uint32_t rounds, unsigned int blocks)
{
        for (unsigned int i = 0; i < n_devices; i++) {
                void *parameters[] = { &rounds, &devices[i].memory };

                use(i);
                must(DRIVER(cuLaunchKernel)(devices[i].spin, blocks, 1, 1, 256, 1, 1, 0, NULL,
                                            parameters, NULL));
        }
}

static void finish(uint64_t done)
{
        for (unsigned int i = 0; i < n_devices; i++) {
                use(i);
                must(DRIVER(cuCtxSynchronize)());
        }
        atomic_fetch_add(&words[0], done);
}

/* Waits for the batch before the last one: the device is never without work. */
static void finish_one_before(uint64_t done)
{
        static unsigned int n;

        for (unsigned int i = 0; i < n_devices; i++) {
                CUevent *events = devices[i].events;

                use(i);
                for (int k = 0; n == 0 && k < 2; k++)
                        must(DRIVER(cuEventCreate)(&events[k],
                                                   EVENT_BLOCKING | EVENT_WITHOUT_TIMING));
                must(DRIVER(cuEventRecord)(events[n % 2], NULL));
        }
        if (n++ == 0)
                return;
        for (unsigned int i = 0; i < n_devices; i++) {
                use(i);
                must(DRIVER(cuEventSynchronize)(devices[i].events[n % 2]));
        }
        atomic_fetch_add(&words[0], done);
}

static void work_busy(unsigned int ms)
{
        unsigned int batch = ms >= 20 ? 1 : 10;

        for (unsigned int i = 0; i < batch; i++)
                launch(pace * ms, FULL);
        finish_one_before((uint64_t)batch * ms);
}

static void work_small(unsigned int ms)
{
        (void)ms;
        for (int i = 0; i < 20; i++)
                launch(pace / 50 + 1, 16);
        finish(20);
}

static void work_memory(unsigned int ms)
{
        (void)ms;
        for (unsigned int i = 0; i < 4; i++)
                must(DRIVER(cuMemsetD32Async)(devices[0].memory, i, (1u << 30) / 4, NULL));
        finish_one_before(4);
}

static void note(double begin)
{
        uint64_t n = words[3];

        words[4 + n % (WORDS - 4)] = (uint64_t)((now() - begin) * 1e6);
        words[3] = n + 1;
}

static void work_burst(unsigned int ms)
{
        double begin = now();

        (void)ms;
        launch(pace, FULL);
        finish(1);
        note(begin);
        usleep(50000);
}

#define REQUEST_MIN_MS  5
#define REQUEST_MAX_MS  50
#define REQUEST_MEAN_MS 27.5

/* A request is tokens of a millisecond, each in ten kernels that its program waits for, as a decoder does. */
static void work_serve(unsigned int load)
{
        static unsigned short seed[3] = { 1, 2, 3 };
        static double arrival;
        unsigned int tokens;

        if (arrival == 0)
                arrival = now();
        arrival += REQUEST_MEAN_MS * 1e-3 * 100 / load * -log(1 - erand48(seed));
        tokens = REQUEST_MIN_MS +
                 (unsigned int)(erand48(seed) * (REQUEST_MAX_MS - REQUEST_MIN_MS + 1));
        if (arrival > now())
                usleep((unsigned int)((arrival - now()) * 1e6));
        for (unsigned int i = 0; i < tokens; i++) {
                for (int k = 0; k < 10; k++)
                        launch(pace / 10 + 1, FULL);
                finish(1);
        }
        note(arrival);
}

static void work_exec(unsigned int ms)
{
        double begin = now();

        (void)ms;
        while (now() - begin < 0.3)
                work_busy(1);
        finish(0);
        execv("/proc/self/exe", command);
}

static void work_sleep(unsigned int ms)
{
        (void)ms;
        usleep(10000);
}

static const struct {
        const char *name;
        void (*work)(unsigned int ms);
} kinds[] = { { "busy:", work_busy },  { "small", work_small },  { "memory", work_memory },
              { "burst", work_burst }, { "serve:", work_serve }, { "exec", work_exec },
              { "sleep", work_sleep } };

static void start_on(unsigned int i)
{
        CUmodule module;
        CUdevice device;

        must(DRIVER(cuDeviceGet)(&device, (int)i));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&devices[i].context, device));
        must(DRIVER(cuCtxSetCurrent)(devices[i].context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&devices[i].spin, module, "spin"));
        must(DRIVER(cuMemAlloc_v2)(&devices[i].memory, 1u << 30));
}

static void start(void)
{
        must(DRIVER(cuInit)(0));
        for (unsigned int i = 0; i < n_devices; i++)
                start_on(i);
        launch(1000, FULL);
        must(DRIVER(cuCtxSynchronize)());
}

static int print_pace(void)
{
        const uint32_t rounds = 2000000;
        double best = 1e9;

        for (int i = 0; i < 5; i++) {
                double begin = now();

                launch(rounds, FULL);
                must(DRIVER(cuCtxSynchronize)());
                best = now() - begin < best ? now() - begin : best;
        }
        printf("%u\n", (uint32_t)(rounds / (best * 1e3)));
        return 0;
}

int main(int argc, char **argv)
{
        size_t kind = 0;
        int fd;

        if (argc < 2)
                return 2;
        if (strcmp(argv[1], "pace") == 0) {
                start();
                return print_pace();
        }
        while (kind < sizeof(kinds) / sizeof(kinds[0]) &&
               strncmp(argv[1], kinds[kind].name, strlen(kinds[kind].name)) != 0)
                kind++;
        fd = argc >= 4 ? open(argv[3], O_RDWR) : -1;
        n_devices = argc == 5 && strcmp(argv[4], "2") == 0 ? 2 : 1;
        command = argv;
        if (kind == sizeof(kinds) / sizeof(kinds[0]) || fd < 0)
                return 2;
        words = mmap(NULL, WORDS * sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        pace = (uint32_t)strtoul(argv[2], NULL, 10);
        if (words == MAP_FAILED || pace == 0)
                return 2;
        start();
        words[1] = 1;
        while (words[2] == 0)
                kinds[kind].work(
                        (unsigned int)strtoul(argv[1] + strlen(kinds[kind].name), NULL, 10));
        return 0;
}
