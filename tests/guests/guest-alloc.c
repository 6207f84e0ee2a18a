/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that allocates and frees at random from many threads, beyond its quota
 * and back, and then says what it still holds:
 *
 *     guest-alloc THREADS ROUNDS LARGEST SEED
 *
 * Prints "refused N" (how often memory ran out), "held BYTES" (in pieces of
 * 2 MiB and more, as the quota counts them), "ready", waits for end of file on
 * standard input, frees all and prints "freed".
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/size.h"
#include "tests/guests/driver.h"

#define HELD_MAX    64
#define GRANULARITY (2 * MIB)

struct thread {
        pthread_t thread;
        unsigned int seed;
        CUdeviceptr held[HELD_MAX];
        uint64_t size[HELD_MAX];
};

static struct {
        CUcontext context;
        unsigned long rounds;
        uint64_t largest;
        atomic_ulong refused;
} shared;

static void one_round(struct thread *thread)
{
        unsigned int slot = (unsigned int)rand_r(&thread->seed) % HELD_MAX;

        if (thread->held[slot]) {
                must(DRIVER(cuMemFree_v2)(thread->held[slot]));
                thread->held[slot] = 0;
                thread->size[slot] = 0;
        } else {
                uint64_t pieces = shared.largest / GRANULARITY;
                uint64_t size = ((uint64_t)rand_r(&thread->seed) % pieces + 1) * GRANULARITY;
                CUdeviceptr pointer;
                CUresult result = DRIVER(cuMemAlloc_v2)(&pointer, size);

                if (result == CUDA_ERROR_OUT_OF_MEMORY) {
                        atomic_fetch_add(&shared.refused, 1);
                        return;
                }
                must_succeed(result, "cuMemAlloc");
                thread->held[slot] = pointer;
                thread->size[slot] = size;
        }
}

static void *run_allocator(void *data)
{
        struct thread *thread = data;

        must(DRIVER(cuCtxSetCurrent)(shared.context));
        for (unsigned long i = 0; i < shared.rounds; i++)
                one_round(thread);
        return NULL;
}

static uint64_t sum_held(const struct thread *threads, size_t n)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                for (size_t slot = 0; slot < HELD_MAX; slot++)
                        sum += threads[i].size[slot];
        return sum;
}

int main(int argc, char **argv)
{
        static struct thread threads[64];
        size_t n = argc == 5 ? strtoul(argv[1], NULL, 10) : 0;
        CUdevice device;

        if (n < 1 || n > 64 || size_parse(&shared.largest, argv[3]) < 0 ||
            shared.largest < GRANULARITY) {
                fprintf(stderr, "usage: guest-alloc THREADS ROUNDS LARGEST SEED\n");
                return 2;
        }
        shared.rounds = strtoul(argv[2], NULL, 10);

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&shared.context, device));
        must(DRIVER(cuCtxSetCurrent)(shared.context));

        for (size_t i = 0; i < n; i++) {
                threads[i].seed = (unsigned int)(strtoul(argv[4], NULL, 10) + i);
                pthread_create(&threads[i].thread, NULL, run_allocator, &threads[i]);
        }
        for (size_t i = 0; i < n; i++)
                pthread_join(threads[i].thread, NULL);

        printf("refused %lu\nheld %llu\nready\n", atomic_load(&shared.refused),
               (unsigned long long)sum_held(threads, n));
        fflush(stdout);
        while (getchar() != EOF)
                ;

        for (size_t i = 0; i < n; i++)
                for (size_t slot = 0; slot < HELD_MAX; slot++)
                        if (threads[i].held[slot])
                                must(DRIVER(cuMemFree_v2)(threads[i].held[slot]));
        puts("freed");
        return 0;
}
