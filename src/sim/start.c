/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuInit() makes a process one that uses the simulated host.
 *
 * A child that was forked after cuInit() is not a process that uses the device,
 * as with the real driver: its calls answer CUDA_ERROR_NOT_INITIALIZED. The fork
 * handlers drop what the child has inherited, so that what the parent frees is free.
 */

#include "sim/start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/call.h"
#include "sim/checkpoint-service.h"
#include "sim/device.h"
#include "sim/host.h"
#include "sim/memory-file.h"
#include "sim/process.h"

static void before_fork(void)
{
        (void)pthread_mutex_lock(&process.lock);
}

static void after_fork_in_parent(void)
{
        (void)pthread_mutex_unlock(&process.lock);
}

static void after_fork_in_child(void)
{
        call_disable();
        checkpoint_service_abandon();
        memory_file_forget_all();
        holdings_abandon(&process.holdings);
        (void)pthread_mutex_unlock(&process.lock);
}

static CUresult start_locked(void)
{
        const char *directory = getenv(SIM_HOST_VARIABLE);
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");

        int r = directory ? holdings_open(&process.holdings, directory) : -ENOENT;

        if (r == -EUSERS) {
                (void)fprintf(stderr, "simulated CUDA driver: %s has %d processes already\n",
                              directory, HOST_SLOTS - HOST_SLOTS_KEPT);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (r < 0)
                return CUDA_ERROR_NO_DEVICE;
        process.host_device = process.holdings.view.host->device;
        process.n_devices = device_select(visible);
        if (process.n_devices == 0)
                return CUDA_ERROR_NO_DEVICE;
        if (call_start() < 0 || checkpoint_service_start() < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        (void)atexit(call_end);
        return CUDA_SUCCESS;
}

CUresult start_process(void)
{
        static bool has_failed;
        static CUresult failure;
        PROCESS_LOCKED();

        if (process_is_started())
                return call_is_disabled() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
        if (has_failed)
                return failure; /* the real driver does not look again either */
        failure = start_locked();
        has_failed = failure != CUDA_SUCCESS;
        if (!has_failed)
                process_set_started();
        return failure;
}
