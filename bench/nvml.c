/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an NVML query costs: bench-nvml OUR-LIBRARY [NVIDIA'S-LIBRARY]
 *
 * Makes a board with 2 devices and 32 vGPUs of 16 processes each, then prints the
 * nanoseconds of single-value getters, the time to read everything there is (a scrape), and
 * the same getter in 1, 10 and 100 processes at once while a writer publishes 10 times a second.
 * With NVIDIA's library as second argument, the getters that both have are timed in
 * the same run.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/nvml-vgpu-calls.h"
#include "base/paths.h"
#include "base/size.h"
#include "board/board.h"
#include "catalog/catalog.h"

#define N_DEVICES   2
#define N_INSTANCES 32
#define N_PROCESSES 16
#define FIRST_ID    100
#define CALLS       200000

/* The functions under test, of one library. */
struct library {
        const char *label;
        void *handle;
        nvmlDevice_t device;
};

static void die(const char *what, const char *why)
{
        fprintf(stderr, "bench-nvml: %s: %s\n", what, why);
        exit(1);
}

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void publish(struct board *board)
{
        for (uint32_t i = 0; i < N_DEVICES; i++) {
                struct board_device device = { .index = i,
                                               .pci_bus = i,
                                               .pci_device_id = 0x233510de,
                                               .memory_total = 140 * GIB,
                                               .memory_used = GIB,
                                               .name = "NVIDIA H200" };

                snprintf(device.uuid, sizeof(device.uuid), "GPU-%u", i);
                board_write_device(board, i, &device);
                catalog_publish(board, &device);
        }
        for (uint32_t i = 0; i < N_INSTANCES; i++) {
                struct board_instance instance = { .id = FIRST_ID + i,
                                                   .device = i % N_DEVICES,
                                                   .state = BOARD_RUNNING,
                                                   .utilization_gpu = 3,
                                                   .frame_buffer_quota = 8 * GIB,
                                                   .frame_buffer_used = GIB,
                                                   .uuid = "e5c1b1a0-0000-4000-8000-000000000000",
                                                   .name = "vgpu" };

                instance.type_id =
                        catalog_type_of_quota(board, instance.device, instance.frame_buffer_quota);
                board_write_instance(board, i, &instance);
        }
        for (uint32_t i = 0; i < N_INSTANCES * N_PROCESSES; i++) {
                struct board_process process = { .pid = 1000 + i,
                                                 .instance = FIRST_ID + i / N_PROCESSES,
                                                 .device = i / N_PROCESSES % N_DEVICES,
                                                 .utilization_gpu = 1,
                                                 .memory_used = 64 * MIB };

                board_write_process(board, i, &process);
        }
        board->n_devices = N_DEVICES;
        board->heartbeat_ns = now_ns();
}

static void *get(const struct library *library, const char *name)
{
        void *function = dlsym(library->handle, name);

        if (!function)
                die(library->label, dlerror());
        return function;
}

#define CALL(library, name, ...) ((__typeof__(&name))get(library, #name))(__VA_ARGS__)

static void start(struct library *library, const char *path)
{
        nvmlReturn_t r;

        library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library->handle)
                die(path, dlerror());
        r = CALL(library, nvmlInit_v2);
        if (r == NVML_SUCCESS)
                r = CALL(library, nvmlDeviceGetHandleByIndex_v2, 0, &library->device);
        if (r != NVML_SUCCESS)
                die(path, CALL(library, nvmlErrorString, r));
}

/* The best of five rounds: what the call costs, not what else the machine did. */
#define TIME(expression)                                                      \
        __extension__({                                                       \
                double best_ = 1e9;                                           \
                for (int round_ = 0; round_ < 5; round_++) {                  \
                        uint64_t start_ = now_ns();                           \
                        for (int i_ = 0; i_ < CALLS / 5; i_++)                \
                                (void)(expression);                           \
                        double ns_ = (double)(now_ns() - start_) * 5 / CALLS; \
                        best_ = ns_ < best_ ? ns_ : best_;                    \
                }                                                             \
                best_;                                                        \
        })

static double time_device_getter(const struct library *library, const char *name)
{
        nvmlReturn_t (*getter)(nvmlDevice_t, void *) = get(library, name);
        unsigned char out[64];

        return TIME(getter(library->device, out));
}

static double time_instance_getter(const struct library *library, const char *name)
{
        nvmlReturn_t (*getter)(nvmlVgpuInstance_t, void *) = get(library, name);
        unsigned char out[64];

        return TIME(getter(FIRST_ID + 17, out));
}

static double time_text(const struct library *library, const char *name)
{
        nvmlReturn_t (*getter)(nvmlDevice_t, char *, unsigned int) = get(library, name);
        char text[96];

        return TIME(getter(library->device, text, sizeof(text)));
}

static const char *const device_getters[] = {
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetIndex",
        "nvmlDeviceGetVirtualizationMode",
};

static const char *const instance_getters[] = {
        "nvmlVgpuInstanceGetFbUsage",        "nvmlVgpuInstanceGetType",
        "nvmlVgpuInstanceGetLicenseInfo_v2", "nvmlVgpuInstanceGetAccountingMode",
        "nvmlVgpuInstanceGetFBCStats",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void print_row(const char *name, double ours, double theirs)
{
        printf("%-36s %10.0f ns", name, ours);
        if (theirs > 0)
                printf(" %12.0f ns %8.3f", theirs, ours / theirs);
        putchar('\n');
}

static void print_getters(const struct library *ours, const struct library *theirs)
{
        printf("%-36s %13s%s\n", "getter", "ours", theirs ? "        NVIDIA's    ratio" : "");
        for (size_t i = 0; i < COUNT(device_getters); i++)
                print_row(device_getters[i], time_device_getter(ours, device_getters[i]),
                          theirs ? time_device_getter(theirs, device_getters[i]) : 0);
        print_row("nvmlDeviceGetUUID", time_text(ours, "nvmlDeviceGetUUID"),
                  theirs ? time_text(theirs, "nvmlDeviceGetUUID") : 0);
        for (size_t i = 0; i < COUNT(instance_getters); i++)
                print_row(instance_getters[i], time_instance_getter(ours, instance_getters[i]), 0);
}

/* What an exporter reads of one vGPU. */
static void scrape_instance(const struct library *library, nvmlVgpuInstance_t id)
{
        unsigned int pids[4000], n = COUNT(pids);
        nvmlAccountingStats_t stats;
        unsigned long long bytes;
        nvmlVgpuTypeId_t type;
        char text[80];

        CALL(library, nvmlVgpuInstanceGetUUID, id, text, sizeof(text));
        CALL(library, nvmlVgpuInstanceGetFbUsage, id, &bytes);
        CALL(library, nvmlVgpuInstanceGetType, id, &type);
        CALL(library, nvmlVgpuTypeGetFramebufferSize, type, &bytes);
        CALL(library, nvmlVgpuInstanceGetAccountingPids, id, &n, pids);
        for (unsigned int i = 0; i < n; i++)
                CALL(library, nvmlVgpuInstanceGetAccountingStats, id, pids[i], &stats);
}

static void scrape(const struct library *library)
{
        nvmlVgpuProcessUtilizationSample_t samples[N_INSTANCES * N_PROCESSES];
        nvmlVgpuInstance_t ids[N_INSTANCES];

        for (unsigned int i = 0; i < N_DEVICES; i++) {
                unsigned int n = N_INSTANCES, n_samples = COUNT(samples);
                nvmlDevice_t device;

                CALL(library, nvmlDeviceGetHandleByIndex_v2, i, &device);
                CALL(library, nvmlDeviceGetActiveVgpus, device, &n, ids);
                for (unsigned int j = 0; j < n; j++)
                        scrape_instance(library, ids[j]);
                CALL(library, nvmlDeviceGetVgpuProcessUtilization, device, 0, &n_samples, samples);
        }
}

static void print_scrape(const struct library *library)
{
        uint64_t start_ns = now_ns();
        const int n = 20;

        for (int i = 0; i < n; i++)
                scrape(library);
        printf("%-36s %10.2f ms\n", "scrape of 32 vGPUs x 16 processes",
               (double)(now_ns() - start_ns) / n / 1e6);
}

static pid_t start_writer(struct board *board)
{
        const struct timespec interval = { .tv_nsec = 100000000 };
        pid_t pid = fork();

        if (pid != 0)
                return pid;
        for (;;) {
                publish(board);
                nanosleep(&interval, NULL);
        }
}

/* Each reader's processor time a call, so that waiting for a processor does not count. */
static void print_concurrent(const struct library *library, struct board *board, int n_readers)
{
        nvmlReturn_t (*getter)(nvmlVgpuInstance_t, unsigned long long *) =
                get(library, "nvmlVgpuInstanceGetFbUsage");
        pid_t writer = start_writer(board);
        unsigned long long bytes;
        double sum = 0, one;
        int results[2];

        if (pipe(results) < 0)
                die("pipe", "failed");
        for (int i = 0; i < n_readers; i++) {
                struct timespec used;

                if (fork() != 0)
                        continue;
                for (int j = 0; j < CALLS; j++)
                        getter(FIRST_ID + (unsigned int)j % N_INSTANCES, &bytes);
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
                one = ((double)used.tv_sec * 1e9 + (double)used.tv_nsec) / CALLS;
                _exit(write(results[1], &one, sizeof(one)) != sizeof(one));
        }
        for (int i = 0; i < n_readers; i++)
                if (read(results[0], &one, sizeof(one)) == sizeof(one))
                        sum += one;
        kill(writer, SIGKILL);
        while (wait(NULL) > 0)
                ;
        close(results[0]);
        close(results[1]);
        printf("FbUsage, %3d readers and a writer     %10.0f ns\n", n_readers, sum / n_readers);
}

int main(int argc, char **argv)
{
        struct library ours = { .label = "ours" }, theirs = { .label = "NVIDIA's" };
        char directory[] = "/tmp/bench-nvml-XXXXXX", path[PATHS_MAX];
        struct board *board = NULL;

        if (argc < 2 || argc > 3)
                die("usage", "bench-nvml OUR-LIBRARY [NVIDIA'S-LIBRARY]");
        if (!mkdtemp(directory) || paths_join(path, directory, PATHS_BOARD) < 0 ||
            board_create(&board, path) < 0)
                die(directory, "cannot make a board there");
        board->simulated = 1;
        publish(board);
        setenv("OPENVGPU_RUN", directory, 1);

        start(&ours, argv[1]);
        if (argc == 3)
                start(&theirs, argv[2]);
        print_getters(&ours, argc == 3 ? &theirs : NULL);
        publish(board); /* a manager would have, many times meanwhile */
        print_scrape(&ours);
        for (int n = 1; n <= 100; n *= 10)
                print_concurrent(&ours, board, n);

        unlink(path);
        rmdir(directory);
        return 0;
}
