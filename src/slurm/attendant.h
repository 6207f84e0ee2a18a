/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLURM_ATTENDANT_H
#define SLURM_ATTENDANT_H

/*
 * The attendant: threads of slurmstepd, which Slurm does not stop with the job. When the sentry has SIGTSTP, all vGPUs of
 * the step leave their devices; after SIGCONT they come back. If Slurm makes programs stand still that have something
 * to do for that, they are let run until it is done. docs/slurm.md
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attendant_step {
        const char *run_directory; /* of vgpud; NULL: the usual one */
        const char *const *vgpus;
        size_t n_vgpus;
        uint32_t job;
        uid_t user;
};

/*
 * attendant_start() - until slurmstepd ends
 * @step:  all of it stays where it is
 *
 * Returns the pipe for the sentry (sentry.h), or -1.
 */
int attendant_start(const struct attendant_step *step);

#endif
