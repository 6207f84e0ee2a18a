/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver does with freed device memory before somebody else gets it, and what a copy in notices of that.
 *
 *     freed GIB
 *
 * One process frees GIB GiB; choose as much that the rest of the device would not do. Another one creates as much at
 * once, and again when the device has rested. Then it copies into memory that it has, while the first one frees.
 *
 * Prints "created SECONDS rested SECONDS", and "in BYTES_PER_SECOND alone BYTES_PER_SECOND out BYTES_PER_SECOND alone
 * BYTES_PER_SECOND": in the time that the first line makes likely, and when nothing is freed.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guests/driver.h"

#define PIECE  ((size_t)512 << 20)
#define PIECES 512
#define COPIED ((size_t)4 << 30)
#define PART   ((size_t)64 << 20)

static CUmemGenericAllocationHandle handle[PIECES];
static size_t n_pieces;

static void begin_context(void)
{
        CUcontext context;
        CUdevice gpu;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&gpu, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, gpu));
        must(DRIVER(cuCtxSetCurrent)(context));
}

static double create(void)
{
        const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
        double start = now();

        for (size_t i = 0; i < n_pieces; i++)
                must(DRIVER(cuMemCreate)(&handle[i], PIECE, &prop, 0));
        return now() - start;
}

static double release(void)
{
        double start = now();

        for (size_t i = 0; i < n_pieces; i++)
                must(DRIVER(cuMemRelease)(handle[i]));
        return now() - start;
}

/* The other process: each byte that comes makes it create or release. */
static void serve(int in, int out)
{
        bool has_any = false;
        char byte;

        begin_context();
        while (read(in, &byte, 1) == 1) {
                if (has_any)
                        (void)release();
                else
                        (void)create();
                has_any = !has_any;
                if (write(out, &byte, 1) != 1)
                        break;
        }
        exit(0);
}

static int in, out;

static void toggle(bool must_wait)
{
        char byte = 0;

        if (write(out, &byte, 1) != 1 || (must_wait && read(in, &byte, 1) != 1)) {
                fprintf(stderr, "the other process has ended\n");
                exit(1);
        }
}

static void wait_for_answer(void)
{
        char byte;

        if (read(in, &byte, 1) != 1)
                exit(1);
}

static double copy(CUdeviceptr device, char *host, bool is_in, CUstream stream)
{
        double start = now();

        for (size_t at = 0; at < COPIED; at += PART)
                if (is_in)
                        must(DRIVER(cuMemcpyHtoDAsync_v2)(device + at, host + at, PART, stream));
                else
                        must(DRIVER(cuMemcpyDtoHAsync_v2)(host + at, device + at, PART, stream));
        must(DRIVER(cuStreamSynchronize)(stream));
        return (double)COPIED / (now() - start);
}

/* While the other one frees; it creates again afterwards. */
static double copy_beside(CUdeviceptr device, char *host, bool is_in, CUstream stream)
{
        double rate;

        toggle(true);
        sleep(2);
        toggle(false);
        rate = copy(device, host, is_in, stream);
        wait_for_answer();
        sleep(2);
        return rate;
}

static void measure_copies(void)
{
        CUdeviceptr device;
        CUstream stream;
        char *host = mmap(NULL, COPIED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        double rate[2], alone[2];

        if (host == MAP_FAILED) {
                perror("mmap");
                exit(1);
        }
        memset(host, 1, COPIED);
        must(DRIVER(cuMemHostRegister_v2)(host, COPIED, CU_MEMHOSTREGISTER_PORTABLE));
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuMemAlloc_v2)(&device, COPIED));
        for (int i = 0; i < 2; i++) {
                (void)copy(device, host, i == 0, stream);
                alone[i] = copy(device, host, i == 0, stream);
                rate[i] = copy_beside(device, host, i == 0, stream);
        }
        printf("in %.0f alone %.0f out %.0f alone %.0f\n", rate[0], alone[0], rate[1], alone[1]);
}

static void measure_creation(void)
{
        double fresh, rested;

        toggle(true);
        sleep(2);
        toggle(true); /* it has released */
        fresh = create();
        (void)release();
        sleep(2);
        rested = create();
        (void)release();
        sleep(2);
        printf("created %.3f rested %.3f\n", fresh, rested);
}

int main(int argc, char **argv)
{
        int there[2], back[2];

        n_pieces = argc == 2 ? (strtoull(argv[1], NULL, 10) << 30) / PIECE : 0;
        if (n_pieces == 0 || n_pieces > PIECES || pipe(there) < 0 || pipe(back) < 0) {
                fprintf(stderr, "usage: freed GIB\n");
                return 2;
        }
        if (fork() == 0) {
                close(there[1]);
                serve(there[0], back[1]);
        }
        close(back[1]);
        in = back[0];
        out = there[1];
        begin_context();
        measure_creation();
        measure_copies();
        close(out);
        (void)wait(NULL);
        return 0;
}
