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
        bool is_elsewhere; /* in custom storage */
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

/* Devices on which there is something of this process, as they are in @to. */
static uint32_t find_devices(const int *to)
{
        uint32_t devices = 0;

        for (const struct memory_file *file = process.files; file; file = file->next)
                if (!file->is_imported)
                        devices |= 1u << to[file->device];
        for (CUcontext context = process.contexts; context; context = context->next)
                if (is_active(context))
                        devices |= 1u << to[process.device[context->device].at];
        return devices;
}

static CUresult save(void)
{
        CUresult result = CUDA_SUCCESS;

        snapshot.has_imported = handle_has_imported();
        snapshot.has_managed_pool = memory_has_managed_pool();
        snapshot.has_failed = false;
        snapshot.is_elsewhere = false;
        for (struct mapping *mapping = process.mappings; mapping; mapping = mapping->next)
                mapping_take_off(mapping);
        for (struct memory_file *file = process.files; file && !result; file = file->next)
                result = memory_file_take_off(file);
        refund_contexts();
        return result;
}

CUresult snapshot_save(void)
{
        PROCESS_LOCKED();

        return memory_has_managed() ? CUDA_ERROR_NOT_SUPPORTED : save();
}

CUresult snapshot_share_for_save(uint32_t contexts)
{
        int same[HOST_DEVICES_MAX];
        PROCESS_LOCKED();

        for (int i = 0; i < HOST_DEVICES_MAX; i++)
                same[i] = i;
        if (memory_has_managed())
                return CUDA_ERROR_NOT_SUPPORTED;
        return find_devices(same) & ~contexts ? CUDA_ERROR_INVALID_CONTEXT : save();
}

/* Not the page behind the memory, which says whose it is. */
void snapshot_drop(void)
{
        PROCESS_LOCKED();

        for (struct memory_file *file = process.files; file; file = file->next)
                if (!file->is_imported)
                        (void)fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                        (off_t)file->size);
        snapshot.is_elsewhere = true;
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

static CUresult restore(const CUcheckpointGpuPair *pairs, unsigned int n_pairs, uint32_t contexts)
{
        int to[HOST_DEVICES_MAX];
        CUresult result;

        if (snapshot.has_failed)
                return CUDA_ERROR_OPERATING_SYSTEM;
        result = read_pairs(to, pairs, n_pairs);
        if (result != CUDA_SUCCESS)
                return result;
        if (find_devices(to) & ~contexts)
                return CUDA_ERROR_INVALID_CONTEXT;
        result = settle(to);
        snapshot.has_failed = result != CUDA_SUCCESS;
        return result;
}

CUresult snapshot_restore(const CUcheckpointGpuPair *pairs, unsigned int n_pairs)
{
        CUresult result;
        PROCESS_LOCKED();

        if (snapshot.is_elsewhere)
                return CUDA_ERROR_INVALID_VALUE;
        result = restore(pairs, n_pairs, UINT32_MAX);
        if (result == CUDA_SUCCESS)
                result = map_again();
        if (result != CUDA_SUCCESS)
                snapshot.has_failed |= result == CUDA_ERROR_OUT_OF_MEMORY;
        return result;
}

CUresult snapshot_share_for_restore(uint32_t contexts, const CUcheckpointGpuPair *pairs,
                                    unsigned int n_pairs)
{
        PROCESS_LOCKED();

        return snapshot.is_elsewhere ? restore(pairs, n_pairs, contexts) : CUDA_ERROR_INVALID_VALUE;
}

CUresult snapshot_return(void)
{
        PROCESS_LOCKED();

        snapshot.is_elsewhere = false;
        return map_again();
}
