/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_FENCE_H
#define MANAGER_FENCE_H

/*
 * The fence: NVIDIA's driver limits, from R615 on, what the processes of a control group hold of a device,
 * whatever library they ask. Each vGPU has such a group (vgpud --kernel-limits), so that its quota holds
 * for programs that go around the gate, too.
 *
 * A program enters the group when `vgpu run` starts it, or when it joins, and its children are born in it.
 * What runs in a container stays in the group that its engine has given it: that group is limited instead.
 *
 * The limit is the quota, and room for a context of each process and of one that is about to start:
 * the driver counts contexts, and a quota does not. It is the same on all devices, so that a vGPU may
 * move, and its programs have no more elsewhere.
 */

#include "daemon/failure.h"

struct fence;
struct manager;

/*
 * fence_new() - from now on, if it was asked for. Where there is no driver or no kernel for it, it says so in the
 * log and in manager->kernel_limits, and that is all. InvalidParameter: the given folder is no control group.
 */
int fence_new(struct fence **ret_fence, struct manager *manager, struct failure *failure);

/* fence_sweep() - once all vGPUs are loaded: remove the groups of those that are gone. */
void fence_sweep(struct fence *fence);

/* fence_free() - the groups stay, for the next manager. Returns NULL. */
struct fence *fence_free(struct fence *fence);

#endif
