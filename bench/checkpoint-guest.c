/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are hard to checkpoint, in one: what each does with CUDA is its KIND.
 *
 *     checkpoint-guest KIND COUNTER [DEVICE]
 *
 * KIND: none (without CUDA) idle busy (with work that never ends) sync sync-thread launch threads
 * managed pool graph, or call-NAME: waits for a line on standard input, then makes one driver call,
 * and so on
 *
 * COUNTER is a file: 8 bytes that count the rounds, so that others see whether it goes on. Each round
 * adds one to every word of its memory. At SIGTERM it compares all words with the number of rounds
 * and ends: 0 all right, 1 wrong.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

#define WORDS       ((size_t)1 << 20)
#define THREADS     16
#define POOL_WORDS  ((size_t)1 << 18)
#define GRAPH_NODES 20

struct worker {
        CUdeviceptr memory;
        CUstream stream;
        uint64_t rounds;
};

static CUcontext context;
static CUfunction add, fill;
static _Atomic uint64_t *counter;
static volatile sig_atomic_t ending;

static void on_terminate(int number)
{
        (void)number;
        ending = 1;
}

static void launch(CUfunction function, CUdeviceptr memory, uint32_t value, uint64_t n,
                   CUstream stream)
{
        void *arguments[] = { &memory, &value, &n };

        must(DRIVER(cuLaunchKernel)(function, 64, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

static void worker_init(struct worker *worker, CUdeviceptr memory)
{
        worker->memory = memory;
        worker->rounds = 0;
        must(DRIVER(cuStreamCreate)(&worker->stream, 1));
        must(DRIVER(cuMemsetD32_v2)(memory, 0, WORDS));
        must(DRIVER(cuCtxSynchronize)());
}

static void worker_allocate(struct worker *worker)
{
        CUdeviceptr memory;

        must(DRIVER(cuMemAlloc_v2)(&memory, WORDS * 4));
        worker_init(worker, memory);
}

static bool worker_is_right(const struct worker *worker)
{
        uint32_t *words = malloc(WORDS * 4);
        size_t wrong = 0;

        must(DRIVER(cuMemcpyDtoH_v2)(words, worker->memory, WORDS * 4));
        for (size_t i = 0; i < WORDS; i++)
                wrong += words[i] != (uint32_t)worker->rounds;
        free(words);
        if (wrong)
                fprintf(stderr, "%zu of %zu words are not %lu\n", wrong, WORDS, worker->rounds);
        return wrong == 0;
}

static void worker_round(struct worker *worker)
{
        launch(add, worker->memory, 1, WORDS, worker->stream);
        must(DRIVER(cuStreamSynchronize)(worker->stream));
        worker->rounds++;
        atomic_fetch_add(counter, 1);
}

static bool run_none(void)
{
        while (!ending) {
                usleep(1000);
                atomic_fetch_add(counter, 1);
        }
        return true;
}

static bool run_idle(void)
{
        struct worker worker;

        worker_allocate(&worker);
        for (;;) {
                worker_round(&worker);
                usleep(50000);
                if (ending)
                        return worker_is_right(&worker);
        }
}

static void wait_for_ever(void *unused)
{
        (void)unused;
        for (;;)
                pause();
}

static bool run_busy(void)
{
        must(DRIVER(cuLaunchHostFunc)(NULL, wait_for_ever, NULL));
        return run_none();
}

static bool run_sync(void)
{
        while (!ending) {
                must(DRIVER(cuCtxSynchronize)());
                atomic_fetch_add(counter, 1);
        }
        return true;
}

static void *synchronize(void *unused)
{
        must(DRIVER(cuCtxSetCurrent)(context));
        while (!ending)
                must(DRIVER(cuCtxSynchronize)());
        return unused;
}

static bool run_sync_thread(void)
{
        struct worker worker;
        pthread_t thread;

        worker_allocate(&worker);
        pthread_create(&thread, NULL, synchronize, NULL);
        while (!ending)
                worker_round(&worker);
        pthread_join(thread, NULL);
        return worker_is_right(&worker);
}

static bool run_launch(void)
{
        struct worker worker;

        worker_allocate(&worker);
        while (!ending)
                worker_round(&worker);
        return worker_is_right(&worker);
}

static void *work(void *data)
{
        must(DRIVER(cuCtxSetCurrent)(context));
        while (!ending)
                worker_round(data);
        return NULL;
}

static bool run_threads(void)
{
        struct worker workers[THREADS];
        pthread_t threads[THREADS];
        bool right = true;

        for (int i = 0; i < THREADS; i++)
                worker_allocate(&workers[i]);
        for (int i = 0; i < THREADS; i++)
                pthread_create(&threads[i], NULL, work, &workers[i]);
        for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i], NULL);
                right = worker_is_right(&workers[i]) && right;
        }
        return right;
}

static bool run_managed(void)
{
        struct worker worker;
        CUdeviceptr memory;

        must(DRIVER(cuMemAllocManaged)(&memory, WORDS * 4, 1));
        worker_init(&worker, memory);
        while (!ending)
                worker_round(&worker);
        return worker_is_right(&worker);
}

/* Memory that lives for one round, from the device's own pool, beside some that stays. */
static bool run_pool(void)
{
        struct worker worker;
        CUdeviceptr brief;
        uint32_t word;

        worker_allocate(&worker);
        must(DRIVER(cuMemAllocAsync)(&worker.memory, WORDS * 4, worker.stream));
        launch(fill, worker.memory, 0, WORDS, worker.stream);
        while (!ending) {
                must(DRIVER(cuMemAllocAsync)(&brief, POOL_WORDS * 4, worker.stream));
                launch(fill, brief, (uint32_t)worker.rounds, POOL_WORDS, worker.stream);
                must(DRIVER(cuMemcpyDtoHAsync_v2)(&word, brief + POOL_WORDS * 4 - 4, 4,
                                                  worker.stream));
                must(DRIVER(cuMemFreeAsync)(brief, worker.stream));
                worker_round(&worker);
                if (word != (uint32_t)worker.rounds - 1) {
                        fprintf(stderr, "the pool: %u, not %lu\n", word, worker.rounds - 1);
                        return false;
                }
        }
        return worker_is_right(&worker);
}

static bool run_graph(void)
{
        struct worker worker;
        CUgraphExec exec;
        CUgraph graph;

        worker_allocate(&worker);
        must(DRIVER(cuStreamBeginCapture_v2)(worker.stream, 0));
        for (int i = 0; i < GRAPH_NODES; i++)
                launch(add, worker.memory, 1, WORDS, worker.stream);
        must(DRIVER(cuStreamEndCapture)(worker.stream, &graph));
        must(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
        while (!ending) {
                must(DRIVER(cuGraphLaunch)(exec, worker.stream));
                must(DRIVER(cuStreamSynchronize)(worker.stream));
                worker.rounds += GRAPH_NODES;
                atomic_fetch_add(counter, 1);
        }
        return worker_is_right(&worker);
}

static struct worker late;
static CUevent late_event;

static void call_launch(void)
{
        launch(add, late.memory, 1, WORDS, late.stream);
        late.rounds++;
}

static void call_context_synchronize(void)
{
        must(DRIVER(cuCtxSynchronize)());
}

static void call_stream_synchronize(void)
{
        must(DRIVER(cuStreamSynchronize)(late.stream));
}

static void call_event(void)
{
        must(DRIVER(cuEventRecord)(late_event, late.stream));
        must(DRIVER(cuEventSynchronize)(late_event));
}

static void call_query(void)
{
        CUresult result = DRIVER(cuStreamQuery)(late.stream);

        if (result != CUDA_ERROR_NOT_READY)
                must_succeed(result, "cuStreamQuery");
}

static void call_copy(void)
{
        uint32_t word;

        must(DRIVER(cuMemcpyDtoH_v2)(&word, late.memory, 4));
}

static void call_allocate(void)
{
        CUdeviceptr memory;

        must(DRIVER(cuMemAlloc_v2)(&memory, 4096));
        must(DRIVER(cuMemFree_v2)(memory));
}

static void call_info(void)
{
        size_t left, total;

        must(DRIVER(cuMemGetInfo_v2)(&left, &total));
}

static const struct {
        const char *name;
        void (*call)(void);
} calls[] = {
        { "call-launch", call_launch },
        { "call-context-synchronize", call_context_synchronize },
        { "call-stream-synchronize", call_stream_synchronize },
        { "call-event", call_event },
        { "call-query", call_query },
        { "call-copy", call_copy },
        { "call-allocate", call_allocate },
        { "call-info", call_info },
};

static const char *kind;

static bool run_call(void)
{
        char line[16];

        worker_allocate(&late);
        must(DRIVER(cuEventCreate)(&late_event, 0));
        while (fgets(line, sizeof(line), stdin)) {
                for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                        if (strcmp(calls[i].name, kind) == 0)
                                calls[i].call();
                atomic_fetch_add(counter, 1);
        }
        must(DRIVER(cuCtxSynchronize)());
        return worker_is_right(&late);
}

static const struct {
        const char *name;
        bool (*run)(void);
} kinds[] = {
        { "none", run_none },
        { "busy", run_busy },
        { "idle", run_idle },
        { "sync", run_sync },
        { "sync-thread", run_sync_thread },
        { "launch", run_launch },
        { "threads", run_threads },
        { "managed", run_managed },
        { "pool", run_pool },
        { "graph", run_graph },
};

static bool (*find(const char *name))(void)
{
        kind = name;
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                if (strcmp(calls[i].name, name) == 0)
                        return run_call;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (strcmp(kinds[i].name, name) == 0)
                        return kinds[i].run;
        return NULL;
}

static bool open_counter(const char *path)
{
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        if (fd < 0 || ftruncate(fd, sizeof(*counter)) < 0)
                return false;
        counter = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        return counter != MAP_FAILED;
}

static void start_cuda(int number)
{
        CUmodule module;
        CUdevice device;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, number));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&add, module, "add"));
        must(DRIVER(cuModuleGetFunction)(&fill, module, "fill"));
}

int main(int argc, char **argv)
{
        bool (*run)(void) = argc == 3 || argc == 4 ? find(argv[1]) : NULL;
        struct sigaction action = { .sa_handler = on_terminate };

        if (!run) {
                fprintf(stderr, "usage: checkpoint-guest KIND COUNTER [DEVICE]\n");
                return 2;
        }
        if (!open_counter(argv[2])) {
                perror(argv[2]);
                return 1;
        }
        sigaction(SIGTERM, &action, NULL);
        if (run != run_none)
                start_cuda(argc == 4 ? atoi(argv[3]) : 0);
        puts("ready");
        fflush(stdout);
        return run() ? 0 : 1;
}
