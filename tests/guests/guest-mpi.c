/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of a real MPI: guest-mpi SIZE PAUSE_MS. Each step adds 1 to all of its device memory and sums one word of it over
 * all ranks, so a rank that is behind the others, or has lost its memory, shows. Rank 0 writes "ready", a line for each
 * step and, after SIGUSR1 to any rank, "done STEPS, RANKS ranks: ok", once every rank has compared every word.
 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>

#include "base/size.h"
#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

struct rank {
        int number, n_ranks;
        CUdeviceptr memory;
        uint64_t n_words;
        CUfunction fill, add;
        uint32_t step;
};

static volatile sig_atomic_t terminated;

static void on_terminate(int signal_number)
{
        (void)signal_number;
        terminated = 1;
}

static void launch(struct rank *rank, CUfunction function, uint32_t value)
{
        void *parameters[] = { &rank->memory, &value, &rank->n_words };

        must(DRIVER(cuLaunchKernel)(function, 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
        must(DRIVER(cuCtxSynchronize)());
}

static void start_on_device(struct rank *rank, uint64_t size)
{
        CUcontext context;
        CUmodule module;
        CUdevice device;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&rank->fill, module, "fill"));
        must(DRIVER(cuModuleGetFunction)(&rank->add, module, "add"));
        must(DRIVER(cuMemAlloc_v2)(&rank->memory, size));
        rank->n_words = size / sizeof(uint32_t);
        launch(rank, rank->fill, (uint32_t)rank->number);
}

static uint64_t sum_over_ranks(uint64_t value)
{
        uint64_t sum;

        MPI_Allreduce(&value, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        return sum;
}

/* True: the sum is that of all ranks after as many steps. */
static bool one_step(struct rank *rank)
{
        uint64_t n = (uint64_t)rank->n_ranks, sum;
        uint32_t word;

        launch(rank, rank->add, 1);
        rank->step++;
        must(DRIVER(cuMemcpyDtoH_v2)(&word, rank->memory, sizeof(word)));
        sum = sum_over_ranks(word);
        return sum == n * (n - 1) / 2 + n * rank->step;
}

static bool compare_everywhere(const struct rank *rank)
{
        uint32_t *words = malloc(rank->n_words * sizeof(*words));
        uint64_t wrong = 0;

        if (!words)
                return false;
        must(DRIVER(cuMemcpyDtoH_v2)(words, rank->memory, rank->n_words * sizeof(*words)));
        for (uint64_t i = 0; i < rank->n_words; i++)
                wrong += words[i] != (uint32_t)rank->number + rank->step;
        free(words);
        return sum_over_ranks(wrong) == 0;
}

static void say(const struct rank *rank, bool is_right)
{
        if (rank->number > 0)
                return;
        printf("%s%u %s\n", rank->step == 1 ? "ready\n" : "", rank->step, is_right ? "ok" : "BAD");
        fflush(stdout);
}

int main(int argc, char **argv)
{
        struct sigaction action = { .sa_handler = on_terminate };
        struct timespec pause = { 0 };
        struct rank rank = { 0 };
        bool is_right = true;
        uint64_t size;

        if (argc != 3 || size_parse(&size, argv[1]) < 0) {
                fputs("usage: guest-mpi SIZE PAUSE_MS\n", stderr);
                return 2;
        }
        pause.tv_nsec = atol(argv[2]) * 1000000;
        MPI_Init(NULL, NULL);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank.number);
        MPI_Comm_size(MPI_COMM_WORLD, &rank.n_ranks);
        sigaction(SIGUSR1, &action, NULL); /* what mpirun passes on */
        start_on_device(&rank, size);
        do {
                bool is_step_right = one_step(&rank);

                is_right = is_right && is_step_right;
                say(&rank, is_step_right);
                nanosleep(&pause, NULL);
        } while (sum_over_ranks(terminated) == 0);
        is_right = compare_everywhere(&rank) && is_right;
        if (rank.number == 0)
                printf("done %u, %d ranks: %s\n", rank.step, rank.n_ranks, is_right ? "ok" : "BAD");
        MPI_Finalize();
        return is_right ? 0 : 1;
}
