/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_UNDO_RELEASE_H
#define MANAGER_UNDO_RELEASE_H

/*
 * What undoes a release: the guests' memory, of which we hold the descriptors,
 * comes back to its addresses.
 *
 * At best a gate maps it again. But a process that was moved to another device
 * since it started cannot import memory there (driver 580 answers 3): it creates
 * new memory then, and the device's mover copies within the device. There need not
 * be room for all of that twice, so it comes in parts, in the order of addresses:
 * a few allocations are created, filled, and what they were filled from is let go.
 * Where there is no room for one single allocation twice, its contents wait in the
 * pool ("parked") while its old memory goes and the new one is made.
 *
 * So each allocation is exported, parked, or back, and the descriptors in the
 * keeper say which (recovery.h). Until all are back the gate is not opened; when we
 * die meanwhile, the next manager goes on: it has those that are not back released,
 * for they may be created and not filled, and begins with the first of them.
 */

#include <stdbool.h>

struct guest;
struct operation;

/* undo_release() - of the guests whose context runs. Parts of the operation, which they may fail. */
void undo_release(struct operation *operation);

#endif
