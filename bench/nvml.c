/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an NVML query costs: bench-nvml OUR-LIBRARY [NVIDIA'S-LIBRARY]
 *
 * Makes a state page with 2 devices and 32 vGPUs of 16 processes each, then prints the
 * nanoseconds of getters, whether they make system calls, the time to read everything there is (a
 * scrape), and what a getter and the writer's round cost with 1, 10 and 100 processes that read
 * while a writer publishes 10 times a second. With NVIDIA's library as second argument, the
 * getters that it has too are timed in the same run, with the code that it answers.
 *
 * All times are processor times, so that other load on the machine does not count.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/nvml-sensors.h"
#include "abi/nvml-vgpu-calls.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/size.h"
#include "catalog/catalog.h"
#include "state/state-page.h"

#define N_DEVICES   2
#define N_INSTANCES 32
#define N_PROCESSES 16
#define FIRST_ID    100u
#define SOME_ID     (FIRST_ID + 17)
#define SOME_PID    (1000u + 17 * N_PROCESSES + 3)
#define ROUNDS      5
#define ROUND_NS    5000000.0
#define READS       200000

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void die(const char *what, const char *why)
{
        fprintf(stderr, "bench-nvml: %s: %s\n", what, why);
        exit(1);
}

/* The state page, as a manager publishes it. */

static void publish_device(struct state_page *state_page, uint32_t index)
{
        const struct state_scheduler scheduler = { .policy = STATE_POLICY_BEST_EFFORT };
        const struct state_device_detail detail = { .capability = { 1, 1, 1 } };
        struct state_device device = { .index = index,
                                       .pci_bus = index,
                                       .pci_device_id = 0x233510de,
                                       .virtualization = STATE_VIRTUALIZATION_HOST_VGPU,
                                       .is_heterogeneous = 1,
                                       .accounting = 1,
                                       .memory_total = 140 * GIB,
                                       .memory_used = GIB,
                                       .name = "NVIDIA H200" };

        snprintf(device.uuid, sizeof(device.uuid), "GPU-%u", index);
        state_write_device(state_page, index, &device);
        state_write_device_detail(state_page, index, &detail);
        state_write_scheduler(state_page, state_slot_of_scheduler(index, STATE_ENGINE_GRAPHICS),
                              &scheduler);
        catalog_publish(state_page, &device);
}

static void publish_instance(struct state_page *state_page, uint32_t i, uint64_t now_us)
{
        const struct state_instance instance = {
                .id = FIRST_ID + i,
                .device = i % N_DEVICES,
                .state = STATE_RUNNING,
                .type_id = catalog_type_of_quota(state_page, 0, 8 * GIB),
                .guest_driver = STATE_GUEST_DRIVER_RUNNING,
                .licence = STATE_LICENCE_LICENSED,
                .gpu_instance = STATE_NONE,
                .placement = STATE_PLACEMENT_NONE,
                .accounting = 1,
                .frame_rate_limit = 60,
                .frame_buffer_quota = 8 * GIB,
                .frame_buffer_used = GIB,
                .uuid = "e5c1b1a0-0000-4000-8000-000000000000",
                .name = "vgpu",
        };
        const struct state_vm vm = { .id = "1000", .name = "vgpu", .driver_version = "580.1" };
        const struct state_sample sample = { .timestamp_us = now_us,
                                             .instance = FIRST_ID + i,
                                             .gpu = 3 };

        state_write_instance(state_page, i, &instance);
        state_write_vm(state_page, i, &vm);
        (void)state_append_sample(state_page, i, &sample);
}

static void publish_process(struct state_page *state_page, uint32_t i, uint64_t now_us)
{
        const struct state_process process = { .pid = 1000 + i,
                                               .instance = FIRST_ID + i / N_PROCESSES,
                                               .device = i / N_PROCESSES % N_DEVICES,
                                               .utilization_gpu = 1,
                                               .memory_used = 64 * MIB };
        const struct state_sample sample = {
                .timestamp_us = now_us, .instance = process.instance, .pid = process.pid, .gpu = 1
        };

        state_write_process(state_page, i, &process);
        (void)state_append_process_sample(state_page, i, &sample);
}

static void publish(struct state_page *state_page)
{
        uint64_t now_us = clock_now(CLOCK_REALTIME) / 1000;

        for (uint32_t i = 0; i < N_INSTANCES; i++)
                publish_instance(state_page, i, now_us);
        for (uint32_t i = 0; i < N_INSTANCES * N_PROCESSES; i++)
                publish_process(state_page, i, now_us);
        state_page->heartbeat_ns = clock_now(CLOCK_MONOTONIC);
}

static void publish_first(struct state_page *state_page)
{
        state_page->simulated = 1;
        for (uint32_t i = 0; i < N_DEVICES; i++)
                publish_device(state_page, i);
        for (uint32_t i = 0; i < N_INSTANCES * N_PROCESSES; i++) {
                const struct state_account account = { .instance = FIRST_ID + i / N_PROCESSES,
                                                       .pid = 1000 + i,
                                                       .is_running = 1 };

                (void)state_append_account(state_page, i / N_PROCESSES, &account);
        }
        state_page->n_devices = N_DEVICES;
        publish(state_page);
}

/* The functions of one library. */
struct library {
        const char *label;
        void *handle;
        nvmlDevice_t device;
        nvmlVgpuTypeId_t type;
};

static void *get(const struct library *library, const char *name)
{
        return dlsym(library->handle, name);
}

#define FIND(library, name) __typeof__(&name) name##_ = (__typeof__(&name))get(library, #name)

static void start(struct library *library, const char *path)
{
        nvmlReturn_t r;

        library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library->handle)
                die(path, dlerror());
        FIND(library, nvmlInit_v2);
        FIND(library, nvmlErrorString);
        FIND(library, nvmlDeviceGetHandleByIndex_v2);
        r = nvmlInit_v2_();
        if (r == NVML_SUCCESS)
                r = nvmlDeviceGetHandleByIndex_v2_(0, &library->device);
        if (r != NVML_SUCCESS)
                die(path, nvmlErrorString_(r));
}

/* One question, with all the room that its answer needs. */
typedef nvmlReturn_t (*question)(const struct library *library, void *function);

static unsigned char room[16384] __attribute__((aligned(64)));
static unsigned int numbers[4000], count, second, third;

#define QUESTION(name, ...)                                                           \
        static nvmlReturn_t ask_##name(const struct library *library, void *function) \
        {                                                                             \
                (void)library;                                                        \
                return ((__typeof__(&name))function)(__VA_ARGS__);                    \
        }

/* clang-format off */
QUESTION(nvmlDeviceGetMemoryInfo, library->device, (nvmlMemory_t *)(void *)room)
QUESTION(nvmlDeviceGetUtilizationRates, library->device, (nvmlUtilization_t *)(void *)room)
QUESTION(nvmlDeviceGetIndex, library->device, &count)
QUESTION(nvmlDeviceGetVirtualizationMode, library->device, (nvmlGpuVirtualizationMode_t *)(void *)room)
QUESTION(nvmlDeviceGetUUID, library->device, (char *)room, 96)
QUESTION(nvmlDeviceGetName, library->device, (char *)room, 96)
QUESTION(nvmlDeviceGetPowerUsage, library->device, &count)
QUESTION(nvmlDeviceGetComputeRunningProcesses_v3, library->device, (count = 600, &count), (nvmlProcessInfo_t *)(void *)room)
QUESTION(nvmlDeviceGetActiveVgpus, library->device, (count = 64, &count), numbers)
QUESTION(nvmlDeviceGetSupportedVgpus, library->device, (count = 64, &count), numbers)
QUESTION(nvmlDeviceGetHostVgpuMode, library->device, (nvmlHostVgpuMode_t *)(void *)room)
QUESTION(nvmlDeviceGetVgpuSchedulerState, library->device, (nvmlVgpuSchedulerGetState_t *)(void *)room)
QUESTION(nvmlVgpuInstanceGetFbUsage, SOME_ID, (unsigned long long *)(void *)room)
QUESTION(nvmlVgpuInstanceGetType, SOME_ID, &count)
QUESTION(nvmlVgpuInstanceGetUUID, SOME_ID, (char *)room, 80)
QUESTION(nvmlVgpuInstanceGetVmID, SOME_ID, (char *)room, 80, (nvmlVgpuVmIdType_t *)numbers)
QUESTION(nvmlVgpuInstanceGetLicenseStatus, SOME_ID, &count)
QUESTION(nvmlVgpuInstanceGetLicenseInfo_v2, SOME_ID, (nvmlVgpuLicenseInfo_t *)(void *)room)
QUESTION(nvmlVgpuInstanceGetFrameRateLimit, SOME_ID, &count)
QUESTION(nvmlVgpuInstanceGetAccountingMode, SOME_ID, (nvmlEnableState_t *)numbers)
QUESTION(nvmlVgpuInstanceGetEncoderStats, SOME_ID, &count, &second, &third)
QUESTION(nvmlVgpuInstanceGetFBCStats, SOME_ID, (nvmlFBCStats_t *)(void *)room)
QUESTION(nvmlVgpuInstanceGetAccountingPids, SOME_ID, (count = 4000, &count), numbers)
QUESTION(nvmlVgpuInstanceGetAccountingStats, SOME_ID, SOME_PID, (nvmlAccountingStats_t *)(void *)room)
QUESTION(nvmlVgpuInstanceGetMetadata, SOME_ID, (nvmlVgpuMetadata_t *)(void *)room, (count = 1024, &count))
QUESTION(nvmlVgpuTypeGetFramebufferSize, library->type, (unsigned long long *)(void *)room)
QUESTION(nvmlVgpuTypeGetName, library->type, (char *)room, (count = 64, &count))
/* clang-format on */

#define ENTRY(name)               \
        {                         \
#name, ask_##name \
        }
static const struct {
        const char *name;
        question ask;
} questions[] = {
        ENTRY(nvmlDeviceGetMemoryInfo),
        ENTRY(nvmlDeviceGetUtilizationRates),
        ENTRY(nvmlDeviceGetIndex),
        ENTRY(nvmlDeviceGetVirtualizationMode),
        ENTRY(nvmlDeviceGetUUID),
        ENTRY(nvmlDeviceGetName),
        ENTRY(nvmlDeviceGetPowerUsage),
        ENTRY(nvmlDeviceGetComputeRunningProcesses_v3),
        ENTRY(nvmlDeviceGetActiveVgpus),
        ENTRY(nvmlDeviceGetSupportedVgpus),
        ENTRY(nvmlDeviceGetHostVgpuMode),
        ENTRY(nvmlDeviceGetVgpuSchedulerState),
        ENTRY(nvmlVgpuInstanceGetFbUsage),
        ENTRY(nvmlVgpuInstanceGetType),
        ENTRY(nvmlVgpuInstanceGetUUID),
        ENTRY(nvmlVgpuInstanceGetVmID),
        ENTRY(nvmlVgpuInstanceGetLicenseStatus),
        ENTRY(nvmlVgpuInstanceGetLicenseInfo_v2),
        ENTRY(nvmlVgpuInstanceGetFrameRateLimit),
        ENTRY(nvmlVgpuInstanceGetAccountingMode),
        ENTRY(nvmlVgpuInstanceGetEncoderStats),
        ENTRY(nvmlVgpuInstanceGetFBCStats),
        ENTRY(nvmlVgpuInstanceGetAccountingPids),
        ENTRY(nvmlVgpuInstanceGetAccountingStats),
        ENTRY(nvmlVgpuInstanceGetMetadata),
        ENTRY(nvmlVgpuTypeGetFramebufferSize),
        ENTRY(nvmlVgpuTypeGetName),
};

struct cost {
        double ns; /* below 0: the library lacks the function */
        nvmlReturn_t code;
};

/* The best of some rounds: what the call costs, not what else the machine did to its caches. */
static struct cost measure(const struct library *library, size_t i)
{
        void *function = get(library, questions[i].name);
        struct cost cost = { .ns = -1 };

        if (!function)
                return cost;
        cost.code = questions[i].ask(library, function);
        for (int round = 0; round < ROUNDS; round++) {
                uint64_t start_ns = clock_now(CLOCK_THREAD_CPUTIME_ID), n = 0;
                double ns;

                do {
                        for (int j = 0; j < 100; j++)
                                (void)questions[i].ask(library, function);
                        n += 100;
                        ns = (double)(clock_now(CLOCK_THREAD_CPUTIME_ID) - start_ns);
                } while (ns < ROUND_NS);
                if (cost.ns < 0 || ns / (double)n < cost.ns)
                        cost.ns = ns / (double)n;
        }
        return cost;
}

static void print_questions(const struct library *ours, const struct library *theirs)
{
        printf("%-40s %10s %5s", "question", "ours", "code");
        if (theirs)
                printf(" %13s %5s %9s", "NVIDIA's", "code", "ratio");
        putchar('\n');
        for (size_t i = 0; i < COUNT(questions); i++) {
                struct cost a = measure(ours, i), b = { .ns = -1 };

                printf("%-40s %7.0f ns %5d", questions[i].name, a.ns, (int)a.code);
                if (theirs)
                        b = measure(theirs, i);
                if (b.ns >= 0)
                        printf(" %10.0f ns %5d %9.4f", b.ns, (int)b.code, a.ns / b.ns);
                else if (theirs)
                        printf(" %13s %5s", "-", "-");
                putchar('\n');
        }
}

/* In strict secure computing a process is killed at its first system call. */
static void print_system_calls(const struct library *ours)
{
        void *functions[COUNT(questions)];
        int status;
        pid_t pid;

        for (size_t i = 0; i < COUNT(questions); i++)
                functions[i] = get(ours, questions[i].name);
        pid = fork();
        if (pid == 0) {
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
                for (size_t i = 0; i < COUNT(questions); i++)
                        (void)questions[i].ask(ours, functions[i]);
                syscall(SYS_exit, 0);
        }
        if (waitpid(pid, &status, 0) != pid)
                die("waitpid", "failed");
        printf("%-40s %10s\n", "system calls in ours, all of the above",
               WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "none" : "some");
}

/* What an exporter reads: of each vGPU, and of each process in it. */
static void scrape(const struct library *library)
{
        static nvmlVgpuProcessUtilizationSample_t samples[N_INSTANCES * N_PROCESSES];
        static nvmlVgpuInstanceUtilizationSample_t instance_samples[N_INSTANCES];
        nvmlVgpuInstance_t ids[N_INSTANCES];

        FIND(library, nvmlDeviceGetHandleByIndex_v2);
        FIND(library, nvmlDeviceGetActiveVgpus);
        FIND(library, nvmlDeviceGetVgpuUtilization);
        FIND(library, nvmlDeviceGetVgpuProcessUtilization);
        FIND(library, nvmlVgpuInstanceGetUUID);
        FIND(library, nvmlVgpuInstanceGetFbUsage);
        FIND(library, nvmlVgpuInstanceGetLicenseStatus);
        FIND(library, nvmlVgpuInstanceGetAccountingPids);
        FIND(library, nvmlVgpuInstanceGetAccountingStats);
        for (unsigned int i = 0; i < N_DEVICES; i++) {
                unsigned int n = N_INSTANCES, n_samples = COUNT(samples), n_pids;
                unsigned long long bytes;
                nvmlAccountingStats_t stats;
                nvmlValueType_t type;
                nvmlDevice_t device;
                char text[80];

                nvmlDeviceGetHandleByIndex_v2_(i, &device);
                nvmlDeviceGetActiveVgpus_(device, &n, ids);
                for (unsigned int j = 0; j < n; j++) {
                        nvmlVgpuInstanceGetUUID_(ids[j], text, sizeof(text));
                        nvmlVgpuInstanceGetFbUsage_(ids[j], &bytes);
                        nvmlVgpuInstanceGetLicenseStatus_(ids[j], &count);
                        n_pids = COUNT(numbers);
                        nvmlVgpuInstanceGetAccountingPids_(ids[j], &n_pids, numbers);
                        for (unsigned int k = 0; k < n_pids; k++)
                                nvmlVgpuInstanceGetAccountingStats_(ids[j], numbers[k], &stats);
                }
                nvmlDeviceGetVgpuUtilization_(device, 0, &type, &n, instance_samples);
                nvmlDeviceGetVgpuProcessUtilization_(device, 0, &n_samples, samples);
        }
}

static void print_scrape(const struct library *library)
{
        uint64_t start_ns, one_ns, best_ns = UINT64_MAX;

        for (int i = 0; i < 20; i++) {
                start_ns = clock_now(CLOCK_THREAD_CPUTIME_ID);
                scrape(library);
                one_ns = clock_now(CLOCK_THREAD_CPUTIME_ID) - start_ns;
                best_ns = one_ns < best_ns ? one_ns : best_ns;
        }
        printf("%-40s %7.2f ms\n", "scrape of 32 vGPUs x 16 processes", (double)best_ns / 1e6);
}

/* Publishes until it is told to stop; then tells what a round cost it. */
static void write_until_stopped(struct state_page *state_page, int stop, int result)
{
        const struct timespec interval = { .tv_nsec = 100000000 };
        double rounds = 0, one;
        char byte;

        while (read(stop, &byte, 1) != 0) { /* would block, until the other end is closed */
                publish(state_page);
                rounds++;
                nanosleep(&interval, NULL);
        }
        one = rounds > 0 ? (double)clock_now(CLOCK_PROCESS_CPUTIME_ID) / rounds : 0;
        _exit(write(result, &one, sizeof(one)) != sizeof(one));
}

static void read_often(nvmlReturn_t (*getter)(nvmlVgpuInstance_t, unsigned long long *), int result)
{
        uint64_t start_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID);
        unsigned long long bytes;
        double one;

        for (unsigned int j = 0; j < READS; j++)
                getter(FIRST_ID + j % N_INSTANCES, &bytes);
        one = (double)(clock_now(CLOCK_PROCESS_CPUTIME_ID) - start_ns) / READS;
        _exit(write(result, &one, sizeof(one)) != sizeof(one));
}

static void print_concurrent(const struct library *library, struct state_page *state_page,
                             int n_readers)
{
        double sum = 0, one, writer = 0;
        int results[2], written[2], stop[2];

        FIND(library, nvmlVgpuInstanceGetFbUsage);
        if (pipe(results) < 0 || pipe(written) < 0 || pipe2(stop, O_NONBLOCK) < 0)
                die("pipe", "failed");
        fflush(stdout);
        if (fork() == 0) {
                close(stop[1]);
                write_until_stopped(state_page, stop[0], written[1]);
        }
        for (int i = 0; i < n_readers; i++)
                if (fork() == 0)
                        read_often(nvmlVgpuInstanceGetFbUsage_, results[1]);
        for (int i = 0; i < n_readers; i++)
                if (read(results[0], &one, sizeof(one)) == sizeof(one))
                        sum += one;
        close(stop[1]);
        if (read(written[0], &writer, sizeof(writer)) != sizeof(writer))
                die("writer", "it ended");
        while (wait(NULL) > 0)
                ;
        for (int i = 0; i < 2; i++) {
                close(results[i]);
                close(written[i]);
        }
        close(stop[0]);
        printf("FbUsage, %3d readers and a writer         %7.0f ns   a round of the writer %6.0f us\n",
               n_readers, sum / n_readers, writer / 1e3);
}

/* What one question about each of many vGPUs costs a client that has just started. */
static void print_walk(const struct library *library, struct state_page *state_page,
                       uint32_t n_instances)
{
        nvmlVgpuTypeId_t type;
        double one = 0;
        int results[2];

        FIND(library, nvmlVgpuInstanceGetType);
        for (uint32_t i = 0; i < n_instances; i++)
                publish_instance(state_page, i, clock_now(CLOCK_REALTIME) / 1000);
        if (pipe(results) < 0)
                die("pipe", "failed");
        fflush(stdout);
        if (fork() == 0) {
                uint64_t start_ns = clock_now(CLOCK_PROCESS_CPUTIME_ID);

                for (uint32_t i = 0; i < n_instances; i++)
                        nvmlVgpuInstanceGetType_(FIRST_ID + i, &type);
                one = (double)(clock_now(CLOCK_PROCESS_CPUTIME_ID) - start_ns) / n_instances;
                _exit(write(results[1], &one, sizeof(one)) != sizeof(one));
        }
        if (read(results[0], &one, sizeof(one)) != sizeof(one))
                die("walk", "it ended");
        (void)wait(NULL);
        close(results[0]);
        close(results[1]);
        printf("GetType once of each, %4u vGPUs a device %7.0f ns\n", n_instances / N_DEVICES, one);
}

int main(int argc, char **argv)
{
        struct library ours = { .label = "ours" }, theirs = { .label = "NVIDIA's" };
        char directory[] = "/tmp/bench-nvml-XXXXXX", path[PATHS_MAX];
        struct state_page *state_page = NULL;

        if (argc < 2 || argc > 3)
                die("usage", "bench-nvml OUR-LIBRARY [NVIDIA'S-LIBRARY]");
        if (!mkdtemp(directory) || paths_join(path, directory, PATHS_STATE_PAGE) < 0 ||
            state_create(&state_page, path, NULL) < 0)
                die(directory, "cannot make a state page there");
        publish_first(state_page);
        setenv("OPENVGPU_RUN", directory, 1);

        start(&ours, argv[1]);
        ours.type = theirs.type = catalog_type_of_quota(state_page, 0, 8 * GIB);
        if (argc == 3)
                start(&theirs, argv[2]);
        print_questions(&ours, argc == 3 ? &theirs : NULL);
        publish(state_page); /* a manager would have, many times meanwhile */
        print_system_calls(&ours);
        print_scrape(&ours);
        for (int n = 1; n <= 100; n *= 10)
                print_concurrent(&ours, state_page, n);
        for (uint32_t n = 100; n <= 1000; n *= 10)
                print_walk(&ours, state_page, n);

        unlink(path);
        rmdir(directory);
        return 0;
}
