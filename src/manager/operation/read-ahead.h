/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_READ_AHEAD_H
#define MANAGER_READ_AHEAD_H

/*
 * Memory comes back from the disk of the spill before its vGPU does, so that the vGPU does not wait for the disk, where
 * the pool has room that is of no use for anything else: first that of vGPUs which wait for their turn, in their order,
 * then of those which left last. One process at a time (model/reading.h), and not while something else needs the disk
 * or a move could need the pool to be undone.
 */

struct manager;

void read_ahead_subscribe(struct manager *manager);

/* read_ahead_end() - at the end of vgpud. */
void read_ahead_end(struct manager *manager);

#endif
