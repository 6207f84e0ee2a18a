/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COPY_HASHES_H
#define MANAGER_COPY_HASHES_H

/* The hashes of a copy out: what its movers are told of what the pool has, and tell of what it has then. */

#include <stdbool.h>

struct guest;
struct guest_job;
struct job_lists;
struct mover_done;
struct mover_job;
struct operation;

bool copy_hashes_must_verify(const struct operation *operation);

/* copy_hashes_begin() - a step, before the jobs. */
int copy_hashes_begin(struct guest *guest);

/* copy_hashes_begin_live() - the same while the guest runs. Errors: -EOPNOTSUPP (not made of blocks). */
int copy_hashes_begin_live(struct guest *guest);

/* copy_hashes_tell() - to @job, those of the blocks of @own. Errors: -ENOMEM. */
int copy_hashes_tell(struct guest_job *own, struct mover_job *job, const struct job_lists *lists);

/* copy_hashes_note() - what its mover has told of them. */
void copy_hashes_note(struct guest_job *job, const struct mover_done *done);
void copy_hashes_note_live(struct guest_job *job, const struct mover_done *done);

#endif
