/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_WRITE_AHEAD_H
#define MANAGER_WRITE_AHEAD_H

/*
 * Memory of vGPUs with a place on the disk (model/backing.h) goes there before somebody needs its room in the pool, so
 * that who leaves an overcommitted device does not wait for the disk: the coldest first, one vGPU at a time, and only
 * until the largest of those that are on a device finds room.
 */

struct manager;

void write_ahead_subscribe(struct manager *manager);

/* write_ahead_end() - at the end of vgpud. */
void write_ahead_end(struct manager *manager);

#endif
