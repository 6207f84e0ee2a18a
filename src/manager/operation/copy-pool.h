/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_COPY_POOL_H
#define MANAGER_COPY_POOL_H

/* What a copy (copy-way.h) does with the guest's part of the pool: its steps before the movers work and after. */

struct guest;
struct operation;

/* copy_pool_begin_wait() .. - a copy waits for the pool: the operation counts how long one did. */
void copy_pool_begin_wait(struct operation *operation);
void copy_pool_end_wait(struct operation *operation);

/* copy_pool_be_lone() - what others hold is never written to. */
int copy_pool_be_lone(struct guest *guest);

/* copy_pool_prepare() - the slabs are ready on the jobs' devices, if the way goes by the pool. */
int copy_pool_prepare(struct guest *guest);

/* copy_pool_keep_once() - all that the reservation is to have is there, and nothing twice. */
int copy_pool_keep_once(struct guest *guest);

/* copy_pool_stamp() - the copy out is complete: only now, and for this process alone, it may be copied in. */
int copy_pool_stamp(struct guest *guest);

#endif
