/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the disk takes and gives, and what writing and reading the data file of an image makes of it,
 * in one run.
 *
 *     bench-image DIRECTORY GIB [ROUNDS]
 *
 * The limit: threads that each write (read) every n-th 4 MiB of one preallocated file with plain
 * direct I/O, and nothing else; the best of 1, 4, 8 and 16 threads. Ours: image_data_write() and
 * image_data_read() of the same memory, checksums, fsync and all. The memory is pseudo-random, so
 * that nothing packs it, but for the rows that say so. Rounds alternate; the median is shown.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "image/data.h"

#define PIECE       ((size_t)4 << 20)
#define ROUNDS_MAX  9
#define THREADS_MAX 16

static const char *directory;
static int directory_fd;
static char *memory, *target;
static size_t size;

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void die(const char *what)
{
        fprintf(stderr, "bench-image: %s: %s\n", what, strerror(errno));
        exit(1);
}

/* The limit. */

struct share {
        pthread_t thread;
        int fd;
        unsigned int index, n;
        bool is_write, has_failed;
};

static void *run_share(void *userdata)
{
        struct share *share = userdata;

        for (size_t at = share->index * PIECE; at < size; at += share->n * PIECE) {
                ssize_t n = share->is_write ? pwrite(share->fd, memory + at, PIECE, (off_t)at)
                                            : pread(share->fd, target + at, PIECE, (off_t)at);

                if (n != (ssize_t)PIECE)
                        share->has_failed = true;
        }
        return NULL;
}

static double run_limit(bool is_write, unsigned int n)
{
        struct share shares[THREADS_MAX] = { 0 };
        double start = now(), seconds;
        int fd = openat(directory_fd, "limit.data",
                        O_RDWR | O_DIRECT | O_CLOEXEC | (is_write ? O_CREAT | O_EXCL : 0), 0600);

        if (fd < 0 || (is_write && posix_fallocate(fd, 0, (off_t)size) != 0))
                die("limit.data");
        for (unsigned int i = 0; i < n; i++) {
                shares[i] = (struct share){ .fd = fd, .index = i, .n = n, .is_write = is_write };
                if (pthread_create(&shares[i].thread, NULL, run_share, &shares[i]) != 0)
                        die("thread");
        }
        for (unsigned int i = 0; i < n; i++) {
                pthread_join(shares[i].thread, NULL);
                if (shares[i].has_failed)
                        die("limit.data");
        }
        if (is_write && fsync(fd) < 0)
                die("fsync");
        seconds = now() - start;
        close(fd);
        return seconds;
}

/* Ours. */

static struct image_table table;

static double run_write(const struct image_data_options *options)
{
        const struct iovec piece = { memory, size };
        struct image_data_report report;
        struct image_error error = { 0 };

        (void)unlinkat(directory_fd, "image.data", 0);
        image_table_deinit(&table);
        if (image_data_write(directory_fd, directory, "image.data", &piece, 1, options, &table,
                             &report, &error) < 0) {
                fprintf(stderr, "bench-image: %s\n", error.message);
                exit(1);
        }
        return report.seconds;
}

static double run_read(const struct image_data_options *options, bool is_check)
{
        const struct iovec piece = { target, size };
        struct image_data_report report;
        struct image_error error = { 0 };

        if (!is_check)
                memset(target, 0, size);
        if (image_data_read(directory_fd, directory, "image.data", &table, &piece, is_check ? 0 : 1,
                            options, &report, &error) < 0) {
                fprintf(stderr, "bench-image: %s\n", error.message);
                exit(1);
        }
        if (!is_check && memcmp(memory, target, size) != 0) {
                fprintf(stderr, "bench-image: the memory that came back is another one\n");
                exit(1);
        }
        return report.seconds;
}

/* The table. */

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static double median(double *values, unsigned int n)
{
        qsort(values, n, sizeof(*values), compare);
        return values[n / 2];
}

static void row(const char *name, double *seconds, unsigned int rounds, double limit, double part)
{
        double middle = median(seconds, rounds);
        double rate = (double)size / middle / 1e9;

        printf("%-36s %7.3f s  %6.2f GB/s", name, middle, rate);
        if (limit > 0)
                printf("  %5.1f %% of the limit", 100 * limit / middle);
        if (part > 0)
                printf("  file %.1f %%", 100 * part);
        printf("\n");
        fflush(stdout);
}

static double measure_limit(bool is_write, unsigned int rounds)
{
        static const unsigned int counts[] = { 1, 4, 8, 16 };
        double best = 0;
        char name[64];

        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                double seconds[ROUNDS_MAX], copy[ROUNDS_MAX];

                for (unsigned int k = 0; k < rounds; k++) {
                        if (is_write)
                                (void)unlinkat(directory_fd, "limit.data", 0);
                        seconds[k] = run_limit(is_write, counts[i]);
                }
                memcpy(copy, seconds, sizeof(copy));
                snprintf(name, sizeof(name), "plain direct %s, %u threads",
                         is_write ? "writes" : "reads", counts[i]);
                row(name, seconds, rounds, 0, 0);
                if (best == 0 || median(copy, rounds) < best)
                        best = median(copy, rounds);
        }
        return best;
}

static const struct setting {
        const char *name;
        struct image_data_options options;
        bool is_soft; /* memory that packs: a quarter random, the rest repeated */
} settings[] = {
        { "plain", { .threads = 0 }, false },
        { "without io_uring", { .no_ring = true }, false },
        { "without direct I/O", { .no_direct_io = true }, false },
        { "zstd, random memory", { .compression = IMAGE_COMPRESSION_ZSTD }, false },
        { "zstd, memory that packs", { .compression = IMAGE_COMPRESSION_ZSTD }, true },
};

static void fill(bool is_soft)
{
        uint64_t state = 88172645463325252u, *words = (uint64_t *)memory;

        for (size_t i = 0; i < size / 8; i++) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                words[i] = is_soft && i % 4 ? 0x3f803f803f803f80u : state;
        }
}

static void measure_ours(double write_limit, double read_limit, unsigned int rounds)
{
        for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
                const struct setting *setting = &settings[i];
                double seconds[3][ROUNDS_MAX];
                char name[64];

                if (!compress_is_built(setting->options.compression))
                        continue;
                fill(setting->is_soft);
                for (unsigned int k = 0; k < rounds; k++) {
                        seconds[0][k] = run_write(&setting->options);
                        seconds[1][k] = run_read(&setting->options, false);
                        seconds[2][k] = run_read(&setting->options, true);
                }
                snprintf(name, sizeof(name), "write, %s", setting->name);
                row(name, seconds[0], rounds, write_limit,
                    setting->is_soft ? (double)table.file_size / (double)size : 0);
                snprintf(name, sizeof(name), "read, %s", setting->name);
                row(name, seconds[1], rounds, read_limit, 0);
                snprintf(name, sizeof(name), "check, %s", setting->name);
                row(name, seconds[2], rounds, read_limit, 0);
        }
}

static char *new_memory(void)
{
        char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        if (bytes == MAP_FAILED)
                die("memory");
        return bytes;
}

int main(int argc, char **argv)
{
        double gib = argc >= 3 ? atof(argv[2]) : 0, write_limit, read_limit;
        unsigned int rounds = argc >= 4 ? (unsigned int)atoi(argv[3]) : 3;

        if (gib <= 0 || rounds < 1 || rounds > ROUNDS_MAX) {
                fprintf(stderr, "usage: bench-image DIRECTORY GIB [ROUNDS, at most %d]\n",
                        ROUNDS_MAX);
                return 2;
        }
        directory = argv[1];
        directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory_fd < 0)
                die(directory);
        size = (size_t)(gib * 1024) << 20;
        memory = new_memory();
        target = new_memory();
        fill(false);

        printf("%.1f GiB, median of %u\n", gib, rounds);
        write_limit = measure_limit(true, rounds);
        read_limit = measure_limit(false, rounds);
        measure_ours(write_limit, read_limit, rounds);
        (void)unlinkat(directory_fd, "limit.data", 0);
        (void)unlinkat(directory_fd, "image.data", 0);
        return 0;
}
