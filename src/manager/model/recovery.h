/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RECOVERY_H
#define MANAGER_RECOVERY_H

/*
 * What the next manager must find: descriptors in the keeper, facts in the store;
 * docs/recovery.md says what of it at which step.
 *
 * Labels in the keeper:
 *
 *     page/VGPU                      an instance page
 *     memory/VGPU/PID/ADDRESS/SIZE   device memory that a guest exported and has let go
 *     parked/VGPU/PID/ADDRESS/SIZE   a slab: the contents of that are in the guest's reservation now
 *     slab/NUMBER                    a slab of the pool with somebody's memory in it
 *     spilled/VGPU/PID/GENERATION    a file of the spill with the memory of that process
 *
 *     plan/VGPU/PID                  how to let a process on its device again (channels/plan.h)
 *     process/VGPU/PID               what that is done with
 *
 * VGPU is the instance's UUID, PID and NUMBER are decimal, ADDRESS and SIZE
 * hexadecimal. Other slabs are not kept: what is empty is not worth saving.
 */

#include <stddef.h>
#include <stdint.h>

struct guest;
struct instance;
struct manager;
struct place;

int recovery_put_pages(struct instance *instance);
void recovery_drop_pages(struct instance *instance);

/* recovery_get_pages() - adopt the kept pages; or make those that are not there (a new boot). */
int recovery_get_pages(struct instance *instance);

/* recovery_store_process() - what the store says about the process is brought up to date. */
int recovery_store_process(struct guest *guest);

/*
 * recovery_store_instance() - all that the store says of @instance is brought up to date at once. When it
 * is on its device nothing is left there of memory that went off it; then that is let go. Errors: the
 * store's, and nothing has changed.
 */
int recovery_store_instance(struct instance *instance);

/* recovery_put_state() - its state, and where it is; also within a transaction. */
int recovery_put_state(const struct instance *instance, uint32_t state, const struct place *place);

/* recovery_put_memory() - the exported memory, and its list in the store with its extents. */
int recovery_put_memory(struct guest *guest);

/* recovery_store_memory() - only the list and the extents. */
int recovery_store_memory(const struct guest *guest);

/* recovery_drop_memory() - out of the keeper; what the store knows stays. */
void recovery_drop_memory(struct guest *guest);

/*
 * recovery_drop_sources() - let go of what it exported, in the keeper too, as it is off the device for good;
 * the list stays.
 */
void recovery_drop_sources(struct guest *guest);

/* recovery_drop_part() - the same for allocations @first to @first + @n - 1. */
void recovery_drop_part(struct guest *guest, size_t first, size_t n);

/*
 * recovery_put_parked() - the contents of these allocations are in the reservation, which is kept and
 * stored already; their descriptors are dropped.
 */
int recovery_put_parked(struct guest *guest, size_t first, size_t n);

/* recovery_put_plan() - the keeper carries it out when we die. */
int recovery_put_plan(const struct guest *guest, int plan, int process);
void recovery_drop_plan(const struct guest *guest);

/* recovery_put_slabs() - the slabs of its reservation. */
int recovery_put_slabs(struct guest *guest);

/* recovery_sync_slabs() - drop those that hold nobody's memory any more. */
void recovery_sync_slabs(struct manager *manager);

#endif
