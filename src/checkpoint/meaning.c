/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains codes in words. The documentation names fewer codes than drivers answer. The meaning of each
 * was measured on driver 580, or reported by users of other drivers.
 */

#include "checkpoint/meaning.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define ANY_CALL ""

#define HINT_KILL "the process can only be killed"

static const struct {
        const char *call;
        CUresult code;
        struct meaning meaning;
} table[] = {
        { ANY_CALL,
          CUDA_ERROR_NOT_INITIALIZED,
          { VGPU_CHECKPOINT_ERROR_NO_CUDA, "has no CUDA", "it has not called cuInit() (yet)" } },
        { ANY_CALL,
          CUDA_ERROR_ILLEGAL_STATE,
          { VGPU_CHECKPOINT_ERROR_WRONG_STATE, "is in the wrong state for this action",
            "ask for its state; suspend and resume work from any state" } },
        { "cuCheckpointProcessLock",
          CUDA_ERROR_NOT_READY,
          { VGPU_CHECKPOINT_ERROR_TIMED_OUT, "did not end its work in time and continues",
            "give it more time; a kernel that never ends, or that waits for another locked process, will never end in time" } },
        { "cuCheckpointProcessLock",
          CUDA_ERROR_NOT_SUPPORTED,
          { VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED, "cannot be locked by the driver",
            "a process in which a profiler (CUPTI: torch.profiler, Nsight) was used once can never be saved" } },
        { "cuCheckpointProcessCheckpoint",
          CUDA_ERROR_NOT_SUPPORTED,
          { VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED, "holds what the driver cannot save",
            "managed memory (before driver 595, anything on Arm) cannot be saved" } },
        { "cuCheckpointProcessCheckpoint",
          CUDA_ERROR_OUT_OF_MEMORY,
          { VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, "cannot be saved",
            "the GPU or the host had no memory left for it, or it is a MIG device; if it was the GPU, the driver never checkpoints this process again, which works on" } },
        { "cuCheckpointProcessCheckpoint",
          CUDA_ERROR_UNKNOWN,
          { VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, "cannot be saved",
            "if an earlier checkpoint of it failed with 2, the driver never checkpoints it again" } },
        { "cuCheckpointProcessRestore",
          CUDA_ERROR_OUT_OF_MEMORY,
          { VGPU_CHECKPOINT_ERROR_LOST, "did not fit on its device, and can never be restored",
            "after this, the driver never restores the process: " HINT_KILL } },
        { "cuCheckpointProcessRestore",
          CUDA_ERROR_NOT_SUPPORTED,
          { VGPU_CHECKPOINT_ERROR_LOST, "held what the driver cannot restore",
            "memory that was imported from another process: " HINT_KILL } },
        { "cuCheckpointProcessRestore",
          CUDA_ERROR_INVALID_VALUE,
          { VGPU_CHECKPOINT_ERROR_INVALID, "cannot be restored onto these devices",
            "it may have been checkpointed with other devices than those that are here" } },
        { "cuCheckpointProcessRestore",
          CUDA_ERROR_NOT_PERMITTED,
          { VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, "may not be restored",
            "the driver wants persistence mode: nvidia-smi -pm 1" } },
        { ANY_CALL,
          CUDA_ERROR_NOT_SUPPORTED,
          { VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED, "cannot be checkpointed by this driver", "" } },
};

static const struct meaning no_process = { VGPU_CHECKPOINT_ERROR_NO_PROCESS, "has ended", "" };

static const struct meaning died = { VGPU_CHECKPOINT_ERROR_LOST, "died",
                                     "a process in a loop of cuCtxSynchronize dies of the driver's "
                                     "checkpoint: run it in a vGPU and use 'vgpu suspend'" };

static const struct meaning forbidden = { VGPU_CHECKPOINT_ERROR_PERMISSION,
                                          "may not be controlled by you",
                                          "be root, or its user with the right to trace it "
                                          "(CAP_SYS_PTRACE, kernel.yama.ptrace_scope)" };

static const struct meaning other = { VGPU_CHECKPOINT_ERROR_DRIVER_FAILED, "failed in the driver",
                                      "" };

/* What the driver wants of the caller: to attach to the process. */
static bool is_forbidden(int pid)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[32];

        snprintf(path, sizeof(path), "/proc/%d/mem", pid);
        fd = open(path, O_RDWR | O_CLOEXEC);
        return fd < 0 && (errno == EACCES || errno == EPERM);
}

struct meaning meaning_find(const char *call, CUresult code, int pid, bool is_dead,
                            int state_before)
{
        if (is_dead)
                return state_before < 0 ? no_process : died;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
                if (table[i].code == code &&
                    (*table[i].call == '\0' || strcmp(table[i].call, call) == 0))
                        return table[i].meaning;
        if (state_before < 0 && is_forbidden(pid))
                return forbidden;
        return other;
}
