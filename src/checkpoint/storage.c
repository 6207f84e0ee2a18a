/* SPDX-License-Identifier: Apache-2.0 */
/* Before the driver's calls, decides where the memory goes, and reserves the room. */

#include "checkpoint/storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/environment.h"
#include "base/fault.h"
#include "base/size.h"
#include "checkpoint/contexts.h"
#include "checkpoint/driver.h"
#include "checkpoint/memory.h"
#include "checkpoint/store.h"
#include "checkpoint/transfer.h"

/* Bytes of each of the job's devices. */
struct bound {
        uint64_t bytes[CHECKPOINT_PAIRS_MAX];
        uint64_t sum;
};

void storage_sweep(void)
{
        store_sweep();
}

/* Whoever runs or is locked has its memory: what is still stored of it is of a former checkpoint. */
static bool is_stale(const struct store *store, int state)
{
        if (store->state == STORE_LOST)
                return state == CU_PROCESS_STATE_RUNNING;
        return state == CU_PROCESS_STATE_RUNNING || state == CU_PROCESS_STATE_LOCKED ||
               state == CU_PROCESS_STATE_FAILED;
}

/* Under the lock: others may have checkpointed it since its state was read, and this is what they stored. */
static void forget(struct job *job, int i, struct store *store)
{
        CUprocessState state;

        if (store_take(store) == 0 &&
            JOB_CALL(job, i, cuCheckpointProcessGetState, &state) == CUDA_SUCCESS &&
            is_stale(store, (int)state))
                store_remove(store);
        store_deinit(store);
}

void storage_look(struct job *job, int i)
{
        struct checkpoint_wire_process *process = &job->answer.process[i];
        struct store store;

        (void)fault_point("checkpointer.looked");
        store_find(&store, process->pid);
        if (store.state == STORE_NONE)
                return;
        if (is_stale(&store, process->state))
                forget(job, i, &store);
        else if (store.state == STORE_SAVED && process->state == CU_PROCESS_STATE_CHECKPOINTED)
                process->storage = store.place;
}

static bool is_at_requested_place(const struct checkpoint_wire_request *request,
                                  const struct store *store)
{
        size_t length = strlen(request->directory);

        switch (request->storage) {
        case CHECKPOINT_STORAGE_AUTO:
                return true;
        case CHECKPOINT_STORAGE_DRIVER:
                return store->state != STORE_SAVED;
        case CHECKPOINT_STORAGE_MEMORY:
                return store->state == STORE_SAVED &&
                       store->place == VGPU_CHECKPOINT_STORAGE_MEMORY;
        default:
                return store->state == STORE_SAVED &&
                       store->place == VGPU_CHECKPOINT_STORAGE_DIRECTORY &&
                       strncmp(store->path, request->directory, length) == 0 &&
                       strchr(store->path + length, '/') == strrchr(store->path, '/');
        }
}

int storage_check_kept(struct job *job, int i)
{
        const struct checkpoint_wire_process *process = &job->answer.process[i];
        struct store store;

        if (process->state != CU_PROCESS_STATE_CHECKPOINTED)
                return 0;
        store_find(&store, process->pid);
        if (is_at_requested_place(job->request, &store))
                return 0;
        return job_fail(
                job, i, VGPU_CHECKPOINT_ERROR_WRONG_STATE, "", CUDA_SUCCESS, "resume it first",
                "process %d is checkpointed already, and its device memory is not in the place asked for, but %s%.300s",
                process->pid, store.state == STORE_SAVED ? "in " : "with the driver",
                store.state == STORE_SAVED ? store.path : "");
}

int storage_check_lost(struct job *job, int i)
{
        int pid = job->answer.process[i].pid;
        struct store store;

        store_find(&store, pid);
        if (store.state != STORE_LOST)
                return 0;
        return job_fail(job, i, VGPU_CHECKPOINT_ERROR_LOST, "", CUDA_SUCCESS,
                        "the process can only be killed",
                        "process %d has lost its device memory in an earlier action", pid);
}

/* Room. */

/*
 * No process holds more than NVML says of it. Where NVML does not see it (another PID namespace),
 * none holds more than is used of the device.
 */
static CUresult find_bound(struct job *job, int i, struct bound *bound)
{
        CUresult code = job_read_devices(job) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
        size_t left, total;

        bound->sum = memory_get_used(job, i, bound->bytes);
        for (unsigned int d = 0; d < job->devices.n && code == CUDA_SUCCESS; d++)
                if (bound->sum == 0 || bound->bytes[d] > 0)
                        code = contexts_retain(d);
        if (bound->sum > 0)
                return code;
        for (unsigned int d = 0; d < job->devices.n && code == CUDA_SUCCESS; d++) {
                code = contexts_enter((int)d);
                if (code == CUDA_SUCCESS)
                        code = driver.cuMemGetInfo_v2(&left, &total);
                bound->bytes[d] = code == CUDA_SUCCESS ? total - left : 0;
        }
        for (unsigned int d = 0; d < job->devices.n; d++)
                bound->sum += bound->bytes[d];
        return code;
}

/* The directory below which it goes; "": memory. What is undone goes where it was. */
static void choose_base(const struct job *job, int i, char *base)
{
        const struct store *former = &job->store[i];
        const char *directory = "";

        if (job->is_undoing)
                directory = former->place == VGPU_CHECKPOINT_STORAGE_DIRECTORY ? former->path : "";
        else if (job->request->storage == CHECKPOINT_STORAGE_DIRECTORY)
                directory = job->request->directory;
        snprintf(base, PATHS_MAX, "%s", directory);
}

static int make_store(struct job *job, int i, const struct bound *bound)
{
        struct store *store = &job->store[i];
        char base[PATHS_MAX];
        int r;

        choose_base(job, i, base);
        r = store_make(store, job->answer.process[i].pid, *base ? base : NULL, bound->sum);

        for (unsigned int d = 0; d < job->devices.n && r == 0; d++) {
                char uuid[DEVICE_UUID_MAX];
                int part;

                if (bound->bytes[d] == 0)
                        continue;
                part = store_add_part(store,
                                      device_format_uuid(uuid, &job->devices.device[d].uuid));
                r = store_reserve(store, (unsigned int)part, bound->bytes[d]);
        }
        if (r < 0)
                store_remove(store);
        return r;
}

/* Choosing. */

static bool is_asked_for(const struct job *job)
{
        return !job->is_undoing && job->request->storage >= CHECKPOINT_STORAGE_MEMORY;
}

/* The driver's own way, because of @reason; or a failure, if somebody wants nothing else. */
static int do_without(struct job *job, int i, enum checkpoint_storage_reason reason,
                      const char *detail)
{
        static const enum vgpu_checkpoint_error_kind kinds[] = {
                [CHECKPOINT_REASON_OLD_DRIVER] = VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED,
                [CHECKPOINT_REASON_JOB] = VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED,
                [CHECKPOINT_REASON_CONTEXT] = VGPU_CHECKPOINT_ERROR_NO_ROOM,
                [CHECKPOINT_REASON_ROOM] = VGPU_CHECKPOINT_ERROR_NO_ROOM,
                [CHECKPOINT_REASON_REFUSED] = VGPU_CHECKPOINT_ERROR_DRIVER_FAILED,
                [CHECKPOINT_REASON_PLACE] = VGPU_CHECKPOINT_ERROR_FAILED,
        };
        struct checkpoint_wire_process *process = &job->answer.process[i];

        process->storage = VGPU_CHECKPOINT_STORAGE_DRIVER;
        process->storage_reason = reason;
        if (!is_asked_for(job))
                return 0;
        return job_fail(job, i, kinds[reason], "", CUDA_SUCCESS,
                        "without --storage, the driver's own way is taken instead",
                        "the device memory of process %d cannot be stored: %s%s%s", process->pid,
                        checkpoint_storage_reason_text(reason), *detail ? ": " : "", detail);
}

static bool is_in_job(int pid)
{
        char *environment = environment_read(pid);
        const char *job =
                environment ? environment_get(environment, "CUDA_CHECKPOINT_JOB_FILE") : NULL;
        bool answer = job && *job;

        free(environment);
        return answer;
}

static bool is_lack_of_room(int error)
{
        return error == -ENOSPC || error == -EDQUOT || error == -EFBIG || error == -ENOMEM;
}

/* What is undone goes back the way it came. */
static bool wants_driver(const struct job *job, const struct checkpoint_wire_process *process)
{
        if (job->is_undoing)
                return process->storage < VGPU_CHECKPOINT_STORAGE_MEMORY;
        return job->request->storage == CHECKPOINT_STORAGE_DRIVER;
}

/* What he does we must not undo, and what he has locked we must not touch. */
static int fail_busy(struct job *job, int i)
{
        return job_fail(job, i, VGPU_CHECKPOINT_ERROR_WRONG_STATE, "", CUDA_SUCCESS,
                        "try again when that has ended",
                        "somebody else checkpoints or restores process %d just now",
                        job->answer.process[i].pid);
}

/* Between our look at its state and now: that is not ours to undo. */
static int fail_stored(struct job *job, int i)
{
        job->answer.process[i].state_before = CHECKPOINT_NO_STATE;
        return job_fail(job, i, VGPU_CHECKPOINT_ERROR_WRONG_STATE, "", CUDA_SUCCESS,
                        "ask for its state, and resume it",
                        "somebody else has just checkpointed process %d",
                        job->answer.process[i].pid);
}

int storage_prepare(struct job *job, int i)
{
        struct checkpoint_wire_process *process = &job->answer.process[i];
        struct bound bound = { .sum = 0 };
        char detail[64] = "", size[SIZE_TEXT_MAX];
        CUresult code;
        int r;

        if (job->store[i].state == STORE_RESERVED || process->storage_reason)
                return 0; /* is chosen */
        if (storage_check_lost(job, i) < 0)
                return -1;
        if (wants_driver(job, process)) {
                process->storage = VGPU_CHECKPOINT_STORAGE_DRIVER;
                return 0;
        }
        if (!driver.cuCheckpointOperationComplete)
                return do_without(job, i, CHECKPOINT_REASON_OLD_DRIVER, "");
        if (is_in_job(process->pid))
                return do_without(job, i, CHECKPOINT_REASON_JOB, "");
        code = find_bound(job, i, &bound);
        if (code == CUDA_SUCCESS)
                code = transfer_prepare();
        if (code != CUDA_SUCCESS)
                return do_without(job, i,
                                  code == CUDA_ERROR_OUT_OF_MEMORY ? CHECKPOINT_REASON_CONTEXT
                                                                   : CHECKPOINT_REASON_REFUSED,
                                  driver_error_name(code));
        r = make_store(job, i, &bound);
        if (r == -EBUSY)
                return fail_busy(job, i);
        if (r == -EEXIST)
                return fail_stored(job, i);
        if (r < 0) {
                snprintf(detail, sizeof(detail), "%s, %s", size_format(size, bound.sum),
                         strerrordesc_np(-r));
                return do_without(job, i,
                                  is_lack_of_room(r) ? CHECKPOINT_REASON_ROOM
                                                     : CHECKPOINT_REASON_PLACE,
                                  detail);
        }
        process->storage = job->store[i].place;
        process->storage_reason = CHECKPOINT_REASON_NONE;
        return 0;
}

/* Restore. */

static int find_device(const struct job *job, const char *uuid)
{
        char text[DEVICE_UUID_MAX];

        for (unsigned int d = 0; d < job->devices.n; d++)
                if (strcasecmp(device_format_uuid(text, &job->devices.device[d].uuid), uuid) == 0)
                        return (int)d;
        return -1;
}

/* On the devices to which it goes. */
static CUresult retain_targets(struct job *job, const struct store *store)
{
        CUresult code = job_read_devices(job) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;

        for (unsigned int i = 0; i < store->n_parts && code == CUDA_SUCCESS; i++) {
                int d = find_device(job, store->part[i].uuid);

                if (d < 0)
                        return CUDA_ERROR_INVALID_DEVICE;
                code = contexts_retain(job->pairs.n && !job->is_undoing ? job->pairs.to[d]
                                                                        : (unsigned int)d);
        }
        return code == CUDA_SUCCESS ? transfer_prepare() : code;
}

int storage_prepare_restore(struct job *job, int i)
{
        struct checkpoint_wire_process *process = &job->answer.process[i];
        struct store *store = &job->store[i];
        char problem[PATHS_MAX + 128];
        CUresult code;
        int r;

        if (storage_check_lost(job, i) < 0)
                return -1;
        if (store->directory < 0)
                store_find(store, process->pid);
        process->storage = VGPU_CHECKPOINT_STORAGE_DRIVER;
        if (store->state == STORE_NONE && !(job->request->flags & CHECKPOINT_FORCED) &&
            store_is_unknown(process->pid, problem))
                return job_fail(job, i, VGPU_CHECKPOINT_ERROR_STORAGE, "", CUDA_SUCCESS,
                                "be the user who stored it, with the same OPENVGPU_RUN or "
                                "XDG_RUNTIME_DIR; --force leaves it to the driver",
                                "the device memory of process %d was stored in %.200s by somebody "
                                "with another run directory",
                                process->pid, problem);
        if (store->state != STORE_SAVED)
                return 0;
        process->storage = store->place;
        if (!driver.cuCheckpointOperationComplete)
                return job_fail(job, i, VGPU_CHECKPOINT_ERROR_NO_DRIVER, "", CUDA_SUCCESS, "",
                                "the device memory of process %d was stored with a driver of CUDA "
                                "13.4, and this one cannot bring it back",
                                process->pid);
        r = store_check(store, problem, sizeof(problem));
        if (r == -EBUSY)
                return fail_busy(job, i);
        if (r < 0)
                return job_fail(
                        job, i, VGPU_CHECKPOINT_ERROR_STORAGE, "", CUDA_SUCCESS,
                        "put the memory back, for which the process waits; otherwise the process can only be killed",
                        "the device memory of process %d is not there: %.400s", process->pid,
                        problem);
        code = retain_targets(job, store);
        if (code == CUDA_SUCCESS)
                return 0;
        return job_fail(job, i,
                        code == CUDA_ERROR_OUT_OF_MEMORY ? VGPU_CHECKPOINT_ERROR_NO_ROOM
                                                         : VGPU_CHECKPOINT_ERROR_DRIVER_FAILED,
                        "cuDevicePrimaryCtxRetain", code,
                        "free some memory there, or restore on another device",
                        "a device to which process %d goes has no context of ours: %s",
                        process->pid, driver_error_name(code));
}

void storage_drop(struct job *job)
{
        for (uint32_t i = 0; i < job->answer.n_processes; i++)
                if (job->store[i].state == STORE_RESERVED)
                        store_remove(&job->store[i]);
}

void storage_end(struct job *job)
{
        storage_drop(job);
        for (uint32_t i = 0; i < job->answer.n_processes; i++)
                store_deinit(&job->store[i]);
        transfer_release();
        contexts_release();
}
