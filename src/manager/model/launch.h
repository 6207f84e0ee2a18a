/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_LAUNCH_H
#define MANAGER_LAUNCH_H

/*
 * Launch: a program that 'vgpu run' has started in a vGPU and that has not come to CUDA yet.
 *
 * It has no gate, and may never have one. But its user sees a program in the vGPU: it is counted, and
 * the vGPU is not removed from under it. Known from PrepareRun until it joins as a guest or ends; a
 * manager that starts anew knows nothing of it, and hears of it when it joins.
 */

#include <sys/types.h>

#include "base/list.h"
#include "daemon/failure.h"
#include "manager/model/account.h"

struct instance;
typedef struct sd_event_source sd_event_source;

struct launch {
        struct list link; /* in instance->launches */
        pid_t pid;
        sd_event_source *source; /* its end; owns the pidfd */
        struct account_charge charge;
};

/* launch_add() - the process @pid of @uid becomes such a program; one that is known is not added again. */
int launch_add(struct instance *instance, pid_t pid, uid_t uid, struct failure *failure);

/* launch_drop() - @pid is a guest now, or never became the program. */
void launch_drop(struct instance *instance, pid_t pid);

void launch_drop_all(struct instance *instance);

#endif
