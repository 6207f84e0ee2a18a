/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COPY_FAIL_H
#define MANAGER_COPY_FAIL_H

struct guest_job;
struct mover_done;

/* copy_fail() - @job has failed, and with it the operation, by what its mover said in @done, if that is not NULL. */
void copy_fail(struct guest_job *job, int error, const struct mover_done *done);

#endif
