/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

/*
 * What the simulated driver knows of the process that it runs in.
 *
 * One lock protects everything here and all objects behind it, and one condition tells that
 * something has changed: work finished, the process was unlocked. The lock is not held while work
 * runs (copies, kernels, host functions). Names with _locked are called with it held.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "base/cleanup.h"
#include "sim-entries.h"
#include "sim/holdings.h"
#include "sim/space.h"

/* Granularity of device memory, and the greatest request that shares a block with others. */
#define MEMORY_PAGE ((uint64_t)2 << 20)

/* A device as this process sees it, by ordinal. */
struct device {
        int at;   /* the host's device that it is now */
        int home; /* the host's device that it was at cuInit(): its bus id stays */
        CUcontext primary;
        unsigned int primary_flags;
        CUmemoryPool pool, default_pool;
};

struct process {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct holdings holdings;
        int n_devices;
        struct device device[HOST_DEVICES_MAX];
        const struct host_device *host_device; /* of the host */
        CUcontext contexts;                    /* list */
        struct memory_file *files;             /* list */
        struct mapping *mappings;              /* list */
        struct capture *captures;              /* list of the open ones */
        struct space handles;                  /* of physical memory */
        struct space reservations;             /* of cuMemAddressReserve() */
        struct space regions;                  /* of memory that programs may name */
        uint64_t n_pending;                    /* work queued or running on all streams */
        uint64_t next_id;                      /* for everything that is numbered */
};

extern struct process process;

/* process_lock() - lock for a scope: CLEANUP(process_unlockp) struct process *p = process_lock(); */
static inline struct process *process_lock(void)
{
        (void)pthread_mutex_lock(&process.lock);
        return &process;
}

static inline void process_unlockp(struct process **locked)
{
        if (*locked)
                (void)pthread_mutex_unlock(&(*locked)->lock);
}

#define PROCESS_LOCKED() \
        CLEANUP(process_unlockp) __attribute__((unused)) struct process *locked_ = process_lock()

static inline void process_wait_locked(void)
{
        (void)pthread_cond_wait(&process.changed, &process.lock);
}

static inline void process_tell_locked(void)
{
        (void)pthread_cond_broadcast(&process.changed);
}

/* process_is_started() - has cuInit() succeeded (start.h)? process_set_started() - note that it has. */
bool process_is_started(void);
void process_set_started(void);

/* device_has_peers() - can devices use each other's memory? OPENVGPU_SIM_PEER=0: no. */
bool device_has_peers(void);

/*
 * process_die() - what the real driver does to a process with a thread in a loop of
 * cuCtxSynchronize(), measured: a segmentation fault.
 */
__attribute__((noreturn)) void process_die(void);

/* process_device() - return the device with the ordinal @device, or NULL. */
struct device *process_device(CUdevice device);

#endif
