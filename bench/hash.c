/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a device hashes its memory, beside how fast it copies it, and whether the hashes are right.
 *
 *     bench-hash GIB [ROUNDS]
 *
 * It runs the mover's own code. A copy within the device reads and writes: its bandwidth counts twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/size.h"
#include "mover/device.h"
#include "mover/driver.h"
#include "mover/mapping.h"

#define N_COMPARED 64

static struct hash_key key;

static void must(int r, const char *what, const struct mover_done *done)
{
        if (r == 0)
                return;
        fprintf(stderr, "bench-hash: %s: %s, %s %d\n", what, strerror(-r),
                done->call[0] ? done->call : "-", done->driver_code);
        exit(1);
}

static void set_up(struct device *device, struct mover_done *done)
{
        char uuid[DEVICE_UUID_MAX];
        CUuuid bytes;
        CUdevice id;

        must(driver_load(), "loading the driver", done);
        must(DRIVER_CALL(done, cuDeviceGet, &id, 0), "the device", done);
        must(DRIVER_CALL(done, cuDeviceGetUuid, &bytes, id), "the device", done);
        device_format_uuid(uuid, &bytes);
        must(device_init(device, uuid, done), "the device", done);
        must(device_enter(device, done), "the context", done);
        must(hash_key_make(&key), "the key", done);
        device->hasher.key = &key;
}

static void load(struct device *device, struct mover_done *done)
{
        uint64_t start = clock_now(CLOCK_MONOTONIC);

        must(device_load_hasher(device, done), "the kernel", done);
        printf("kernel loaded and probed: %.1f ms, %u thread blocks at once\n",
               (double)(clock_now(CLOCK_MONOTONIC) - start) / 1e6, device->hasher.n_thread_blocks);
}

static void create(struct mapping *mapping, struct device *device, uint64_t size,
                   struct mover_done *done)
{
        struct room_taking taking;

        must(device_begin_taking(device, &taking), "memory", done);
        must(mapping_create(mapping, &taking, device->id, size, done), "memory", done);
        device_end_taking(device, &taking);
        must(mapping_map(mapping, &size, &device->id, 1, done), "memory", done);
}

/* Random bytes in the first blocks, against the reference. */
static void compare(struct device *device, const struct mapping *memory, struct mover_done *done)
{
        CLEANUP(freep) uint32_t *words = aligned_alloc(16, N_COMPARED * HASH_BLOCK);
        size_t n = memory->size / HASH_BLOCK < N_COMPARED ? memory->size / HASH_BLOCK : N_COMPARED;
        struct hashing hashing = { 0 };
        CUstream stream;

        srandom(14);
        for (size_t i = 0; words && i < n * HASH_BLOCK / sizeof(*words); i++)
                words[i] = (uint32_t)random() ^ (uint32_t)random() << 16;
        must(words ? 0 : -ENOMEM, "memory", done);
        must(DRIVER_CALL(done, cuMemcpyHtoDAsync_v2, memory->base, words, n * HASH_BLOCK, NULL),
             "filling", done);
        must(DRIVER_CALL(done, cuStreamSynchronize, NULL), "filling", done);
        must(device_get_stream(device, &stream, done), "a stream", done);
        must(hashing_start(&hashing, &device->hasher, stream, memory->base, n, done), "hashing",
             done);
        must(hashing_finish(&hashing, done), "hashing", done);
        for (size_t i = 0; i < n; i++) {
                const struct hash_value value =
                        hash_block(&key, (const char *)words + i * HASH_BLOCK);

                if (!hash_is_equal(&value, &hashing.values[i])) {
                        printf("block %zu: WRONG\n", i);
                        exit(1);
                }
        }
        hashing_deinit(&hashing);
        device_put_stream(device, stream);
        printf("%zu random blocks: the kernel's hashes are those of the reference\n", n);
}

static double hash(struct device *device, const struct mapping *memory, struct mover_done *done)
{
        struct hashing hashing = { 0 };
        CUstream stream;
        uint64_t start;
        double seconds;

        must(device_get_stream(device, &stream, done), "a stream", done);
        start = clock_now(CLOCK_MONOTONIC);
        must(hashing_start(&hashing, &device->hasher, stream, memory->base,
                           memory->size / HASH_BLOCK, done),
             "hashing", done);
        must(hashing_finish(&hashing, done), "hashing", done);
        seconds = (double)(clock_now(CLOCK_MONOTONIC) - start) / 1e9;
        hashing_deinit(&hashing);
        device_put_stream(device, stream);
        return seconds;
}

/* The first half over the second: as many bytes are read and written as there are. */
static double copy(const struct mapping *memory, struct mover_done *done)
{
        uint64_t half = memory->size / 2, start;

        must(DRIVER_CALL(done, cuStreamSynchronize, NULL), "copying", done);
        start = clock_now(CLOCK_MONOTONIC);
        must(DRIVER_CALL(done, cuMemcpyDtoDAsync_v2, memory->base + half, memory->base, half, NULL),
             "copying", done);
        must(DRIVER_CALL(done, cuStreamSynchronize, NULL), "copying", done);
        return (double)(clock_now(CLOCK_MONOTONIC) - start) / 1e9;
}

int main(int argc, char **argv)
{
        uint64_t size = argc > 1 ? strtoull(argv[1], NULL, 10) * GIB : 0;
        unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
        static struct device device;
        struct mover_done done = { 0 };
        struct mapping memory = { 0 };

        if (size == 0) {
                fputs("usage: bench-hash GIB [ROUNDS]\n", stderr);
                return 2;
        }
        set_up(&device, &done);
        load(&device, &done);
        create(&memory, &device, size, &done);
        compare(&device, &memory, &done);
        for (unsigned long i = 0; i < rounds; i++) {
                double hashed = hash(&device, &memory, &done), copied = copy(&memory, &done);

                printf("%.0f GiB: hashed in %.2f ms, %.0f GB/s; copied within the device %.0f GB/s read and written; ratio %.3f\n",
                       (double)size / (double)GIB, hashed * 1e3, (double)size / hashed / 1e9,
                       (double)size / copied / 1e9, copied / hashed);
        }
        return 0;
}
