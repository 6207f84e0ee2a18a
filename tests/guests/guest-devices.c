/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that works on all devices that it sees. It prints "device I UUID TOTAL" for each, or "other I UUID TOTAL"
 * for one behind them that it cannot use, then "ready"; after that it does what it is told, by lines on its standard input, and answers each:
 *
 *     hold I SIZE    allocates on device I: "held", or "refused"
 *     create I SIZE  the same by cuMemCreate(), while the last device is the current one
 *     pool I SIZE    the same by cuMemAllocAsync()
 *     drop I         gives all of device I back: "dropped"
 *     info I         "info FREE TOTAL"
 *     copy I J       fills memory of device I, copies it to device J and compares: "copied"
 *     busy I US      runs a kernel of that length on device I: "done"
 *     meet 0 MS      so long, in steps: a kernel on each device, and one that waits for those of the other
 *                    devices, in memory of device 0; each step is submitted device by device: "met STEPS"
 *     work 0 MS      steps, with such pauses, until the next line comes: it looks whether the heads of all that was
 *                    filled are as the step before left them, and changes them: "step" each time, "worked" at the end
 *     fill I VALUE   fills what it holds of device I: "filled"
 *     check I VALUE  "right", or which byte is not: "wrong ..."
 *     reach I J      device J fills what it holds of device I with J, after "access I J": "filled"
 *     access I J     device J gets access to device I, and writes there: "accessed"
 */
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "tests/guests/driver.h"
#include "tests/guests/kernel-meet.h"
#include "tests/guests/kernels.h"

#define DEVICES_MAX 8
#define PIECES_MAX  64
#define COPY_BYTES  (2 * MIB)
#define HEAD_BYTES  4096

/* Of a meeting, on the devices at once. */
#define STEPS_AHEAD 4

struct piece {
        CUdeviceptr pointer;
        uint64_t size;
        CUmemGenericAllocationHandle handle;
        bool is_ordered;
};

static struct {
        CUcontext context;
        struct piece piece[PIECES_MAX];
        size_t n;
        unsigned char value; /* that they are filled with */
} devices[DEVICES_MAX];

static int n_devices;

static void use(int device)
{
        must(DRIVER(cuCtxSetCurrent)(devices[device].context));
}

static void answer(int device, CUresult result, const struct piece *piece)
{
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
                must_succeed(result, "allocate");
        if (result == CUDA_SUCCESS)
                devices[device].piece[devices[device].n++] = *piece;
        puts(result == CUDA_SUCCESS ? "held" : "refused");
}

static void hold(int device, uint64_t size)
{
        struct piece piece = { .size = size };

        use(device);
        answer(device, DRIVER(cuMemAlloc_v2)(&piece.pointer, size), &piece);
}

static void hold_in_order(int device, uint64_t size)
{
        struct piece piece = { .size = size, .is_ordered = true };

        use(device);
        answer(device, DRIVER(cuMemAllocAsync)(&piece.pointer, size, NULL), &piece);
}

static void create(int device, uint64_t size)
{
        const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
        struct piece piece = { .pointer = 0 };

        use(n_devices - 1);
        answer(device, DRIVER(cuMemCreate)(&piece.handle, size, &prop, 0), &piece);
}

static void drop(int device)
{
        use(device);
        while (devices[device].n > 0) {
                const struct piece *piece = &devices[device].piece[--devices[device].n];

                if (piece->handle)
                        must(DRIVER(cuMemRelease)(piece->handle));
                else if (piece->is_ordered)
                        must(DRIVER(cuMemFreeAsync)(piece->pointer, NULL));
                else
                        must(DRIVER(cuMemFree_v2)(piece->pointer));
        }
        must(DRIVER(cuCtxSynchronize)());
        puts("dropped");
}

static void info(int device)
{
        size_t unused = 0, total = 0;

        use(device);
        must(DRIVER(cuMemGetInfo_v2)(&unused, &total));
        printf("info %zu %zu\n", unused, total);
}

static void fill(int device, int by, unsigned char value)
{
        devices[device].value = value;
        use(by);
        for (size_t i = 0; i < devices[device].n; i++)
                if (devices[device].piece[i].pointer)
                        must(DRIVER(cuMemsetD8_v2)(devices[device].piece[i].pointer, value,
                                                   devices[device].piece[i].size));
        must(DRIVER(cuCtxSynchronize)());
        puts("filled");
}

static bool is_filled(const struct piece *piece, unsigned char value)
{
        unsigned char *bytes = malloc(piece->size);
        bool is = true;

        must(DRIVER(cuMemcpyDtoH_v2)(bytes, piece->pointer, piece->size));
        for (uint64_t i = 0; is && i < piece->size; i++) {
                is = bytes[i] == value;
                if (!is)
                        printf("wrong byte %llu of %llu: %u\n", (unsigned long long)i,
                               (unsigned long long)piece->size, bytes[i]);
        }
        free(bytes);
        return is;
}

static void check_held(int device, unsigned char value)
{
        bool is = true;

        use(device);
        for (size_t i = 0; is && i < devices[device].n; i++)
                is = !devices[device].piece[i].pointer ||
                     is_filled(&devices[device].piece[i], value);
        if (is)
                puts("right");
}

static CUdeviceptr make_filled(int device, unsigned char value)
{
        CUdeviceptr pointer;

        use(device);
        must(DRIVER(cuMemAlloc_v2)(&pointer, COPY_BYTES));
        must(DRIVER(cuMemsetD8_v2)(pointer, value, COPY_BYTES));
        must(DRIVER(cuCtxSynchronize)());
        return pointer;
}

static void check(int device, CUdeviceptr pointer, unsigned char value)
{
        static unsigned char bytes[COPY_BYTES];

        use(device);
        must(DRIVER(cuMemcpyDtoH_v2)(bytes, pointer, COPY_BYTES));
        for (size_t i = 0; i < COPY_BYTES; i++)
                if (bytes[i] != value) {
                        fprintf(stderr, "byte %zu is %u, not %u\n", i, bytes[i], value);
                        exit(1);
                }
        must(DRIVER(cuMemFree_v2)(pointer));
}

static void copy(int from, int to)
{
        CUdeviceptr source = make_filled(from, 0x5a), target = make_filled(to, 0);

        must(DRIVER(cuMemcpyPeer)(target, devices[to].context, source, devices[from].context,
                                  COPY_BYTES));
        check(to, target, 0x5a);
        check(from, source, 0x5a);
        puts("copied");
}

/* @device, which is the current one then, gets access to the memory of @owner. */
static void enable_peer(int owner, int device)
{
        CUresult result;

        use(device);
        result = DRIVER(cuCtxEnablePeerAccess)(devices[owner].context, 0);
        if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
                must_succeed(result, "cuCtxEnablePeerAccess");
}

static void give_access(int owner, int device)
{
        CUdeviceptr pointer = make_filled(owner, 1);
        int can = 0;

        must(DRIVER(cuDeviceCanAccessPeer)(&can, device, owner));
        enable_peer(owner, device);
        must(DRIVER(cuMemsetD8_v2)(pointer, 7, COPY_BYTES)); /* by @device */
        must(DRIVER(cuCtxSynchronize)());
        check(owner, pointer, 7);
        puts(can ? "accessed" : "no peer");
}

static void keep_busy(int device, uint64_t microseconds)
{
        void *parameters[] = { &microseconds };
        CUfunction function;
        CUmodule module;

        use(device);
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&function, module, "busy"));
        must(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        must(DRIVER(cuCtxSynchronize)());
        must(DRIVER(cuModuleUnload)(module));
        puts("done");
}

/* On each device what it takes for a step. */
struct meeting {
        CUfunction busy, meet;
};

static void make_meeting(int device, struct meeting *ret_meeting)
{
        CUmodule module;

        use(device);
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&ret_meeting->busy, module, "busy"));
        must(DRIVER(cuModuleLoadData)(&module, kernel_meet));
        must(DRIVER(cuModuleGetFunction)(&ret_meeting->meet, module, "meet"));
}

static void launch(int device, CUfunction function, void **parameters)
{
        use(device);
        must(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static void synchronize_all(void)
{
        for (int i = 0; i < n_devices; i++) {
                use(i);
                must(DRIVER(cuCtxSynchronize)());
        }
}

/* The devices count in memory of one of them: what two of them add to a word of the host at once is not their sum. */
static void meet(uint64_t ms)
{
        uint64_t until, us = 2000, n = 0;
        uint32_t n_ranks = (uint32_t)n_devices;
        struct meeting meeting[DEVICES_MAX];
        CUdeviceptr word = make_filled(0, 0);
        void *busy[] = { &us }, *meet[] = { &word, &n_ranks };

        for (int i = 0; i < n_devices; i++) {
                make_meeting(i, &meeting[i]);
                if (i > 0)
                        enable_peer(0, i);
        }
        /* What comes before may have waited for turns itself. */
        until = clock_now(CLOCK_MONOTONIC) + ms * 1000000;
        for (; clock_now(CLOCK_MONOTONIC) < until; n++) {
                for (int i = 0; i < n_devices; i++) {
                        launch(i, meeting[i].busy, busy);
                        launch(i, meeting[i].meet, meet);
                }
                if (n % STEPS_AHEAD == 0)
                        synchronize_all();
        }
        synchronize_all();
        use(0);
        must(DRIVER(cuMemFree_v2)(word));
        printf("met %llu\n", (unsigned long long)n);
}

static void check_head(CUdeviceptr pointer, unsigned char value)
{
        unsigned char bytes[HEAD_BYTES];

        must(DRIVER(cuMemcpyDtoH_v2)(bytes, pointer, sizeof(bytes)));
        for (size_t i = 0; i < sizeof(bytes); i++)
                if (bytes[i] != value) {
                        fprintf(stderr, "byte %zu is %u, not %u\n", i, bytes[i], value);
                        exit(1);
                }
}

/* From @n more than their value to @next more. */
static void change_heads(unsigned int n, unsigned int next)
{
        for (int i = 0; i < n_devices; i++) {
                use(i);
                for (size_t k = 0; k < devices[i].n; k++) {
                        CUdeviceptr pointer = devices[i].piece[k].pointer;

                        check_head(pointer, (unsigned char)(devices[i].value + n));
                        must(DRIVER(cuMemsetD8_v2)(
                                pointer, (unsigned char)(devices[i].value + next), HEAD_BYTES));
                }
                must(DRIVER(cuCtxSynchronize)());
        }
}

static void work(int ms)
{
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
        unsigned int n = 0;

        do {
                change_heads(n, n + 1);
                n++;
                puts("step");
        } while (poll(&input, 1, ms) == 0);
        change_heads(n, 0);
        puts("worked");
}

/* False: it is there, but cannot be used. */
static bool open_device(int i)
{
        CUresult result = DRIVER(cuDevicePrimaryCtxRetain)(&devices[i].context, i);

        if (result == CUDA_ERROR_INVALID_DEVICE)
                return false;
        must_succeed(result, "cuDevicePrimaryCtxRetain");
        n_devices = i + 1;
        return true;
}

static void open_devices(void)
{
        int n;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGetCount)(&n));
        for (int i = 0; i < n && i < DEVICES_MAX; i++) {
                size_t total;
                CUuuid uuid;

                must(DRIVER(cuDeviceGetUuid)(&uuid, i));
                must(DRIVER(cuDeviceTotalMem_v2)(&total, i));
                printf("%s %d ", open_device(i) ? "device" : "other", i);
                for (int k = 0; k < 16; k++)
                        printf("%02x", (unsigned char)uuid.bytes[k]);
                printf(" %zu\n", total);
        }
        puts("ready");
}

static void obey(const char *word, int device, const char *argument)
{
        uint64_t size = 0;
        int other = atoi(argument);

        (void)size_parse(&size, argument);
        if (strcmp(word, "hold") == 0)
                hold(device, size);
        else if (strcmp(word, "create") == 0)
                create(device, size);
        else if (strcmp(word, "pool") == 0)
                hold_in_order(device, size);
        else if (strcmp(word, "drop") == 0)
                drop(device);
        else if (strcmp(word, "info") == 0)
                info(device);
        else if (strcmp(word, "copy") == 0)
                copy(device, other);
        else if (strcmp(word, "busy") == 0)
                keep_busy(device, (uint64_t)other);
        else if (strcmp(word, "meet") == 0)
                meet((uint64_t)other);
        else if (strcmp(word, "work") == 0)
                work(other);
        else if (strcmp(word, "fill") == 0)
                fill(device, device, (unsigned char)other);
        else if (strcmp(word, "reach") == 0)
                fill(device, other, (unsigned char)other);
        else if (strcmp(word, "check") == 0)
                check_held(device, (unsigned char)other);
        else if (strcmp(word, "access") == 0)
                give_access(device, other);
}

int main(void)
{
        char line[128], word[32], argument[32];
        int device;

        setvbuf(stdout, NULL, _IOLBF, 0);
        open_devices();
        while (fgets(line, sizeof(line), stdin)) {
                argument[0] = '\0';
                if (sscanf(line, "%31s %d %31s", word, &device, argument) < 2 || device < 0 ||
                    device >= n_devices)
                        return 2;
                obey(word, device, argument);
        }
        return 0;
}
