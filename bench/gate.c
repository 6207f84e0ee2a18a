/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gate costs: the same calls with and without it, in one run.
 *
 * usage: bench-gate GATE DRIVER [ROUNDS]
 *
 * GATE and DRIVER are files named libcuda.so.1. Each round measures in processes of their own,
 * without and with the gate by turns. The table shows the medians over the rounds, and between
 * which values the middle half of the rounds without the gate lies: a difference that is smaller
 * than that says nothing.
 */
#define _GNU_SOURCE 1
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

#define TRIVIAL_CALLS 5000000
#define RANGES        1000000
#define LAUNCHES      200000
#define LAUNCH_BATCH  512 /* stays below the depth of the launch queue */
#define ALLOCATIONS   1000
#define ALLOC_SIZE    ((size_t)32 << 20)
#define SMALL_SIZE    ((size_t)256)
#define ROUNDS_MAX    64

#define BUSY_US 20000

enum {
        FIRST_CALL,
        INIT,
        TRIVIAL,
        REFUSED,
        RANGE,
        RANGE_SMALL,
        LAUNCH,
        LAUNCH_CALL,
        ALLOCATION,
        SMALL,
        ORDERED,
        ORDERED_SMALL,
        ORDERED_STREAMS,
        ORDERED_KEPT,
        ORDERED_GONE,
        ORDERED_BUSY,
        NOTHING,
        N_MEASURES
};

/* In seconds, round by round. */
struct samples {
        double of[N_MEASURES][ROUNDS_MAX];
};

static const struct {
        const char *name, *unit;
        double per_second; /* units in a second */
        const char *target;
} measures[N_MEASURES] = {
        [FIRST_CALL] = { "first CUDA call (cuDriverGetVersion)", "ms", 1e3, "+20 ms" },
        [INIT] = { "cuInit, first context", "ms", 1e3, "" },
        [TRIVIAL] = { "trivial call (cuCtxGetCurrent)", "ns", 1e9, "+5 ns" },
        [REFUSED] = { "launch of no kernel, refused", "ns", 1e9, "+5 ns" },
        [RANGE] = { "set within 32 MiB, refused", "ns", 1e9, "+10 ns" },
        [RANGE_SMALL] = { "the same, within 256 bytes", "ns", 1e9, "+10 ns" },
        [LAUNCH] = { "launch of an empty kernel, and its run", "ns", 1e9, "" },
        [LAUNCH_CALL] = { "the call of that alone", "ns", 1e9, "" },
        [ALLOCATION] = { "allocate and free 32 MiB", "us", 1e6, "1.1 times" },
        [SMALL] = { "allocate and free 256 bytes", "us", 1e6, "" },
        [ORDERED] = { "in stream order: 32 MiB, and free", "us", 1e6, "+3 us" },
        [ORDERED_SMALL] = { "the same, 256 bytes", "us", 1e6, "+3 us" },
        [ORDERED_STREAMS] = { "32 MiB, four streams by turns", "us", 1e6, "" },
        [ORDERED_KEPT] = { "32 MiB, and wait; the pool keeps it", "us", 1e6, "" },
        [ORDERED_GONE] = { "the same; the pool gives it back", "us", 1e6, "" },
        [ORDERED_BUSY] = { "that beside a kernel of 20 ms", "us", 1e6, "" },
        [NOTHING] = { "a program without CUDA", "ms", 1e3, "+5 ms" },
};

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry k(){ret;}\n";

static double measure_trivial(void)
{
        __typeof__(&cuCtxGetCurrent) call = DRIVER(cuCtxGetCurrent);
        CUcontext context;
        double start = now();

        for (int i = 0; i < TRIVIAL_CALLS; i++)
                call(&context);
        return (now() - start) / TRIVIAL_CALLS;
}

/* The way of a launch to the driver and back: it looks at the first argument and refuses. */
static double measure_refused(void)
{
        __typeof__(&cuLaunchKernel) launch = DRIVER(cuLaunchKernel);
        double start = now();

        for (int i = 0; i < TRIVIAL_CALLS; i++)
                (void)launch(NULL, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        return (now() - start) / TRIVIAL_CALLS;
}

/* The way of a set to the driver and back, with what is looked up for its range: the driver refuses odd addresses. */
static double measure_range(size_t size)
{
        __typeof__(&cuMemsetD32Async) set = DRIVER(cuMemsetD32Async);
        CUdeviceptr pointer;
        double start, seconds;

        must(DRIVER(cuMemAlloc_v2)(&pointer, size));
        start = now();
        for (int i = 0; i < RANGES; i++)
                (void)set(pointer + size / 2 + 1, 0, 4, NULL);
        seconds = (now() - start) / RANGES;
        must(DRIVER(cuMemFree_v2)(pointer));
        return seconds;
}

/* The simulated driver runs no PTX; then launches are not measured. */
static void measure_launch(double *ret_launch, double *ret_call)
{
        __typeof__(&cuLaunchKernel) launch = DRIVER(cuLaunchKernel);
        CUfunction function;
        CUmodule module;
        CUstream stream;
        double start, waits = 0;

        if (DRIVER(cuModuleLoadData)(&module, ptx) != CUDA_SUCCESS ||
            DRIVER(cuModuleGetFunction)(&function, module, "k") != CUDA_SUCCESS)
                return;
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        start = now();
        for (int i = 1; i <= LAUNCHES; i++) {
                must(launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
                if (i % LAUNCH_BATCH == 0 || i == LAUNCHES) {
                        waits -= now();
                        must(DRIVER(cuStreamSynchronize)(stream));
                        waits += now();
                }
        }
        *ret_launch = (now() - start) / LAUNCHES;
        *ret_call = *ret_launch - waits / LAUNCHES;
}

static double measure_allocation(size_t size)
{
        __typeof__(&cuMemAlloc_v2) allocate = DRIVER(cuMemAlloc_v2);
        __typeof__(&cuMemFree_v2) give_back = DRIVER(cuMemFree_v2);
        double start = now();

        for (int i = 0; i < ALLOCATIONS; i++) {
                CUdeviceptr pointer;

                must(allocate(&pointer, size));
                must(give_back(pointer));
        }
        return (now() - start) / ALLOCATIONS;
}

/* Allocations and frees in the order of @n streams, by turns; @is_waiting: for each. */
static double measure_ordered(size_t size, const CUstream *streams, int n, bool is_waiting)
{
        __typeof__(&cuMemAllocAsync) allocate = DRIVER(cuMemAllocAsync);
        __typeof__(&cuMemFreeAsync) give_back = DRIVER(cuMemFreeAsync);
        __typeof__(&cuStreamSynchronize) wait = DRIVER(cuStreamSynchronize);
        double start = now(), seconds;

        for (int i = 0; i < ALLOCATIONS; i++) {
                CUdeviceptr pointer;

                must(allocate(&pointer, size, streams[i % n]));
                must(give_back(pointer, streams[i % n]));
                if (is_waiting)
                        must(wait(streams[i % n]));
        }
        seconds = (now() - start) / ALLOCATIONS;
        must(DRIVER(cuCtxSynchronize)());
        return seconds;
}

/* Does it wait for another stream's kernel? */
static double measure_beside_kernel(CUstream stream, CUstream other)
{
        uint64_t us = BUSY_US;
        void *parameters[] = { &us };
        CUfunction function;
        CUdeviceptr pointer;
        CUmodule module;
        double start;

        if (DRIVER(cuModuleLoadData)(&module, kernels) != CUDA_SUCCESS ||
            DRIVER(cuModuleGetFunction)(&function, module, "busy") != CUDA_SUCCESS)
                return 0;
        must(DRIVER(cuMemAllocAsync)(&pointer, ALLOC_SIZE, stream));
        must(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, other, parameters, NULL));
        start = now();
        must(DRIVER(cuMemFreeAsync)(pointer, stream));
        must(DRIVER(cuStreamSynchronize)(stream));
        start = now() - start;
        must(DRIVER(cuCtxSynchronize)());
        return start;
}

static void measure_pools(double *seconds)
{
        uint64_t all = UINT64_MAX, nothing = 0;
        CUstream streams[4];
        CUmemoryPool pool;

        for (size_t i = 0; i < 4; i++)
                must(DRIVER(cuStreamCreate)(&streams[i], CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0));
        must(DRIVER(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
        measure_ordered(ALLOC_SIZE, streams, 4, false);
        seconds[ORDERED] = measure_ordered(ALLOC_SIZE, streams, 1, false);
        seconds[ORDERED_SMALL] = measure_ordered(SMALL_SIZE, streams, 1, false);
        seconds[ORDERED_STREAMS] = measure_ordered(ALLOC_SIZE, streams, 4, false);
        seconds[ORDERED_KEPT] = measure_ordered(ALLOC_SIZE, streams, 1, true);
        must(DRIVER(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nothing));
        must(DRIVER(cuCtxSynchronize)());
        seconds[ORDERED_GONE] = measure_ordered(ALLOC_SIZE, streams, 1, true);
        seconds[ORDERED_BUSY] = measure_beside_kernel(streams[0], streams[1]);
}

/* In a process of its own: prints the seconds of each measure. */
static int measure(void)
{
        double seconds[N_MEASURES] = { 0 };
        CUcontext context;
        CUdevice device;
        double start = now();
        int version;

        must(DRIVER(cuDriverGetVersion)(&version));
        seconds[FIRST_CALL] = now() - start;
        start = now();
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        seconds[INIT] = now() - start;

        seconds[TRIVIAL] = measure_trivial();
        seconds[REFUSED] = measure_refused();
        seconds[RANGE] = measure_range(ALLOC_SIZE);
        seconds[RANGE_SMALL] = measure_range(SMALL_SIZE);
        measure_launch(&seconds[LAUNCH], &seconds[LAUNCH_CALL]);
        measure_allocation(ALLOC_SIZE); /* the first ones fill the driver's caches */
        seconds[ALLOCATION] = measure_allocation(ALLOC_SIZE);
        seconds[SMALL] = measure_allocation(SMALL_SIZE);
        measure_pools(seconds);
        for (int i = 0; i < N_MEASURES; i++)
                printf("%.12f\n", seconds[i]);
        return 0;
}

static void become(const char *gate, const char *driver, const char *what)
{
        char directory[PATH_MAX];

        strcpy(directory, driver);
        *strrchr(directory, '/') = '\0';
        setenv("LD_LIBRARY_PATH", directory, 1);
        if (gate) {
                setenv("LD_PRELOAD", gate, 1);
                setenv("OPENVGPU_DRIVER", driver, 1);
        }
        execl("/proc/self/exe", "bench-gate", what, (char *)NULL);
        perror("bench-gate");
        _exit(127);
}

/* Starts ourselves anew and reads what it prints; NULL @ret_seconds: only waits. */
static double run_probe(const char *gate, const char *driver, const char *what, double *ret_seconds)
{
        double start = now();
        int ends[2], status;
        pid_t child;
        FILE *output;

        if (pipe(ends) < 0 || (child = fork()) < 0) {
                perror("bench-gate");
                exit(1);
        }
        if (child == 0) {
                dup2(ends[1], STDOUT_FILENO);
                close(ends[0]);
                become(gate, driver, what);
        }
        close(ends[1]);
        output = fdopen(ends[0], "r");
        for (int i = 0; ret_seconds && i < N_MEASURES; i++)
                if (fscanf(output, "%lf", &ret_seconds[i]) != 1)
                        break;
        fclose(output);
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                fprintf(stderr, "the measuring process failed %s the gate\n",
                        gate ? "with" : "without");
                exit(1);
        }
        return now() - start;
}

static void round_of(const char *gate, const char *driver, int round, struct samples *samples)
{
        double seconds[N_MEASURES] = { 0 };

        run_probe(gate, driver, "--measure", seconds);
        seconds[NOTHING] = run_probe(gate, driver, "--nothing", NULL);
        for (int i = 0; i < N_MEASURES; i++)
                samples->of[i][round] = seconds[i];
}

static int compare(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;

        return left < right ? -1 : left > right;
}

static void print_measure(int i, double *without, double *with, int rounds)
{
        double scale = measures[i].per_second, before, after;

        qsort(without, (size_t)rounds, sizeof(*without), compare);
        qsort(with, (size_t)rounds, sizeof(*with), compare);
        before = without[rounds / 2];
        after = with[rounds / 2];
        if (before == 0) {
                printf("%-38s %12s\n", measures[i].name, "not here");
                return;
        }
        printf("%-38s %9.2f %s %9.2f to %9.2f %9.2f %s %+9.2f %s %8.3f  %s\n", measures[i].name,
               before * scale, measures[i].unit, without[rounds / 4] * scale,
               without[rounds * 3 / 4] * scale, after * scale, measures[i].unit,
               (after - before) * scale, measures[i].unit, after / before, measures[i].target);
}

static void print_table(struct samples *without, struct samples *with, int rounds)
{
        printf("%-38s %12s %22s %12s %12s %8s  %s\n", "", "without", "middle half", "with gate",
               "difference", "ratio", "target");
        for (int i = 0; i < N_MEASURES; i++)
                print_measure(i, without->of[i], with->of[i], rounds);
}

int main(int argc, char **argv)
{
        static struct samples without, with;
        char gate[PATH_MAX], driver[PATH_MAX];
        int rounds = argc > 3 ? atoi(argv[3]) : 3;

        if (argc == 2 && strcmp(argv[1], "--measure") == 0)
                return measure();
        if (argc == 2 && strcmp(argv[1], "--nothing") == 0)
                return 0;
        if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX || !realpath(argv[1], gate) ||
            !realpath(argv[2], driver)) {
                fprintf(stderr, "usage: %s GATE DRIVER [ROUNDS]\n", argv[0]);
                return 2;
        }
        for (int i = 0; i < rounds; i++) {
                round_of(NULL, driver, i, &without);
                round_of(gate, driver, i, &with);
        }
        print_table(&without, &with, rounds);
        return 0;
}
