/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot of a checkpointed process: its device memory, kept in host memory.
 *
 * No call of the program runs meanwhile, and no work: all of this may change
 * without anybody seeing it half done.
 */

#include "sim/snapshot.h"

#include <fcntl.h>
#include <string.h>

#include "sim/context.h"
#include "sim/handle.h"
#include "sim/memory.h"

static struct {
        bool has_imported, has_managed_pool; /* the real driver can't restore such a process */
        bool has_failed;
} snapshot;

/* Bytes of each of the host's devices. */
struct need {
        uint64_t bytes[HOST_DEVICES_MAX];
};

static bool is_active(CUcontext context)
{
        return !context->is_primary || context->retained;
}

/* They are on the device, or not any more. */
static void note_contexts(int sign)
{
        for (CUcontext context = process.contexts; context; context = context->next)
                if (is_active(context))
                        holdings_note_context(&process.holdings, process.device[context->device].at,
                                              sign * (int64_t)context->cost);
}

static void refund_contexts(void)
{
        for (CUcontext context = process.contexts; context; context = context->next)
                if (is_active(context))
                        holdings_refund(&process.holdings, process.device[context->device].at,
                                        context->cost);
        note_contexts(-1);
}

CUresult snapshot_save(void)
{
        CUresult result = CUDA_SUCCESS;
        PROCESS_LOCKED();

        if (memory_has_managed())
                return CUDA_ERROR_NOT_SUPPORTED;
        snapshot.has_imported = handle_has_imported();
        snapshot.has_managed_pool = memory_has_managed_pool();
        snapshot.has_failed = false;
        for (struct mapping *mapping = process.mappings; mapping; mapping = mapping->next)
                mapping_take_off(mapping);
        for (struct memory_file *file = process.files; file && !result; file = file->next)
                result = memory_file_take_off(file);
        refund_contexts();
        return result;
}

/* @to[i]: where what is on host device i goes. */
static CUresult read_pairs(int *to, const CUcheckpointGpuPair *pairs, unsigned int n)
{
        int n_devices = (int)process.holdings.view.host->n_devices;
        bool is_taken[HOST_DEVICES_MAX] = { false };

        for (int i = 0; i < n_devices; i++)
                to[i] = n ? -1 : i;
        if (n && n != (unsigned int)n_devices)
                return CUDA_ERROR_INVALID_VALUE; /* measured: all devices, or none */
        for (unsigned int i = 0; i < n; i++) {
                int old = -1, new = -1;

                for (int d = 0; d < n_devices; d++) {
                        if (memcmp(process.host_device[d].uuid, pairs[i].oldUuid.bytes, 16) == 0)
                                old = d;
                        if (memcmp(process.host_device[d].uuid, pairs[i].newUuid.bytes, 16) == 0)
                                new = d;
                }
                if (old < 0 || new < 0 || to[old] >= 0 || is_taken[new] ||
                    strcmp(process.host_device[old].kind, process.host_device[new].kind) != 0)
                        return CUDA_ERROR_INVALID_VALUE;
                to[old] = new;
                is_taken[new] = true;
        }
        return CUDA_SUCCESS;
}

static void count_need(struct need *need, const int *to)
{
        for (const struct memory_file *file = process.files; file; file = file->next)
                if (!file->is_imported)
                        need->bytes[to[file->device]] += file->size;
        for (CUcontext context = process.contexts; context; context = context->next)
                if (is_active(context))
                        need->bytes[to[process.device[context->device].at]] += context->cost;
}

static void refund_need(const struct need *need, int n)
{
        for (int i = 0; i < n; i++)
                holdings_refund(&process.holdings, i, need->bytes[i]);
}

/* All or nothing, before anything changes. */
static CUresult charge_need(const struct need *need)
{
        for (int i = 0; i < (int)process.holdings.view.host->n_devices; i++) {
                if (holdings_charge(&process.holdings, i, need->bytes[i]) < 0) {
                        refund_need(need, i);
                        return CUDA_ERROR_OUT_OF_MEMORY;
                }
        }
        return CUDA_SUCCESS;
}

static void move(const int *to)
{
        for (struct memory_file *file = process.files; file; file = file->next)
                if (!file->is_imported)
                        file->device = to[file->device];
        for (int i = 0; i < process.n_devices; i++)
                process.device[i].at = to[process.device[i].at];
        note_contexts(1);
}

/* As the real driver: what lets the device interrupt kernels is not restored. */
static void forget_wholeness(void)
{
        for (CUcontext context = process.contexts; context; context = context->next)
                context->is_unwhole = true;
}

static CUresult map_again(void)
{
        CUresult result = CUDA_SUCCESS;

        for (struct mapping *mapping = process.mappings; mapping && !result;
             mapping = mapping->next)
                result = mapping_put_back(mapping);
        if (result == CUDA_SUCCESS)
                forget_wholeness();
        return result;
}

/* The devices have room for it and it is theirs; nothing of it can be used yet. */
static CUresult settle(const int *to)
{
        struct need need = { { 0 } };
        CUresult result;

        if (snapshot.has_imported || snapshot.has_managed_pool)
                return CUDA_ERROR_NOT_SUPPORTED; /* measured */
        count_need(&need, to);
        result = charge_need(&need);
        if (result == CUDA_SUCCESS)
                move(to);
        return result;
}

CUresult snapshot_restore(const CUcheckpointGpuPair *pairs, unsigned int n_pairs)
{
        int to[HOST_DEVICES_MAX];
        CUresult result;
        PROCESS_LOCKED();

        if (snapshot.has_failed)
                return CUDA_ERROR_OPERATING_SYSTEM;
        result = read_pairs(to, pairs, n_pairs);
        if (result != CUDA_SUCCESS)
                return result;
        result = settle(to);
        snapshot.has_failed = result != CUDA_SUCCESS;
        if (result == CUDA_SUCCESS)
                result = map_again();
        snapshot.has_failed |= result == CUDA_ERROR_OUT_OF_MEMORY;
        return result;
}
