/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest whose memory is its proof. Every word of allocation i starts as i, plus
 * the guest's own seed; each step adds 1 to all words with a kernel and compares
 * samples. A byte that gets lost, a step that runs twice, or the memory of another
 * guest shows.
 *
 * It writes one line a step to its log ("12 ok" or "12 BAD ..."), and "ready" to
 * standard output once everything is allocated and the first step is done.
 * SIGTERM ends it after the step, with a comparison of all words and the line
 * "done STEPS ok" or "done STEPS BAD". SIGUSR1 makes it begin anew by exec(), at
 * whatever moment it comes.
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size.h"
#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

#define ALLOCATIONS_MAX 65536
#define BLOCK           (2 * MIB)
#define SMALL_SIZE      256
#define SAMPLES         8

struct allocation {
        CUdeviceptr pointer;
        size_t size;
};

struct options {
        uint64_t size;
        uint64_t piece;
        uint64_t small;
        uint64_t still;
        unsigned long steps;
        unsigned int threads;
        unsigned int pause_ms;
        unsigned int children;
        unsigned int forks;
        uint32_t seed;
        bool sync_loop;
        bool managed;
        bool all_managed;
        bool async_pool;
        bool on_demand;
        uint64_t alike;
        bool say_first;
        const char *log;
};

struct training {
        struct options options;
        struct allocation allocation[ALLOCATIONS_MAX];
        size_t n_allocations;
        CUcontext context;
        CUfunction fill, add;
        FILE *log;
        pthread_barrier_t begin, end; /* of a step */
        _Atomic bool ending;
        unsigned long step;
};

struct worker {
        struct training *training;
        unsigned int number;
        pthread_t thread;
};

static volatile sig_atomic_t terminated;

static void on_terminate(int signal_number)
{
        (void)signal_number;
        terminated = 1;
}

static char **arguments;

static void on_restart(int signal_number)
{
        (void)signal_number;
        execv("/proc/self/exe", arguments);
}

static void launch(CUfunction function, const struct allocation *allocation, uint32_t value)
{
        CUdeviceptr pointer = allocation->pointer;
        uint64_t n = allocation->size / sizeof(uint32_t);
        void *parameters[] = { &pointer, &value, &n };

        must(DRIVER(cuLaunchKernel)(function, 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
}

static uint32_t first_word(const struct training *training, size_t allocation)
{
        return training->options.seed + (uint32_t)allocation;
}

/* Each block of an allocation is another: one in the place of another is noticed, and no two are kept as one. */
static uint32_t block_word(const struct training *training, size_t allocation, size_t at)
{
        return allocation < training->options.alike ? 0 : (uint32_t)(at / BLOCK) << 16;
}

/* What the word at @at of the allocation is after the steps so far. */
static uint32_t word_now(const struct training *training, size_t allocation, size_t at)
{
        bool is_still = allocation < training->options.still;

        return first_word(training, allocation) + block_word(training, allocation, at) +
               (is_still ? 0 : (uint32_t)training->step);
}

static void fill(const struct training *training, size_t n)
{
        const struct allocation *allocation = &training->allocation[n];

        for (size_t at = 0; at < allocation->size; at += BLOCK) {
                size_t rest = allocation->size - at;
                const struct allocation block = { .pointer = allocation->pointer + at,
                                                  .size = rest < BLOCK ? rest : BLOCK };

                launch(training->fill, &block,
                       first_word(training, n) + block_word(training, n, at));
        }
}

static void add_allocation(struct training *training, CUdeviceptr pointer, size_t size)
{
        struct allocation *allocation = &training->allocation[training->n_allocations];

        if (training->n_allocations == ALLOCATIONS_MAX) {
                fprintf(stderr, "guest-train: more than %d allocations\n", ALLOCATIONS_MAX);
                exit(2);
        }
        *allocation = (struct allocation){ .pointer = pointer, .size = size };
        fill(training, training->n_allocations);
        if (training->options.say_first && training->n_allocations == 0) {
                must(DRIVER(cuCtxSynchronize)());
                puts("first kernels");
                fflush(stdout);
        }
        training->n_allocations++;
}

static void allocate(struct training *training, size_t size)
{
        CUdeviceptr pointer;

        if (training->options.all_managed)
                must(DRIVER(cuMemAllocManaged)(&pointer, size, CU_MEM_ATTACH_GLOBAL));
        else
                must(DRIVER(cuMemAlloc_v2)(&pointer, size));
        add_allocation(training, pointer, size);
}

static void allocate_all(struct training *training)
{
        const struct options *options = &training->options;
        CUdeviceptr pointer;

        for (uint64_t left = options->size; left > 0;) {
                uint64_t piece = left < options->piece ? left : options->piece;

                allocate(training, piece);
                left -= piece;
        }
        for (uint64_t i = 0; i < options->small; i++)
                allocate(training, SMALL_SIZE);
        if (options->managed) {
                must(DRIVER(cuMemAllocManaged)(&pointer, MIB, CU_MEM_ATTACH_GLOBAL));
                add_allocation(training, pointer, MIB);
        }
        if (options->async_pool) {
                must(DRIVER(cuMemAllocAsync)(&pointer, 4 * MIB, NULL));
                add_allocation(training, pointer, 4 * MIB);
        }
        must(DRIVER(cuCtxSynchronize)());
}

/* What differs from what it must be after a step, of what was looked at. */
struct wrong {
        size_t words;
        char first[96]; /* where, and what is there */
};

static void compare(struct wrong *wrong, size_t allocation, size_t at, uint32_t word,
                    uint32_t expected)
{
        if (word == expected)
                return;
        if (wrong->words == 0)
                snprintf(wrong->first, sizeof(wrong->first), "allocation %zu at %zu: %u is not %u",
                         allocation, at, word, expected);
        wrong->words++;
}

static void compare_samples(struct training *training, size_t i, size_t stride, struct wrong *wrong)
{
        const struct allocation *allocation = &training->allocation[i];

        for (size_t at = 0; at < allocation->size; at += stride) {
                uint32_t word;

                must(DRIVER(cuMemcpyDtoH_v2)(&word, allocation->pointer + at, sizeof(word)));
                compare(wrong, i, at, word, word_now(training, i, at));
        }
}

/* All words of a block are the same: a loop that the compiler makes wide, for tens of GiB. */
static bool is_block_right(const uint32_t *words, size_t n, uint32_t expected)
{
        uint32_t differences = 0;

        for (size_t i = 0; i < n; i++)
                differences |= words[i] ^ expected;
        return differences == 0;
}

static void compare_all(const struct training *training, size_t i, const uint32_t *words,
                        struct wrong *wrong)
{
        size_t size = training->allocation[i].size;

        for (size_t at = 0; at < size; at += BLOCK) {
                size_t n = (size - at < BLOCK ? size - at : BLOCK) / sizeof(*words);
                const uint32_t *block = words + at / sizeof(*words);
                uint32_t expected = word_now(training, i, at);

                if (is_block_right(block, n, expected))
                        continue;
                for (size_t word = 0; word < n; word++)
                        compare(wrong, i, at + word * sizeof(*words), block[word], expected);
        }
}

static size_t greatest_allocation(const struct training *training)
{
        size_t greatest = 0;

        for (size_t i = 0; i < training->n_allocations; i++)
                if (training->allocation[i].size > greatest)
                        greatest = training->allocation[i].size;
        return greatest;
}

static bool compare_everywhere(struct training *training)
{
        struct wrong wrong = { 0 };
        uint32_t *words = malloc(greatest_allocation(training));

        if (!words)
                return false;
        for (size_t i = 0; i < training->n_allocations; i++) {
                const struct allocation *allocation = &training->allocation[i];

                must(DRIVER(cuMemcpyDtoH_v2)(words, allocation->pointer, allocation->size));
                compare_all(training, i, words, &wrong);
        }
        free(words);
        if (wrong.words)
                fprintf(stderr, "guest-train: %zu words are wrong: %s\n", wrong.words, wrong.first);
        return wrong.words == 0;
}

static struct wrong sample_all(struct training *training)
{
        struct wrong wrong = { 0 };

        for (size_t i = 0; i < training->n_allocations; i++) {
                const struct allocation *allocation = &training->allocation[i];
                size_t stride = allocation->size / SAMPLES & ~(size_t)3;

                /* Of the many small ones only some in each step: a sample is a driver call. */
                if (allocation->size == SMALL_SIZE && (i + training->step) % 64 != 0)
                        continue;
                compare_samples(training, i, stride, &wrong);
        }
        return wrong;
}

static void *work(void *data)
{
        struct worker *worker = data;
        struct training *training = worker->training;

        must(DRIVER(cuCtxSetCurrent)(training->context));
        for (;;) {
                pthread_barrier_wait(&training->begin);
                if (training->ending)
                        return NULL;
                for (size_t i = worker->number; i < training->n_allocations;
                     i += training->options.threads)
                        if (i >= training->options.still)
                                launch(training->add, &training->allocation[i], 1);
                pthread_barrier_wait(&training->end);
        }
}

static void *synchronize_for_ever(void *data)
{
        struct training *training = data;

        must(DRIVER(cuCtxSetCurrent)(training->context));
        while (!training->ending)
                must(DRIVER(cuCtxSynchronize)());
        return NULL;
}

static void pause_between_steps(unsigned int milliseconds)
{
        const struct timespec time = { .tv_sec = milliseconds / 1000,
                                       .tv_nsec = milliseconds % 1000 * 1000000L };

        nanosleep(&time, NULL);
}

/* Away from the driver until a line comes; at the end of the input it ends as after SIGTERM. */
static void wait_for_demand(void)
{
        char line[16];

        if (!fgets(line, sizeof(line), stdin))
                terminated = 1;
}

static bool one_step(struct training *training)
{
        struct wrong wrong;

        pthread_barrier_wait(&training->begin);
        pthread_barrier_wait(&training->end);
        must(DRIVER(cuCtxSynchronize)());
        training->step++;

        wrong = sample_all(training);
        if (wrong.words)
                fprintf(training->log, "%lu BAD %zu words, %s\n", training->step, wrong.words,
                        wrong.first);
        else
                fprintf(training->log, "%lu ok\n", training->step);
        fflush(training->log);
        return wrong.words == 0;
}

static int train(struct training *training)
{
        struct worker workers[64];
        pthread_t synchronizer;
        bool right = true;

        pthread_barrier_init(&training->begin, NULL, training->options.threads + 1);
        pthread_barrier_init(&training->end, NULL, training->options.threads + 1);
        for (unsigned int i = 0; i < training->options.threads; i++) {
                workers[i] = (struct worker){ .training = training, .number = i };
                pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        }
        if (training->options.sync_loop)
                pthread_create(&synchronizer, NULL, synchronize_for_ever, training);

        while (!terminated &&
               (training->options.steps == 0 || training->step < training->options.steps)) {
                right = one_step(training) && right;
                if (training->step == 1) {
                        puts("ready");
                        fflush(stdout);
                }
                if (training->options.on_demand)
                        wait_for_demand();
                else
                        pause_between_steps(training->options.pause_ms);
        }

        training->ending = true;
        pthread_barrier_wait(&training->begin);
        for (unsigned int i = 0; i < training->options.threads; i++)
                pthread_join(workers[i].thread, NULL);
        if (training->options.sync_loop)
                pthread_join(synchronizer, NULL);

        right = compare_everywhere(training) && right;
        printf("done %lu %s\n", training->step, right ? "ok" : "BAD");
        return right ? 0 : 1;
}

static void start_on_device(struct training *training)
{
        CUmodule module;
        CUdevice device;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&training->context, device));
        must(DRIVER(cuCtxSetCurrent)(training->context));
        must(DRIVER(cuModuleLoadData)(&module, kernels));
        must(DRIVER(cuModuleGetFunction)(&training->fill, module, "fill"));
        must(DRIVER(cuModuleGetFunction)(&training->add, module, "add"));
}

#define FORKS_MAX 16

/* As a loader of data does: forked children that know nothing of CUDA, always as many at once. */
static void *fork_for_ever(void *userdata)
{
        const struct training *training = userdata;
        pid_t children[FORKS_MAX] = { 0 }, self = getpid();

        for (unsigned int i = 0;; i = (i + 1) % training->options.forks) {
                if (children[i]) {
                        kill(children[i], SIGKILL);
                        waitpid(children[i], NULL, 0);
                }
                children[i] = fork();
                if (children[i] == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        /* It is not told of an end before that; and then it would stay for ever. */
                        while (getppid() == self)
                                pause();
                        _exit(0);
                }
        }
        return NULL;
}

/* Further processes of the same vGPU: the same program, one after another's log name. */
static void start_children(char **argv, const struct options *options)
{
        for (unsigned int i = 1; i <= options->children; i++) {
                char log[512];

                snprintf(log, sizeof(log), "%s.%u", options->log, i);
                if (fork() == 0) {
                        setenv("GUEST_TRAIN_CHILD", log, 1);
                        execv("/proc/self/exe", argv);
                        _exit(127);
                }
        }
}

static uint64_t size_or_die(const char *text)
{
        uint64_t size;

        if (size_parse(&size, text) < 0) {
                fprintf(stderr, "guest-train: '%s' is not a size\n", text);
                exit(2);
        }
        return size;
}

static const char usage[] =
        "usage: guest-train [OPTION]...\n"
        "  --size SIZE          memory, all pieces together (default 64M)\n"
        "  --piece SIZE         greatest piece (default 64M)\n"
        "  --small N            N further allocations of 256 bytes\n"
        "  --still N            the first N allocations are not changed by the steps\n"
        "  --steps N            end after N steps (default: at SIGTERM)\n"
        "  --threads N          launch from N threads (default 1, at most 64)\n"
        "  --pause MS           between steps (default 5)\n"
        "  --sync-loop          one more thread that does nothing but synchronize\n"
        "  --managed            1 MiB of managed memory as well\n"
        "  --all-managed        all memory is managed memory\n"
        "  --async-pool         4 MiB of an asynchronous pool as well\n"
        "  --on-demand          after the first step, one for each line of standard input\n"
        "  --children N         start N more processes like this one\n"
        "  --forks N            fork children all the time, N live at once (at most 16)\n"
        "  --alike[=N]          all blocks of 2 MiB of an allocation are the same (of the first N)\n"
        "  --say-first          'first kernels', once those of the first allocation have run\n"
        "  --seed N             all words are so much larger than without it\n"
        "  --log FILE           one line a step (default: standard error)\n";

static const struct option option_names[] = {
        { "size", required_argument, NULL, 's' },
        { "piece", required_argument, NULL, 'i' },
        { "small", required_argument, NULL, 'm' },
        { "still", required_argument, NULL, 'S' },
        { "steps", required_argument, NULL, 'n' },
        { "threads", required_argument, NULL, 't' },
        { "pause", required_argument, NULL, 'p' },
        { "sync-loop", no_argument, NULL, 'y' },
        { "managed", no_argument, NULL, 'g' },
        { "all-managed", no_argument, NULL, 'G' },
        { "async-pool", no_argument, NULL, 'a' },
        { "on-demand", no_argument, NULL, 'd' },
        { "alike", optional_argument, NULL, 'A' },
        { "say-first", no_argument, NULL, 'F' },
        { "children", required_argument, NULL, 'c' },
        { "forks", required_argument, NULL, 'f' },
        { "seed", required_argument, NULL, 'e' },
        { "log", required_argument, NULL, 'l' },
        { NULL, 0, NULL, 0 },
};

static void fail_usage(void)
{
        fputs(usage, stderr);
        exit(2);
}

static bool parse_switch(struct options *options, int option)
{
        bool *member = option == 'y'   ? &options->sync_loop
                       : option == 'g' ? &options->managed
                       : option == 'G' ? &options->all_managed
                       : option == 'a' ? &options->async_pool
                       : option == 'd' ? &options->on_demand
                       : option == 'F' ? &options->say_first
                                       : NULL;

        if (member)
                *member = true;
        return member;
}

static bool parse_number(struct options *options, int option, const char *text)
{
        unsigned int *member = option == 't'   ? &options->threads
                               : option == 'p' ? &options->pause_ms
                               : option == 'c' ? &options->children
                               : option == 'f' ? &options->forks
                               : option == 'e' ? &options->seed
                                               : NULL;

        if (member)
                *member = (unsigned int)strtoul(text, NULL, 10);
        return member;
}

static void parse_one(struct options *options, int option, const char *text)
{
        switch (option) {
        case 's':
                options->size = size_or_die(text) & ~(uint64_t)3;
                break;
        case 'i':
                options->piece = size_or_die(text) & ~(uint64_t)3;
                break;
        case 'S':
                options->still = strtoull(text, NULL, 10);
                break;
        case 'A':
                options->alike = text ? strtoull(text, NULL, 10) : UINT64_MAX;
                break;
        case 'm':
                options->small = strtoul(text, NULL, 10);
                break;
        case 'n':
                options->steps = strtoul(text, NULL, 10);
                break;
        case 'l':
                options->log = text;
                break;
        default:
                if (!parse_switch(options, option) && !parse_number(options, option, text))
                        fail_usage();
        }
}

static void parse(struct options *options, int argc, char **argv)
{
        for (int c; (c = getopt_long(argc, argv, "", option_names, NULL)) != -1;)
                parse_one(options, c, optarg);
        if (options->threads < 1 || options->piece == 0 || options->threads > 64 ||
            options->forks > FORKS_MAX || (options->children && !options->log))
                fail_usage();
}

int main(int argc, char **argv)
{
        static struct training training = {
                .options = { .size = 64 * MIB, .piece = 64 * MIB, .threads = 1, .pause_ms = 5 }
        };
        const char *child = getenv("GUEST_TRAIN_CHILD");
        pthread_t forker;
        struct sigaction action = { .sa_handler = on_terminate };
        struct sigaction restart = { .sa_handler = on_restart, .sa_flags = SA_NODEFER };

        parse(&training.options, argc, argv);
        if (child)
                training.options.log = child;
        else
                start_children(argv, &training.options);

        training.log = training.options.log ? fopen(training.options.log, "w") : stderr;
        if (!training.log) {
                perror(training.options.log);
                return 1;
        }
        arguments = argv;
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGUSR1, &restart, NULL);
        start_on_device(&training);
        allocate_all(&training);
        if (training.options.forks)
                pthread_create(&forker, NULL, fork_for_ever, &training);
        return train(&training);
}
