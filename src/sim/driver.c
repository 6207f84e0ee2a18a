/* SPDX-License-Identifier: Apache-2.0 */
/* The driver itself: start, version, errors by name, entry points by name and version. */

#include "sim/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/sim-table.h"
#include "sim/call.h"
#include "sim/context.h"
#include "sim/process.h"
#include "sim/start.h"

CUresult sim_cuInit(unsigned int flags)
{
        return flags ? CUDA_ERROR_INVALID_VALUE : start_process();
}

CUresult sim_cuDriverGetVersion(int *version)
{
        if (!version)
                return CUDA_ERROR_INVALID_VALUE;
        *version = DRIVER_VERSION;
        return CUDA_SUCCESS;
}

#define ERROR(result_, text_)                \
        {                                    \
                (result_), #result_, (text_) \
        }

static const struct error {
        CUresult result;
        const char *name, *text;
} errors[] = {
        ERROR(CUDA_SUCCESS, "no error"),
        ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
        ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
        ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
        ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
        ERROR(CUDA_ERROR_NO_DEVICE, "no device found"),
        ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
        ERROR(CUDA_ERROR_INVALID_IMAGE, "invalid kernel image"),
        ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
        ERROR(CUDA_ERROR_MAP_FAILED, "mapping failed"),
        ERROR(CUDA_ERROR_UNMAP_FAILED, "unmapping failed"),
        ERROR(CUDA_ERROR_INVALID_SOURCE, "invalid kernel source"),
        ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
        ERROR(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "symbol of a shared object not found"),
        ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed"),
        ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
        ERROR(CUDA_ERROR_ILLEGAL_STATE, "not possible in this state"),
        ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
        ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
        ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal memory access"),
        ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is enabled already"),
        ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
        ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "primary context is in use"),
        ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory is registered already"),
        ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory is not registered"),
        ERROR(CUDA_ERROR_LAUNCH_FAILED, "launch failed"),
        ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
        ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
        ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not ready"),
        ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is captured"),
        ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "capture was invalidated by an earlier error"),
        ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would become one"),
        ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture did not begin in this stream"),
        ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capture has work that was not joined"),
        ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "work would depend on work outside the capture"),
        ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "capture would depend on the legacy stream"),
        ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture was begun by another thread"),
        ERROR(CUDA_ERROR_TIMEOUT, "timed out"),
        ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

static const struct error *find_error(CUresult result)
{
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
                if (errors[i].result == result)
                        return &errors[i];
        return NULL;
}

CUresult sim_cuGetErrorName(CUresult result, const char **name)
{
        const struct error *error = find_error(result);

        if (!name)
                return CUDA_ERROR_INVALID_VALUE;
        *name = error ? error->name : NULL;
        return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGetErrorString(CUresult result, const char **text)
{
        const struct error *error = find_error(result);

        if (!text)
                return CUDA_ERROR_INVALID_VALUE;
        *text = error ? error->text : NULL;
        return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void tell_no_tables(void)
{
        (void)fprintf(
                stderr,
                "simulated CUDA driver: this program brings NVIDIA's CUDA runtime, which "
                "works with NVIDIA's driver only; linked with the shared one of CUDA 13 (nvcc "
                "-cudart shared) it gets the simulated GPU's (docs/simulated-gpu.md)\n");
}

static CUresult get_device_count(int *ret_count)
{
        *ret_count = process.n_devices;
        return CUDA_SUCCESS;
}

static const struct sim_table own_table = { sizeof(own_table), get_device_count, context_mend_all };

/*
 * NVIDIA's runtime asks for private tables here, and with one of them has the driver prove that it is
 * NVIDIA's. We are another driver and have none of them; the real one says the same of tables that it
 * does not know. What the caller makes of that, "invalid argument", names no reason: we do. src/cudart
 * has a runtime for this driver, and asks for our own table, as the gate does.
 */
CUresult sim_cuGetExportTable(const void **table, const CUuuid *id)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        if (table && id && memcmp(id, SIM_TABLE_ID, sizeof(*id)) == 0) {
                *table = &own_table;
                return CUDA_SUCCESS;
        }
        if (table && id)
                (void)pthread_once(&once, tell_no_tables);
        if (table)
                *table = NULL;
        return CUDA_ERROR_INVALID_VALUE;
}

#define FLAG_PER_THREAD 2u

enum symbol_status { SYMBOL_FOUND, SYMBOL_UNKNOWN, SYMBOL_TOO_NEW };

/* The newest entry point of base name @symbol that existed in @version. */
static const struct call_entry *find_entry(const char *symbol, int version, bool per_thread,
                                           enum symbol_status *status)
{
        const struct call_entry *best = NULL;

        *status = SYMBOL_UNKNOWN;
        for (unsigned int i = 0; i < CALL_COUNT; i++) {
                const struct call_entry *entry = &call_entries[i];

                if (entry->since == 0 || entry->is_per_thread != per_thread ||
                    strcmp(entry->base, symbol) != 0)
                        continue;
                if (*status == SYMBOL_UNKNOWN)
                        *status = SYMBOL_TOO_NEW;
                if (entry->since <= version && (!best || entry->since > best->since))
                        best = entry;
        }
        if (best)
                *status = SYMBOL_FOUND;
        return best;
}

static CUresult look_up(const char *symbol, void **function, int version, uint64_t flags,
                        enum symbol_status *status)
{
        const struct call_entry *entry = NULL;

        if (!symbol || !function || version > DRIVER_VERSION)
                return CUDA_ERROR_INVALID_VALUE;
        if (flags & FLAG_PER_THREAD)
                entry = find_entry(symbol, version, true, status);
        if (!entry)
                entry = find_entry(symbol, version, false, status);
        *function = entry ? (void *)(uintptr_t)entry->function : NULL;
        return CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
        enum symbol_status status = SYMBOL_UNKNOWN;
        CUresult result = look_up(symbol, function, version, flags, &status);

        if (result == CUDA_SUCCESS && status != SYMBOL_FOUND)
                return CUDA_ERROR_NOT_FOUND;
        return result;
}

CUresult sim_cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                 int *status)
{
        enum symbol_status found = SYMBOL_UNKNOWN;
        CUresult result = look_up(symbol, function, version, flags, &found);

        if (result == CUDA_SUCCESS && status)
                *status = found;
        return result;
}

CUresult sim_cuProfilerStart(void)
{
        return CUDA_SUCCESS;
}

CUresult sim_cuProfilerStop(void)
{
        return CUDA_SUCCESS;
}
