/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that allocates and frees in the order of streams, at random, and looks whether each piece
 * still has its own number when it is freed: in a stream other than the one that made it, while other
 * streams get what was freed. Memory that two have at once, or that was lost on a move, shows.
 *
 *     guest-ordered --log FILE [--size SIZE]
 *
 * SIZE (default 16M) is held all the time, in pieces of 4 MiB. As guest-train it writes a line a step to its log,
 * "ready" to standard output after the first, and ends on SIGTERM with "done STEPS ok" or "... BAD".
 */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

#define STREAMS    4
#define SLOTS      24
#define HELD_MAX   1024
#define HELD_SIZE  (4 * MIB)
#define OPERATIONS 24 /* of a step */
#define SAMPLES    3
#define BUSY_US    300

struct piece {
        CUdeviceptr pointer;
        size_t size;
        uint32_t word; /* all of it has */
        int stream;    /* which filled it */
};

static struct {
        CUstream stream[STREAMS];
        CUevent event[STREAMS];
        CUfunction fill, busy;
        struct piece slot[SLOTS];
        struct piece held[HELD_MAX];
        size_t n_held;
        uint32_t next_word;
        unsigned int seed;
        uint32_t *sample; /* host memory: of each operation of the step */
        uint32_t expected[OPERATIONS];
        size_t n_samples;
} guest = { .next_word = 1, .seed = 1 };

static volatile sig_atomic_t terminated;

static void on_terminate(int signal_number)
{
        (void)signal_number;
        terminated = 1;
}

static unsigned int choose(unsigned int n)
{
        return (unsigned int)rand_r(&guest.seed) % n;
}

static void launch(CUfunction function, int stream, void **parameters)
{
        must(DRIVER(cuLaunchKernel)(function, 64, 1, 1, 256, 1, 1, 0, guest.stream[stream],
                                    parameters, NULL));
}

static void allocate(struct piece *piece, size_t size, int stream)
{
        uint64_t n = size / sizeof(uint32_t);
        void *parameters[] = { &piece->pointer, &piece->word, &n };

        must(DRIVER(cuMemAllocAsync)(&piece->pointer, size, guest.stream[stream]));
        piece->size = size;
        piece->word = guest.next_word++;
        piece->stream = stream;
        launch(guest.fill, stream, parameters);
}

static size_t choose_size(void)
{
        return sizeof(uint32_t) * (1 + (choose(2) ? choose(10000) : choose(1500000)));
}

/* So that @stream comes after all that the piece's own has done with it. */
static void follow(int stream, const struct piece *piece)
{
        if (stream == piece->stream)
                return;
        must(DRIVER(cuEventRecord)(guest.event[piece->stream], guest.stream[piece->stream]));
        must(DRIVER(cuStreamWaitEvent)(guest.stream[stream], guest.event[piece->stream], 0));
}

static void sample_and_free(struct piece *piece, int stream)
{
        uint32_t *sample = guest.sample + guest.n_samples * SAMPLES;
        size_t last = piece->size - sizeof(uint32_t);

        follow(stream, piece);
        for (size_t i = 0; i < SAMPLES; i++)
                must(DRIVER(cuMemcpyDtoHAsync_v2)(&sample[i],
                                                  piece->pointer + last * i / (SAMPLES - 1) / 4 * 4,
                                                  sizeof(uint32_t), guest.stream[stream]));
        guest.expected[guest.n_samples++] = piece->word;
        must(DRIVER(cuMemFreeAsync)(piece->pointer, guest.stream[stream]));
        piece->pointer = 0;
}

static void one_operation(void)
{
        struct piece *piece = &guest.slot[choose(SLOTS)];
        int stream = (int)choose(STREAMS);
        uint64_t us = BUSY_US;
        void *parameters[] = { &us };

        if (choose(6) == 0)
                launch(guest.busy, stream, parameters);
        if (piece->pointer)
                sample_and_free(piece, stream);
        else
                allocate(piece, choose_size(), stream);
}

static void synchronize(void)
{
        for (int i = 0; i < STREAMS; i++)
                must(DRIVER(cuStreamSynchronize)(guest.stream[i]));
}

static bool one_step(void)
{
        bool right = true;

        for (int i = 0; i < OPERATIONS; i++)
                one_operation();
        synchronize();
        for (size_t i = 0; i < guest.n_samples * SAMPLES; i++)
                right = right && guest.sample[i] == guest.expected[i / SAMPLES];
        guest.n_samples = 0;
        return right;
}

static bool is_whole(const struct piece *piece)
{
        uint32_t *words = malloc(piece->size);
        bool right = words;

        must(DRIVER(cuMemcpyDtoH_v2)(words, piece->pointer, piece->size));
        for (size_t i = 0; right && i < piece->size / sizeof(uint32_t); i++)
                right = words[i] == piece->word;
        free(words);
        return right;
}

/* Everything that there is, word by word; and then nothing. */
static bool finish(void)
{
        bool right = true;

        for (size_t i = 0; i < guest.n_held; i++)
                right = is_whole(&guest.held[i]) && right;
        for (size_t i = 0; i < SLOTS; i++)
                if (guest.slot[i].pointer)
                        right = is_whole(&guest.slot[i]) && right;
        for (size_t i = 0; i < guest.n_held; i++)
                must(DRIVER(cuMemFreeAsync)(guest.held[i].pointer, guest.stream[0]));
        synchronize();
        return right;
}

static void start(uint64_t size)
{
        CUcontext context;
        CUmodule module;
        CUdevice device;
        void *host;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&guest.fill, module, "fill"));
        must(DRIVER(cuModuleGetFunction)(&guest.busy, module, "busy"));
        must(DRIVER(cuMemHostAlloc)(&host, OPERATIONS * SAMPLES * sizeof(uint32_t), 0));
        guest.sample = host;
        for (int i = 0; i < STREAMS; i++) {
                must(DRIVER(cuStreamCreate)(&guest.stream[i], CU_STREAM_NON_BLOCKING));
                must(DRIVER(cuEventCreate)(&guest.event[i], 0));
        }
        while (guest.n_held < HELD_MAX && guest.n_held < size / HELD_SIZE)
                allocate(&guest.held[guest.n_held++], HELD_SIZE, (int)choose(STREAMS));
        synchronize();
}

static FILE *parse(int argc, char **argv, uint64_t *ret_size)
{
        static const struct option names[] = {
                { "log", required_argument, NULL, 'l' },
                { "size", required_argument, NULL, 's' },
                { NULL, 0, NULL, 0 },
        };
        FILE *log = stderr;
        int option;

        while ((option = getopt_long(argc, argv, "", names, NULL)) >= 0) {
                if (option == 'l')
                        log = fopen(optarg, "w");
                if (option == '?' || !log || (option == 's' && size_parse(ret_size, optarg) < 0)) {
                        fprintf(stderr, "usage: guest-ordered [--log FILE] [--size SIZE]\n");
                        exit(2);
                }
        }
        return log;
}

int main(int argc, char **argv)
{
        uint64_t size = 16 * MIB;
        FILE *log = parse(argc, argv, &size);
        unsigned long steps = 0;
        bool right = true;

        signal(SIGTERM, on_terminate);
        start(size);
        while (!terminated) {
                bool is_right = one_step();

                right = right && is_right;
                fprintf(log, "%lu %s\n", ++steps, is_right ? "ok" : "BAD");
                fflush(log);
                if (steps == 1) {
                        puts("ready");
                        fflush(stdout);
                }
                usleep(2000);
        }
        right = finish() && right;
        printf("done %lu %s\n", steps, right ? "ok" : "BAD");
        return right ? 0 : 1;
}
