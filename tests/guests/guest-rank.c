/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank: one of several processes that work in step, as those of a training with collectives do.
 *
 *     guest-rank RANKS INDEX FILE [--device] [--graph] [--launches N] [--ahead N] [--pause US]
 *                [--log FILE] [--size SIZE]
 *
 * In each step it launches kernels that add 1 to all its memory, and then a collective: a kernel that
 * waits until all ranks have launched theirs of this step. The ranks meet at a counter in FILE, which
 * is registered host memory; with --device in device memory, which rank 0 makes and the others import.
 * --graph makes each step one launch of a graph. Up to --ahead steps are on the device at a time, and
 * the host pauses up to --pause microseconds between launches.
 *
 * Whenever the device has done all, it writes "step N ok" to the log, or "step N BAD". Words on standard
 * input: "stick" makes its next kernel one that waits for ever, and is printed then; "free" ends that.
 * After SIGTERM all ranks end after the same step, compare all their memory and print "done STEPS ok" or
 * "done STEPS BAD".
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "base/size.h"
#include "tests/guests/driver.h"
#include "tests/guests/kernel-meet.h"
#include "tests/guests/kernels.h"

#define DEVICE_BYTES (2 * MIB)

/* FILE: what the ranks share. */
struct meeting {
        _Atomic uint32_t counter; /* in steps of the number of ranks */
        uint32_t reserved;
        _Atomic uint64_t last; /* 0: nobody wants to end; else the number of steps */
        _Alignas(
                4096) _Atomic uint32_t stuck[64]; /* of each rank: a meeting without a second one */
};

static struct {
        unsigned int ranks, index, launches, ahead, pause_us;
        bool is_device, is_graph;
        const char *path;
        FILE *log;
        uint64_t n; /* words */

        struct meeting *meeting;
        CUdeviceptr counter, stuck, pointer;
        CUfunction add, fill, meet;
        CUstream stream;
        CUgraphExec graph;
        uint64_t step;
        bool is_bad;
} rank = { .launches = 3, .ahead = 4, .n = MIB };

static _Atomic bool is_ending, shall_stick;

static void on_end(int number)
{
        (void)number;
        is_ending = true;
}

/* The memory of the meeting. */

static struct sockaddr_un address_of_meeting(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        snprintf(address.sun_path, sizeof(address.sun_path), "%s.sock", rank.path);
        return address;
}

_Noreturn static void fail(const char *what)
{
        perror(what);
        exit(1);
}

/* Rank 0 gives the memory to each who asks. */
static void *serve(void *argument)
{
        const int listener = ((int *)argument)[0], memory = ((int *)argument)[1];

        for (;;) {
                int peer = accept(listener, NULL, NULL);

                if (peer < 0)
                        fail("accept");
                if (recv(peer, &(char){ 0 }, 1, 0) != 1)
                        fail("recv");
                if (packet_send(peer, "m", 1, &memory, 1) < 0)
                        fail("send");
                (void)close(peer);
        }
        return NULL;
}

static void start_serving(int memory)
{
        static int fds[2];
        struct sockaddr_un address = address_of_meeting();
        pthread_t thread;

        fds[0] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        fds[1] = memory;
        if (fds[0] < 0 || bind(fds[0], (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(fds[0], 64) < 0)
                fail(address.sun_path);
        if (pthread_create(&thread, NULL, serve, fds) != 0)
                fail("pthread_create");
        pthread_detach(thread);
}

static int receive_memory(void)
{
        struct sockaddr_un address = address_of_meeting();
        int peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[PACKET_FDS_MAX];
        size_t size, n = 0;
        char bytes[PACKET_SIZE_MAX];

        if (peer < 0 || connect(peer, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            send(peer, "m", 1, 0) != 1 || packet_receive(peer, bytes, &size, fds, &n) < 0 || n != 1)
                fail(address.sun_path);
        (void)close(peer);
        return fds[0];
}

static CUmemGenericAllocationHandle make_memory(void)
{
        const int type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        CUmemGenericAllocationHandle handle;
        CUmemAllocationProp prop;
        int fd;

        memset(&prop, 0, sizeof(prop));
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.requestedHandleTypes = type;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        must(DRIVER(cuMemCreate)(&handle, DEVICE_BYTES, &prop, 0));
        must(DRIVER(cuMemExportToShareableHandle)(&fd, handle, type, 0));
        start_serving(fd);
        return handle;
}

static CUmemGenericAllocationHandle import_memory(void)
{
        CUmemGenericAllocationHandle handle;
        int fd = receive_memory();

        must(DRIVER(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)fd,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        (void)close(fd);
        return handle;
}

static CUdeviceptr map_memory(void)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUmemGenericAllocationHandle handle = rank.index == 0 ? make_memory() : import_memory();
        CUdeviceptr pointer;

        must(DRIVER(cuMemAddressReserve)(&pointer, DEVICE_BYTES, 0, 0, 0));
        must(DRIVER(cuMemMap)(pointer, DEVICE_BYTES, 0, handle, 0));
        must(DRIVER(cuMemSetAccess)(pointer, DEVICE_BYTES, &access, 1));
        return pointer;
}

static void open_meeting(void)
{
        const unsigned int flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
        int fd = open(rank.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CUdeviceptr mapped;

        if (fd < 0 || ftruncate(fd, sizeof(struct meeting)) < 0)
                fail(rank.path);
        rank.meeting =
                mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (rank.meeting == MAP_FAILED)
                fail(rank.path);
        (void)close(fd);
        must(DRIVER(cuMemHostRegister_v2)(rank.meeting, sizeof(struct meeting), flags));
        must(DRIVER(cuMemHostGetDevicePointer_v2)(&mapped, rank.meeting, 0));
        rank.stuck = mapped + offsetof(struct meeting, stuck) + 4 * rank.index;
        rank.counter = mapped;
        if (rank.is_device)
                rank.counter = map_memory();
}

static uint32_t read_counter(void)
{
        uint32_t value;

        if (!rank.is_device)
                return rank.meeting->counter;
        must(DRIVER(cuMemcpyDtoH_v2)(&value, rank.counter, sizeof(value)));
        return value;
}

/* Launches. */

static void launch_array(CUfunction function, uint32_t value)
{
        void *parameters[] = { &rank.pointer, &value, &rank.n };

        must(DRIVER(cuLaunchKernel)(function, 64, 1, 1, 256, 1, 1, 0, rank.stream, parameters,
                                    NULL));
}

static void launch_meet(CUdeviceptr counter, uint32_t ranks)
{
        void *parameters[] = { &counter, &ranks };

        must(DRIVER(cuLaunchKernel)(rank.meet, 1, 1, 1, 1, 1, 1, 0, rank.stream, parameters, NULL));
}

static void pause_a_little(void)
{
        if (rank.pause_us > 0)
                (void)usleep((useconds_t)rand() % rank.pause_us);
}

static void launch_step(void)
{
        for (unsigned int i = 0; i < rank.launches; i++) {
                launch_array(rank.add, 1);
                if (!rank.is_graph)
                        pause_a_little();
        }
        launch_meet(rank.counter, rank.ranks);
}

static void make_graph(void)
{
        CUgraph graph;

        must(DRIVER(cuStreamBeginCapture_v2)(rank.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        launch_step();
        must(DRIVER(cuStreamEndCapture)(rank.stream, &graph));
        must(DRIVER(cuGraphInstantiateWithFlags)(&rank.graph, graph, 0));
        must(DRIVER(cuGraphDestroy)(graph));
}

static void make_step(void)
{
        if (atomic_exchange(&shall_stick, false)) {
                launch_meet(rank.stuck, 2);
                puts("stick");
                (void)fflush(stdout);
        }
        if (rank.is_graph)
                must(DRIVER(cuGraphLaunch)(rank.graph, rank.stream));
        else
                launch_step();
        pause_a_little();
        rank.step++;
}

/* What came of it. */

static bool is_word_right(uint32_t word)
{
        return word == (uint32_t)(rank.step * rank.launches);
}

/* The device has nothing more to do: all ranks were in the last step of this one. */
static void look(void)
{
        uint32_t word;

        must(DRIVER(cuStreamSynchronize)(rank.stream));
        must(DRIVER(cuMemcpyDtoH_v2)(&word, rank.pointer + 4 * (rank.n - 1), sizeof(word)));
        rank.is_bad |= !is_word_right(word) || read_counter() < rank.step * rank.ranks;
        if (rank.log)
                fprintf(rank.log, "step %lu %s\n", (unsigned long)rank.step,
                        rank.is_bad ? "BAD" : "ok");
}

static bool is_memory_right(void)
{
        uint32_t *words = malloc(rank.n * sizeof(*words));
        bool is_right = words != NULL;

        if (words)
                must(DRIVER(cuMemcpyDtoH_v2)(words, rank.pointer, rank.n * sizeof(*words)));
        for (uint64_t i = 0; is_right && i < rank.n; i++)
                is_right = is_word_right(words[i]);
        free(words);
        return is_right;
}

/*
 * No rank is further than --ahead steps before another: a number of steps that is twice as far away is still
 * to come for all.
 */
static bool is_last(void)
{
        uint64_t nobody = 0;

        if (is_ending)
                (void)atomic_compare_exchange_strong(&rank.meeting->last, &nobody,
                                                     rank.step + 2 * rank.ahead + 1);
        return rank.step > 0 && rank.meeting->last == rank.step;
}

/* Not from a stream: exit() waits for a thread that reads from one (glibc 2.41). */
static bool read_word(char *word, size_t room)
{
        size_t n = 0;

        while (n + 1 < room && read(STDIN_FILENO, &word[n], 1) == 1 && word[n] != '\n')
                n++;
        word[n] = '\0';
        return n > 0;
}

static void *read_words(void *unused)
{
        char word[16];

        (void)unused;
        while (read_word(word, sizeof(word))) {
                if (strcmp(word, "stick") == 0)
                        shall_stick = true;
                else if (strcmp(word, "free") == 0)
                        atomic_fetch_add(&rank.meeting->stuck[rank.index], 1);
        }
        return NULL;
}

static void start(void)
{
        CUcontext context;
        CUmodule module;
        CUdevice device;
        pthread_t thread;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&rank.fill, module, "fill"));
        must(DRIVER(cuModuleGetFunction)(&rank.add, module, "add"));
        must(DRIVER(cuModuleLoadData)(&module, kernel_meet));
        must(DRIVER(cuModuleGetFunction)(&rank.meet, module, "meet"));
        must(DRIVER(cuStreamCreate)(&rank.stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuMemAlloc_v2)(&rank.pointer, rank.n * sizeof(uint32_t)));
        launch_array(rank.fill, 0);
        must(DRIVER(cuStreamSynchronize)(rank.stream));
        open_meeting();
        if (rank.is_graph)
                make_graph();
        if (pthread_create(&thread, NULL, read_words, NULL) != 0)
                fail("pthread_create");
        pthread_detach(thread);
}

static bool parse(int argc, char **argv)
{
        static const struct option options[] = {
                { "device", no_argument, NULL, 'd' },
                { "graph", no_argument, NULL, 'g' },
                { "launches", required_argument, NULL, 'l' },
                { "ahead", required_argument, NULL, 'a' },
                { "pause", required_argument, NULL, 'p' },
                { "log", required_argument, NULL, 'o' },
                { "size", required_argument, NULL, 's' },
                { 0 },
        };
        uint64_t size = 4 * MIB;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (option == 'd')
                        rank.is_device = true;
                else if (option == 'g')
                        rank.is_graph = true;
                else if (option == 'l')
                        rank.launches = (unsigned int)atoi(optarg);
                else if (option == 'a')
                        rank.ahead = (unsigned int)atoi(optarg);
                else if (option == 'p')
                        rank.pause_us = (unsigned int)atoi(optarg);
                else if (option == 'o')
                        rank.log = fopen(optarg, "we");
                else if (option != 's' || size_parse(&size, optarg) < 0)
                        return false;
        }
        if (argc - optind != 3)
                return false;
        rank.ranks = (unsigned int)atoi(argv[optind]);
        rank.index = (unsigned int)atoi(argv[optind + 1]);
        rank.path = argv[optind + 2];
        rank.n = size / sizeof(uint32_t);
        return rank.index < rank.ranks && rank.ranks <= 64 && rank.ahead > 0;
}

int main(int argc, char **argv)
{
        bool is_right;

        if (!parse(argc, argv)) {
                fprintf(stderr, "usage: guest-rank RANKS INDEX FILE [OPTION...]\n");
                return 2;
        }
        if (rank.log)
                setlinebuf(rank.log);
        srand((unsigned int)getpid());
        (void)signal(SIGTERM, on_end);
        start();
        puts("ready");
        fflush(stdout);
        while (!is_last()) {
                make_step();
                if (rank.step % rank.ahead == 0)
                        look();
        }
        look();
        is_right = is_memory_right() && !rank.is_bad;
        printf("done %lu %s\n", (unsigned long)rank.step, is_right ? "ok" : "BAD");
        return is_right ? 0 : 1;
}
