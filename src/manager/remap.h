/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_REMAP_H
#define MANAGER_REMAP_H

/*
 * What undoes a release: the guests' memory, of which we hold the descriptors,
 * comes back to its addresses.
 *
 * At best a gate maps it again. But a process that was moved to another device
 * since it started cannot import memory there (driver 580 answers 3): it creates
 * new memory then, and the device's mover copies within the device, which needs
 * as much free memory as the guest has. Until that copy is done the guest is
 * "unfilled" and is never opened; when we die meanwhile, the next manager learns
 * from the gate that its memory was created, and begins again with a release.
 */

struct operation;

/* remap_memory() - of the guests whose context runs. Parts of the operation, which they may fail. */
void remap_memory(struct operation *operation);

#endif
