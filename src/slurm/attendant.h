/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLURM_ATTENDANT_H
#define SLURM_ATTENDANT_H

/*
 * The attendant: a process beside a task, which takes the signals that Slurm sends to suspend and to continue
 * a job. At SIGTSTP it suspends the vGPU, after SIGCONT it resumes it. docs/slurm.md
 */

/*
 * attendant_start() - as a child of the calling task, with which it ends
 * @run_directory:  of vgpud; NULL: the usual one
 *
 * Returns 0, or -1 if there is none.
 */
int attendant_start(const char *run_directory, const char *vgpu);

#endif
