/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLURM_SENTRY_H
#define SLURM_SENTRY_H

/*
 * The sentry: a process of the job that does nothing but pass on the signals that Slurm sends to suspend a job and
 * to continue it. What is to be done then, the attendant does, which Slurm does not stop. docs/slurm.md
 */

#include <sys/types.h>

/* A notice of the sentry, written at once. It is the word of a user's process: no right comes of it. */
struct sentry_notice {
        int signal; /* SIGTSTP, SIGCONT; 0, once: it is there */
        pid_t pid;  /* of the sentry */
};

/*
 * sentry_start() - in a task, before its program: a sibling of it
 * @pipe:  for struct sentry_notice; closed by what the task executes
 *
 * Returns 0, or -1 if there is none.
 */
int sentry_start(int pipe);

#endif
