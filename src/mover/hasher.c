/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/hasher.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "mover/driver.h"

void hasher_init(struct hasher *hasher)
{
        *hasher = (struct hasher){ .lock = PTHREAD_MUTEX_INITIALIZER };
}

static int read_key(struct hash_key **ret_key, int fd)
{
        CLEANUP(freep) struct hash_key *key = malloc(sizeof(*key));
        struct stat status;
        void *address;

        if (!key)
                return -ENOMEM;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (status.st_size != sizeof(*key))
                return -EINVAL;
        address = mmap(NULL, sizeof(*key), PROT_READ, MAP_SHARED, fd, 0);
        if (address == MAP_FAILED)
                return -errno;
        memcpy(key, address, sizeof(*key));
        munmap(address, sizeof(*key));
        *ret_key = TAKE(key);
        return 0;
}

int hasher_set_key(struct hasher *hasher, int fd)
{
        int r = -EBUSY;

        pthread_mutex_lock(&hasher->lock);
        if (!hasher->key)
                r = read_key(&hasher->key, fd);
        pthread_mutex_unlock(&hasher->lock);
        return r;
}

/* Loading. */

static int launch(const struct hasher *hasher, CUdeviceptr blocks, uint64_t n,
                  struct hash_value *values, CUstream stream, struct mover_done *done)
{
        CUdeviceptr key = (CUdeviceptr)(uintptr_t)hasher->pinned_key;
        CUdeviceptr place = (CUdeviceptr)(uintptr_t)values;
        void *parameters[] = { &blocks, &n, &key, &place };
        unsigned int n_thread_blocks =
                n < hasher->n_thread_blocks ? (unsigned int)n : hasher->n_thread_blocks;

        return DRIVER_CALL(done, cuLaunchKernel, hasher->kernel, n_thread_blocks, 1, 1, HASH_LANES,
                           1, 1, 0, stream, parameters, NULL);
}

int hashing_start(struct hashing *hashing, struct hasher *hasher, CUstream stream,
                  CUdeviceptr blocks, size_t n, struct mover_done *done)
{
        void *values = NULL;
        int r;

        if (n == 0)
                return 0;
        hashing->stream = stream;
        r = DRIVER_CALL(done, cuMemAllocHost_v2, &values, n * sizeof(*hashing->values));
        if (r < 0)
                return r;
        hashing->values = values;
        hashing->n = n;
        for (size_t i = 0; i < n; i++)
                hashing->values[i] = HASH_UNKNOWN;
        return launch(hasher, blocks, n, hashing->values, hashing->stream, done);
}

int hashing_finish(struct hashing *hashing, struct mover_done *done)
{
        int r = 0;

        if (hashing->n > 0)
                r = DRIVER_CALL(done, cuStreamSynchronize, hashing->stream);
        for (size_t i = 0; i < hashing->n && r == 0; i++)
                if (hashing->values[i].half[0] >= HASH_PRIME ||
                    hashing->values[i].half[1] >= HASH_PRIME)
                        r = -EBADMSG;
        return r;
}

void hashing_deinit(struct hashing *hashing)
{
        if (hashing->stream)
                driver.cuStreamSynchronize(hashing->stream);
        if (hashing->values)
                driver.cuMemFreeHost(hashing->values);
        *hashing = (struct hashing){ 0 };
}

/* Two blocks, so that there is a second round; of bytes that are not all alike. */
#define N_PROBES 2

static int compare(const struct hasher *hasher, const void *blocks, const struct hashing *hashing)
{
        for (size_t i = 0; i < N_PROBES; i++) {
                const struct hash_value value =
                        hash_block(hasher->key, (const char *)blocks + i * HASH_BLOCK);

                if (!hash_is_equal(&value, &hashing->values[i]))
                        return -EBADMSG;
        }
        return 0;
}

static int probe_with(struct hasher *hasher, uint32_t *blocks, struct mover_done *done)
{
        struct hashing hashing = { 0 };
        CUstream stream;
        uint32_t word = 1;
        int r = DRIVER_CALL(done, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);

        if (r < 0)
                return r;

        for (size_t i = 0; i < N_PROBES * HASH_BLOCK / sizeof(*blocks); i++)
                blocks[i] = word = word * 1664525 + 1013904223;
        r = hashing_start(&hashing, hasher, stream, (CUdeviceptr)(uintptr_t)blocks, N_PROBES, done);
        if (r == 0)
                r = hashing_finish(&hashing, done);
        if (r == 0)
                r = compare(hasher, blocks, &hashing);
        hashing_deinit(&hashing);
        driver.cuStreamDestroy_v2(stream);
        return r;
}

/* A kernel that the driver has compiled wrongly would lose memory: it shows what it can. */
static int probe(struct hasher *hasher, struct mover_done *done)
{
        void *blocks;
        int r = DRIVER_CALL(done, cuMemAllocHost_v2, &blocks, N_PROBES * HASH_BLOCK);

        if (r < 0)
                return r;
        r = probe_with(hasher, blocks, done);
        driver.cuMemFreeHost(blocks);
        return r;
}

static int pin_key(struct hasher *hasher, struct mover_done *done)
{
        void *place;
        int r = DRIVER_CALL(done, cuMemAllocHost_v2, &place, sizeof(*hasher->key));

        if (r < 0)
                return r;
        hasher->pinned_key = place;
        memcpy(place, hasher->key, sizeof(*hasher->key));
        return 0;
}

static int find_size(struct hasher *hasher, CUdevice device, struct mover_done *done)
{
        int n_processors = 0, n_each = 0, r;

        r = DRIVER_CALL(done, cuDeviceGetAttribute, &n_processors,
                        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
        if (r == 0)
                r = DRIVER_CALL(done, cuOccupancyMaxActiveBlocksPerMultiprocessor, &n_each,
                                hasher->kernel, HASH_LANES, 0);
        if (r == 0 && (n_processors <= 0 || n_each <= 0))
                r = -EBADMSG;
        hasher->n_thread_blocks = (unsigned int)n_processors * (unsigned int)n_each;
        return r;
}

static void unload(struct hasher *hasher)
{
        if (hasher->pinned_key)
                driver.cuMemFreeHost(hasher->pinned_key);
        if (hasher->module)
                driver.cuModuleUnload(hasher->module);
        hasher->module = NULL;
        hasher->kernel = NULL;
        hasher->pinned_key = NULL;
}

static int load(struct hasher *hasher, CUdevice device, struct mover_done *done)
{
        int r;

        r = DRIVER_CALL(done, cuModuleLoadData, &hasher->module, hash_get_kernel());
        if (r == 0)
                r = DRIVER_CALL(done, cuModuleGetFunction, &hasher->kernel, hasher->module,
                                HASH_KERNEL);
        if (r == 0)
                r = find_size(hasher, device, done);
        if (r == 0)
                r = pin_key(hasher, done);
        if (r == 0)
                r = probe(hasher, done);
        if (r == 0)
                r = driver_fault_point(done, "mover.hash-loading");
        return r;
}

bool hasher_wants_loading(struct hasher *hasher)
{
        bool wants_loading;

        pthread_mutex_lock(&hasher->lock);
        wants_loading = hasher->key && !hasher->module;
        pthread_mutex_unlock(&hasher->lock);
        return wants_loading;
}

int hasher_load(struct hasher *hasher, CUdevice device, struct mover_done *done)
{
        int r = 0;

        pthread_mutex_lock(&hasher->lock);
        if (!hasher->key) {
                r = -ENOKEY;
        } else if (!hasher->module) {
                r = load(hasher, device, done);
                if (r < 0)
                        unload(hasher);
        }
        pthread_mutex_unlock(&hasher->lock);
        return r;
}
