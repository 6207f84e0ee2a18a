/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_TEST_TARGET_H
#define SIM_TEST_TARGET_H

/*
 * A guest that is checkpointed by another one. The controller runs in a process of its own, too, so
 * that the test program can go on forking ones without a driver.
 */

#include "sim/test-guest.h"

static struct guest target; /* of the test that runs now */

static inline CUresult lock(unsigned int timeout_ms)
{
        CUcheckpointLockArgs args = { 0 };

        args.timeoutMs = timeout_ms;
        return cuCheckpointProcessLock(target.pid, &args);
}

static inline CUresult checkpoint(void)
{
        return cuCheckpointProcessCheckpoint(target.pid, NULL);
}

static inline CUresult unlock(void)
{
        return cuCheckpointProcessUnlock(target.pid, NULL);
}

static inline CUresult restore(CUcheckpointGpuPair *pairs, unsigned int n)
{
        CUcheckpointRestoreArgs args = { 0 };

        args.gpuPairs = pairs;
        args.gpuPairsCount = n;
        return cuCheckpointProcessRestore(target.pid, n ? &args : NULL);
}

static inline CUprocessState get_state(void)
{
        CUprocessState state;

        must(cuCheckpointProcessGetState(target.pid, &state));
        return state;
}

/* Answers each number heard with the next step of its work; ends at 0. */
static inline void work(int socket)
{
        uint32_t value = 100, word;
        CUdeviceptr pointer, small;
        CUuuid uuid;
        char bus[32];

        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 64 * MIB));
        must(cuMemAlloc_v2(&small, 256));
        must(cuMemsetD32_v2(pointer, value, 16 * MIB));
        must(cuMemsetD32_v2(small, 7, 64));
        guest_tell(socket, 0, -1);
        while (guest_hear(socket, NULL)) {
                must(cuMemcpyDtoH_v2(&word, pointer + 64 * MIB - 4, sizeof(word)));
                must_equal(word, value);
                must(cuMemcpyDtoH_v2(&word, small + 252, sizeof(word)));
                must_equal(word, 7);
                must(cuMemsetD32_v2(pointer, ++value, 16 * MIB));
                must(cuDeviceGetUuid(&uuid, 0));
                must(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
                must_equal(strcmp(bus, "0000:06:00.0"), 0); /* stays */
                guest_tell(socket, uuid.bytes[0], -1);
        }
}

/* The guest's device, by the first byte of its UUID. */
static inline uint64_t let_work(void)
{
        guest_tell(target.socket, 1, -1);
        return guest_hear(target.socket, NULL);
}

static inline void start(void (*run)(int socket))
{
        target = guest_start(run);
        (void)guest_hear(target.socket, NULL);
}

static inline void end(void)
{
        guest_tell(target.socket, 0, -1);
        must_equal(guest_end(&target), 0);
}

#endif
