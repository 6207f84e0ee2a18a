/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the driver's calls with custom storage. Once the driver has mapped the memory, there is no way
 * back until the helper tells it that the copy is complete.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "checkpoint/contexts.h"
#include "checkpoint/driver.h"
#include "checkpoint/storage.h"
#include "checkpoint/store.h"
#include "checkpoint/transfer.h"

#define PROBLEM_MAX 320

/* What is mapped, and what becomes of it. */
struct operation {
        struct job *job;
        int i;
        CUcheckpointCustomStorageInfo *info;
        struct transfer_range range[CHECKPOINT_PAIRS_MAX];
        size_t n_ranges;
        bool is_rescued; /* stored, but not where it should be: the action fails */
        char problem[PROBLEM_MAX];
};

static struct store *store_of(const struct operation *operation)
{
        return &operation->job->store[operation->i];
}

static int refuse(struct operation *operation, const char *problem)
{
        snprintf(operation->problem, sizeof(operation->problem), "%s", problem);
        return -EIO;
}

static int refuse_note(struct operation *operation, int r)
{
        snprintf(operation->problem, sizeof(operation->problem), "%.200s: %s",
                 store_of(operation)->note, strerrordesc_np(-r));
        return r;
}

/* The part of the store for what is on our device @device: that of the device from which it comes. */
static int find_part(const struct operation *operation, unsigned int device, bool can_add)
{
        const struct job *job = operation->job;
        struct store *store = store_of(operation);
        char uuid[DEVICE_UUID_MAX];
        unsigned int from = device;
        int part;

        if (!can_add && job->pairs.n && !job->is_undoing)
                for (from = 0; job->pairs.to[from] != device;)
                        from++;
        device_format_uuid(uuid, &job->devices.device[from].uuid);
        part = store_find_part(store, uuid);
        return part < 0 && can_add ? store_add_part(store, uuid) : part;
}

static int read_ranges(struct operation *operation, bool can_add)
{
        const CUcheckpointCustomStorageInfo *info = operation->info;

        if (info->deviceCount > CHECKPOINT_PAIRS_MAX)
                return refuse(operation, "more devices than a host has");
        for (unsigned int i = 0; i < info->deviceCount; i++) {
                const CUcheckpointCustomStoragePerDeviceData *data = &info->perDeviceData[i];
                int device = contexts_find(data->stream), part;

                if (data->size == 0)
                        continue;
                if (device < 0 || device >= (int)operation->job->devices.n)
                        return refuse(operation,
                                      "the driver's stream belongs to no device of ours");
                part = find_part(operation, (unsigned int)device, can_add);
                if (part < 0)
                        return refuse(operation, "there is memory on a device that has no part");
                for (size_t k = 0; k < operation->n_ranges; k++)
                        if (operation->range[k].part == (unsigned int)part)
                                return refuse(operation, "the driver maps a device in two pieces");
                operation->range[operation->n_ranges++] =
                        (struct transfer_range){ data->devPtr, data->size, (unsigned int)device,
                                                 (unsigned int)part };
        }
        return 0;
}

/* Out of the device. */

static int reserve_the_rest(struct operation *operation)
{
        struct checkpoint_wire_process *process = &operation->job->answer.process[operation->i];
        struct store *store = store_of(operation);
        uint64_t sum = 0;

        for (size_t i = 0; i < operation->n_ranges; i++) {
                const struct transfer_range *range = &operation->range[i];
                int r = store_reserve(store, range->part, range->size);

                if (r < 0) {
                        snprintf(operation->problem, sizeof(operation->problem),
                                 "it is more than was reserved for it in %.200s, and for the rest: "
                                 "%s",
                                 store->path, strerrordesc_np(-r));
                        return r;
                }
                store->part[range->part].size = range->size;
                sum += range->size;
        }
        if (process->bytes == 0) /* NVML did not say */
                process->bytes = sum;
        return 0;
}

static int copy_out(struct operation *operation)
{
        struct store *store = store_of(operation);
        int r = reserve_the_rest(operation);

        if (r == 0)
                r = transfer_run(TRANSFER_TO_STORE, store, operation->range, operation->n_ranges,
                                 operation->problem, sizeof(operation->problem));
        if (r < 0)
                return r;
        r = store_commit(store);
        return r < 0 ? refuse_note(operation, r) : 0;
}

/* The same parts in memory of the host, instead of what could not be stored in a directory. */
static int make_spare(struct operation *operation)
{
        const struct job *job = operation->job;
        struct store *store = store_of(operation);
        uint64_t sum = 0;
        int r;

        for (size_t i = 0; i < operation->n_ranges; i++)
                sum += operation->range[i].size;
        store_remove(store);
        r = store_make(store, job->answer.process[operation->i].pid, NULL, sum);
        for (size_t i = 0; i < operation->n_ranges && r == 0; i++) {
                struct transfer_range *range = &operation->range[i];
                char uuid[DEVICE_UUID_MAX];
                int part;

                device_format_uuid(uuid, &job->devices.device[range->device].uuid);
                part = store_add_part(store, uuid);
                range->part = (unsigned int)part;
                r = part < 0 ? part : 0;
        }
        return r;
}

/*
 * A directory that fails after the mapping need not cost the process its life: with its memory in
 * the host's, the checkpoint can be completed, and then be undone as any other failure.
 */
static int rescue(struct operation *operation)
{
        struct job *job = operation->job;
        int pid = job->answer.process[operation->i].pid;
        char problem[PROBLEM_MAX];

        if (store_of(operation)->place != VGPU_CHECKPOINT_STORAGE_DIRECTORY)
                return -EIO;
        memcpy(problem, operation->problem, sizeof(problem));
        if (make_spare(operation) < 0 || copy_out(operation) < 0) {
                memcpy(operation->problem, problem, sizeof(problem));
                return -EIO;
        }
        operation->is_rescued = true;
        (void)job_fail(job, operation->i, VGPU_CHECKPOINT_ERROR_FAILED, "", CUDA_SUCCESS,
                       "check the directory, or choose another --storage",
                       "the device memory of process %d could not be stored: %s", pid, problem);
        return 0;
}

static int save(struct operation *operation)
{
        int r = read_ranges(operation, true);

        if (r == 0 && fault_point("checkpointer.storing"))
                r = refuse(operation, "fault point");
        if (r < 0)
                return r;
        r = copy_out(operation);
        if (r < 0)
                r = rescue(operation);
        if (r == 0 && fault_point("checkpointer.stored"))
                r = refuse(operation, "fault point");
        return r;
}

/* Into the device. */

static int check_sizes(struct operation *operation)
{
        const struct store *store = store_of(operation);
        bool is_there[CHECKPOINT_PAIRS_MAX] = { false };

        for (size_t i = 0; i < operation->n_ranges; i++) {
                const struct transfer_range *range = &operation->range[i];

                if (range->size != store->part[range->part].size)
                        return refuse(operation, "the driver wants another size than was stored");
                is_there[range->part] = true;
        }
        for (unsigned int i = 0; i < store->n_parts; i++)
                if (store->part[i].size > 0 && !is_there[i])
                        return refuse(operation, "the driver does not want all that was stored");
        return 0;
}

static int load(struct operation *operation)
{
        struct store *store = store_of(operation);
        int r = read_ranges(operation, false);

        if (r == 0)
                r = check_sizes(operation);
        if (r == 0 && fault_point("checkpointer.loading"))
                r = refuse(operation, "fault point");
        if (r == 0)
                r = transfer_run(TRANSFER_TO_DEVICE, store, operation->range, operation->n_ranges,
                                 operation->problem, sizeof(operation->problem));
        if (r == 0)
                r = store_spend(store);
        if (r < 0 && !*operation->problem)
                r = refuse_note(operation, r);
        if (r == 0 && fault_point("checkpointer.loaded"))
                r = refuse(operation, "fault point");
        return r;
}

/* Both. */

static CUresult lose(struct operation *operation, const char *what, CUresult code)
{
        struct job *job = operation->job;
        int i = operation->i, pid = job->answer.process[i].pid;

        job->is_lost[i] = true;
        store_lose(store_of(operation), pid);
        (void)job_fail(job, i, VGPU_CHECKPOINT_ERROR_LOST,
                       code == CUDA_SUCCESS ? "" : "cuCheckpointOperationComplete", code,
                       "the process can only be killed: the driver cannot undo what it has begun",
                       "the device memory of process %d could not be %s: %s", pid, what,
                       code == CUDA_SUCCESS ? operation->problem : driver_error_name(code));
        return code == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : code;
}

static int read_state(const struct operation *operation)
{
        CUprocessState state;

        return JOB_CALL(operation->job, operation->i, cuCheckpointProcessGetState, &state) ==
                               CUDA_SUCCESS
                       ? (int)state
                       : CHECKPOINT_NO_STATE;
}

/* Always, and only once: whatever it answers, the block that it was given is gone. */
static CUresult complete(const struct operation *operation)
{
        return driver.cuCheckpointOperationComplete(operation->info->handle);
}

/* When the driver answers an error, the state tells what it has done. */
static CUresult finish_checkpoint(struct operation *operation, int r)
{
        CUresult code = complete(operation);
        int state = code == CUDA_SUCCESS ? CU_PROCESS_STATE_CHECKPOINTED : read_state(operation);

        if (r == 0 && state == CU_PROCESS_STATE_CHECKPOINTED)
                return operation->is_rescued ? CUDA_ERROR_UNKNOWN : code;
        if (r == 0 && state != CU_PROCESS_STATE_LOCKED && state != CU_PROCESS_STATE_FAILED)
                return code; /* who knows what it has done: what is stored may yet be needed */
        if (state != CU_PROCESS_STATE_LOCKED)
                return lose(operation, "stored", r < 0 ? CUDA_SUCCESS : code);
        store_remove(store_of(operation)); /* the process has never lost it */
        return code;
}

static CUresult finish_restore(struct operation *operation, int r)
{
        struct store *store = store_of(operation);
        CUresult code = complete(operation);

        if (r < 0)
                return lose(operation, "brought back", CUDA_SUCCESS);
        if (code == CUDA_SUCCESS)
                return CUDA_SUCCESS;
        /* What is in the store is still what the process needs, if the driver has gone back. */
        if (read_state(operation) == CU_PROCESS_STATE_CHECKPOINTED && store_commit(store) == 0)
                return code;
        return lose(operation, "brought back", code);
}

static bool retain_all(const struct job *job)
{
        for (unsigned int d = 0; d < job->devices.n; d++)
                if (contexts_retain(d) != CUDA_SUCCESS)
                        return false;
        return true;
}

static CUresult begin_checkpoint(const struct job *job, int i,
                                 CUcheckpointCustomStorageInfo **ret_info)
{
        CUcheckpointCheckpointArgs args = { .customStorageInfo_out = ret_info };

        return JOB_CALL(job, i, cuCheckpointProcessCheckpoint, &args);
}

/* The driver does not want to, and nothing has happened yet. */
static CUresult fall_back(const struct operation *operation, CUresult code)
{
        struct job *job = operation->job;
        struct checkpoint_wire_process *process = &job->answer.process[operation->i];

        store_remove(store_of(operation));
        if ((!job->is_undoing && job->request->storage >= CHECKPOINT_STORAGE_MEMORY) ||
            read_state(operation) != CU_PROCESS_STATE_LOCKED)
                return code;
        process->storage = VGPU_CHECKPOINT_STORAGE_DRIVER;
        process->storage_reason = CHECKPOINT_REASON_REFUSED;
        return begin_checkpoint(job, operation->i, NULL);
}

CUresult storage_checkpoint(struct job *job, int i)
{
        struct operation operation = { .job = job, .i = i };
        struct checkpoint_wire_process *process = &job->answer.process[i];
        CUresult code;

        if (storage_prepare(job, i) < 0)
                return CUDA_ERROR_UNKNOWN; /* is noted */
        if (job->store[i].state != STORE_RESERVED)
                return begin_checkpoint(job, i, NULL);
        code = begin_checkpoint(job, i, &operation.info);
        if (code == CUDA_ERROR_INVALID_CONTEXT && retain_all(job))
                code = begin_checkpoint(job, i, &operation.info);
        if (code != CUDA_SUCCESS)
                return fall_back(&operation, code);
        if (!operation.info) { /* it knows no such field, and has kept the memory itself */
                store_remove(&job->store[i]);
                process->storage = VGPU_CHECKPOINT_STORAGE_DRIVER;
                process->storage_reason = CHECKPOINT_REASON_REFUSED;
                return CUDA_SUCCESS;
        }
        return finish_checkpoint(&operation, save(&operation));
}

static CUresult begin_restore(const struct job *job, int i, CUcheckpointGpuPair *pairs,
                              unsigned int n_pairs, CUcheckpointCustomStorageInfo **ret_info)
{
        CUcheckpointRestoreArgs args = { .customStorageInfo_out = ret_info };

        /* Pairs without a count, or a count without pairs, would crash us. */
        if (n_pairs > 0) {
                args.gpuPairs = pairs;
                args.gpuPairsCount = n_pairs;
        }
        return JOB_CALL(job, i, cuCheckpointProcessRestore, &args);
}

/* It is brought back; but where it was is where it goes when that is undone. */
static void forget(struct store *store)
{
        struct store former = STORE_INIT;
        char *slash;

        former.place = store->place;
        memcpy(former.path, store->path, sizeof(former.path));
        slash = strrchr(former.path, '/');
        if (slash)
                *slash = '\0';
        store_remove(store);
        *store = former;
}

CUresult storage_restore(struct job *job, int i, CUcheckpointGpuPair *pairs, unsigned int n_pairs)
{
        struct operation operation = { .job = job, .i = i };
        CUresult code;

        if (storage_prepare_restore(job, i) < 0)
                return CUDA_ERROR_UNKNOWN; /* is noted */
        if (job->store[i].state != STORE_SAVED)
                return begin_restore(job, i, pairs, n_pairs, NULL);
        code = begin_restore(job, i, pairs, n_pairs, &operation.info);
        if (code == CUDA_ERROR_INVALID_CONTEXT && retain_all(job))
                code = begin_restore(job, i, pairs, n_pairs, &operation.info);
        if (code != CUDA_SUCCESS)
                return code;
        if (!operation.info)
                return lose(&operation, "brought back", CUDA_ERROR_INVALID_VALUE);
        code = finish_restore(&operation, load(&operation));
        if (code == CUDA_SUCCESS)
                forget(&job->store[i]);
        return code;
}
