/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLURM_STANDSTILL_H
#define SLURM_STANDSTILL_H

/*
 * Processes of a job that Slurm has made stand still, and that must run a moment longer so that their vGPU can leave its
 * device. Slurm stops them with SIGSTOP, or freezes the control group of the step (proctrack/cgroup). From a frozen group no
 * single process can be let out: then all others of it are stopped with SIGSTOP, and the group is thawed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct standstill {
        uint32_t job;  /* no other control group is thawed */
        uid_t user;    /* no process of another one is touched */
        pid_t sentry;  /* is left as Slurm wants it: it tells of the end. 0: not known */
        int *pidfds;   /* of those that were continued or stopped */
        bool *is_free; /* of each: it may run until standstill_restore() */
        size_t n, n_allocated;
};

/* standstill_has_begun() - does this process stand still? */
bool standstill_has_begun(pid_t pid);

/* standstill_lift() - let this process run. Again and again: Slurm may stop it at any time. */
void standstill_lift(struct standstill *standstill, pid_t pid);

/* standstill_restore() - those that were let run stand still again. */
void standstill_restore(struct standstill *standstill);

/* standstill_end() - Slurm continues the job: nobody stands still because of us. Frees what there is. */
void standstill_end(struct standstill *standstill);

#endif
