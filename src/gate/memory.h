/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_MEMORY_H
#define GATE_MEMORY_H

/*
 * The application's allocations: memory that cuMemAlloc() returns and cuMemFree() takes.
 *
 * From MEMORY_LARGE on an allocation has a mapping of its own, rounded up to the driver's 2 MiB;
 * a smaller one comes out of a block that it shares with others of its context. At 1 MiB rounding
 * up wastes at most what a block with a single allocation in it would.
 *
 * No lock is held while the driver is called.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/mapping.h"

#define MEMORY_LARGE ((uint64_t)1 << 20)

/* memory_allocate() - allocate @size > 0 bytes in the current context. */
CUresult memory_allocate(CUdeviceptr *ret_address, uint64_t size);

/*
 * memory_free() - give back the allocation that starts at @address, once the device is done with
 * it. False: there is no such allocation, ask the driver.
 */
bool memory_free(CUdeviceptr address, CUresult *ret_result);

struct memory_info {
        CUdeviceptr start; /* of the allocation */
        uint64_t size;     /* as the application asked */
        CUcontext context;
        uint64_t buffer_id;
        CUmemoryPool pool; /* or NULL */
        int handle_types;  /* as what the pool can be exported */
};

/* memory_find() - find the allocation that has @address. False: none of ours has it. */
bool memory_find(CUdeviceptr address, struct memory_info *ret_info);

/* memory_is_unallocated() - does @address lie in our memory, but in no allocation? */
bool memory_is_unallocated(CUdeviceptr address);

/*
 * memory_register() - there is a dma-buf of the range: its mappings stay where they are until they
 * are freed, and the process holds GATE_HOLDS_REGISTERED. False: none of it is ours.
 */
bool memory_register(CUdeviceptr address, uint64_t size);

/* memory_set_sync_memops() - remember the attribute, to set it again after a move. */
void memory_set_sync_memops(CUdeviceptr address, bool on);

/* memory_drop_context() - drop the allocations of @context, which is gone. */
void memory_drop_context(CUcontext context);

/* memory_grant() - apply a change of peer access to @device. */
CUresult memory_grant(CUdevice device);

/*
 * The movable mappings, for the agent while the gate is closed: nothing is added or removed then.
 * memory_movable() returns the first that ends behind *@from and moves *@from to its end; NULL: no
 * more.
 */
struct mapping *memory_movable(uint64_t *from);
struct mapping *memory_movable_find(CUdeviceptr address);

/*
 * memory_create_physical() - the memory of @physical, which the application makes and maps itself. It is
 * charged. memory_end(): nobody has it any more. memory_pin(): it can be moved no longer.
 */
CUresult memory_create_physical(struct physical *physical, CUdevice device, uint64_t size);
void memory_end(struct mapping *mapping);
void memory_pin(struct mapping *mapping);

/*
 * memory_set_reserve() - what may be given back when memory runs out. reclaim(): do so; @is_patient: wait for what
 * streams are about to free. False: there was nothing. count(): so many bytes at most.
 */
struct memory_reserve {
        bool (*reclaim)(bool is_patient);
        uint64_t (*count)(void);
};
void memory_set_reserve(const struct memory_reserve *reserve);

/*
 * memory_make_room() - there was too little for @bytes on @device that are not ours to make: give back what lies idle.
 * True: it may be enough now. @n_tries, 0 at first, is how often that was so; the second time it waits.
 */
bool memory_make_room(CUdevice device, uint64_t bytes, unsigned int *n_tries);

/*
 * memory_create_chunk() - memory for a pool, mapped; memory_end() ends it. @is_patient: wait until streams have
 * freed theirs, and others have left. memory_set_chunk() - which chunk of the pool's stock it is, or NULL, for
 * memory_chunk_at().
 */
struct stock_chunk;
CUresult memory_create_chunk(struct mapping **ret_mapping, CUdevice device, uint64_t size,
                             bool is_patient);
void memory_set_chunk(struct mapping *mapping, struct stock_chunk *chunk);
struct stock_chunk *memory_chunk_at(CUdeviceptr address);

/* memory_let() - let the devices of @peers use it, too; each is a bit. */
CUresult memory_let(struct mapping *mapping, uint64_t peers);

/*
 * Names of what is exported (offer.h). memory_name_at() - what a ticket says of the allocation that @pointer lies
 * in; false: there is none. memory_find_named() - NULL: nothing bears @name. The caller sees to it that it stays.
 */
bool memory_name_at(CUdeviceptr pointer, struct gate_ticket *ticket);
struct mapping *memory_find_named(const uint8_t name[GATE_NAME_SIZE]);

#endif
