/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MOVER_FIXTURE_H
#define TESTS_MOVER_FIXTURE_H

/*
 * A mover, a guest's device memory and slabs, for the tests of the mover.
 *
 * TEST_MOVER is the mover's program and OPENVGPU_DRIVER its driver, which this
 * process loads as well: it is the guest whose memory is moved. TEST_SIMHOST, if
 * set, makes a simulated host with two devices first; without it the machine's own
 * devices are used.
 */

#include <stdlib.h>
#include <sys/types.h>

#include "abi/cuda.h"
#include "base/size.h"
#include "base/test.h"
#include "helper/mover.h"

#define SLAB_SIZE  (8 * MIB)
#define SLABS_MAX  8
#define TIMEOUT_US 20000000

/* The driver in this process. */
struct guest_driver {
        __typeof__(&cuInit) cuInit;
        __typeof__(&cuDeviceGet) cuDeviceGet;
        __typeof__(&cuDeviceGetUuid) cuDeviceGetUuid;
        __typeof__(&cuDevicePrimaryCtxRetain) cuDevicePrimaryCtxRetain;
        __typeof__(&cuCtxSetCurrent) cuCtxSetCurrent;
        __typeof__(&cuMemGetInfo_v2) cuMemGetInfo_v2;
        __typeof__(&cuMemAddressReserve) cuMemAddressReserve;
        __typeof__(&cuMemAddressFree) cuMemAddressFree;
        __typeof__(&cuMemCreate) cuMemCreate;
        __typeof__(&cuMemRelease) cuMemRelease;
        __typeof__(&cuMemMap) cuMemMap;
        __typeof__(&cuMemUnmap) cuMemUnmap;
        __typeof__(&cuMemSetAccess) cuMemSetAccess;
        __typeof__(&cuMemExportToShareableHandle) cuMemExportToShareableHandle;
        __typeof__(&cuMemcpyDtoH_v2) cuMemcpyDtoH_v2;
        __typeof__(&cuMemcpyHtoD_v2) cuMemcpyHtoD_v2;
};

struct fixture {
        sd_event *event;
        struct mover_device *devices; /* two at least */
        size_t n_devices;
        struct mover *mover; /* of device 0, or the one of start_mover() */
        int slabs[SLABS_MAX];
        uint64_t free_before[2]; /* on the devices, when the test began */

        bool is_lost;
        unsigned int n_done;
        struct mover_done done; /* the last one */
        uint64_t bytes_done;    /* of the last progress */
};

/* Setup of the whole program, and of a test. */
int group_setup(void **state);
int group_teardown(void **state);
int setup(void **state);
int teardown(void **state);

extern struct guest_driver guest;
void load_guest_driver(void);

/* free_on() - bytes; its context is the current one then. */
uint64_t free_on(size_t device);

void start_mover(struct fixture *fixture, size_t device);
/* With @name set to @value in the mover's environment. */
void start_mover_with(struct fixture *fixture, size_t device, const char *name, const char *value);
void stop_mover(struct fixture *fixture);

/* Callbacks of requests: counted, and the answer kept. */
void on_done(struct mover *mover, const struct mover_done *done, void *userdata);
void on_progress(struct mover *mover, uint64_t bytes_done, uint64_t bytes_total, void *userdata);

/* await_done() - until @n requests have completed in all. await_loss() - until the mover is gone. */
void await_done(struct fixture *fixture, unsigned int n);
void await_loss(struct fixture *fixture);

/* perform() - the error of one request, waited for: perform(fixture, mover_info(...)). */
int perform(struct fixture *fixture, int requested);

/* Memory of the guest on a device, as the gate has it. */
#define MEMORIES_MAX 16

struct memories {
        size_t n;
        uint64_t sizes[MEMORIES_MAX];
        uint64_t total;
        CUmemGenericAllocationHandle handles[MEMORIES_MAX];
        int fds[MEMORIES_MAX];
        CUdeviceptr base;
};

void memories_create(struct memories *memories, size_t device, const uint64_t *sizes, size_t n);
void memories_free(struct memories *memories);
void memories_fill(struct memories *memories, uint32_t seed);
void memories_assert(struct memories *memories, uint32_t seed);

/* slabs_add() - @n slabs 0 to @n - 1 in the mover. slab_map() - their bytes, for the test's eyes. */
int new_slab(void);
void slabs_add(struct fixture *fixture, size_t n);
unsigned char *slab_map(struct fixture *fixture, size_t slab);

/* layout() - segments that put the memories into slabs, in three pieces each, not in order. */
size_t layout(struct mover_segment *segments, const struct memories *memories);

/* move() - a whole job, from begin to end; returns the error of its run. */
int move(struct fixture *fixture, const struct mover_job *job, const struct memories *memories,
         bool stage, uint64_t stage_limit);

#endif
