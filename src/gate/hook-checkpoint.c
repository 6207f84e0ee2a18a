/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own checkpoint. In a vGPU it is the manager's, whose mover has no gate: a program that restores a process
 * could move it to a device that is not its vGPU's, and one that has itself checkpointed would keep its vGPU from
 * being suspended. To ask for the state of a process is free to all.
 */
#include "gate/entry.h"
#include "gate/settings.h"

CUresult our_cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
        return settings.is_in_vgpu ? CUDA_ERROR_NOT_SUPPORTED
                                   : DRIVER(cuCheckpointProcessLock)(pid, args);
}

CUresult our_cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
        return settings.is_in_vgpu ? CUDA_ERROR_NOT_SUPPORTED
                                   : DRIVER(cuCheckpointProcessCheckpoint)(pid, args);
}

CUresult our_cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
        return settings.is_in_vgpu ? CUDA_ERROR_NOT_SUPPORTED
                                   : DRIVER(cuCheckpointProcessRestore)(pid, args);
}

CUresult our_cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
        return settings.is_in_vgpu ? CUDA_ERROR_NOT_SUPPORTED
                                   : DRIVER(cuCheckpointProcessUnlock)(pid, args);
}
