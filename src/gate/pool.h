/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_POOL_H
#define GATE_POOL_H

/*
 * Memory pools and what is allocated from them in the order of streams, out of mappings of ours.
 *
 * The application's pools are the driver's: we keep a stock (stock.h) for each that we can, and leave to
 * the driver what we cannot do: memory that is captured, and pools that can be exported otherwise than as a
 * descriptor. Of our memory the driver's pools know nothing.
 *
 * A free records an event in its stream. Memory above the release threshold goes back to the driver when
 * the program waits for the device, as the driver does it, and all that is free when memory runs out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/memory.h"
#include "wire/gate.h"

/* As the application says it: @is_per_thread, a handle of 0 is the thread's own stream. */
struct pool_stream {
        CUstream handle;
        bool is_per_thread;
};

/*
 * pool_created() - the driver has made a pool: if we can, allocations from it are ours. pool_ends() - the
 * application destroys one. Before the driver's call: after it, a new pool may have the same handle.
 */
void pool_created(CUmemoryPool pool, const CUmemPoolProps *props);
void pool_ends(CUmemoryPool pool);

/*
 * pool_note_attribute() - the application has set it. pool_get_attribute() - what of it is ours: sizes;
 * otherwise 0.
 */
void pool_note_attribute(CUmemoryPool pool, int attribute, const void *value);
uint64_t pool_get_attribute(CUmemoryPool pool, int attribute);

/* pool_let() - the application has said which devices may use the pool's memory. */
CUresult pool_let(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n);

/* pool_trim() - back to the driver with all that is free, until at most @keep bytes are left. */
void pool_trim(CUmemoryPool pool, uint64_t keep);

/* pool_allocate() - @pool NULL: the current one of the device. False: ask the driver. */
bool pool_allocate(CUdeviceptr *ret_address, size_t size, CUmemoryPool pool,
                   struct pool_stream stream, CUresult *ret_result);

/*
 * pool_free() - in the order of @stream; NULL: nobody uses it any more. False: there is no such allocation,
 * or its stream is captured; ask the driver.
 */
bool pool_free(CUdeviceptr address, const struct pool_stream *stream, CUresult *ret_result);

/* pool_find() - find the allocation that has @address. False: none of ours has it. */
bool pool_find(CUdeviceptr address, struct memory_info *ret_info);

/*
 * pool_export() - a ticket for the pool, as a descriptor for the caller. False: it is none of ours, or cannot be
 * exported; ask the driver. pool_export_pointer() - false: there is no such allocation of ours.
 */
bool pool_export(CUmemoryPool pool, int *ret_fd, CUresult *ret_result);
bool pool_export_pointer(CUdeviceptr address, struct gate_ticket *ret_ticket, CUresult *ret_result);

/* pool_is_exportable() - is it one of which our memory can be exported? */
bool pool_is_exportable(CUmemoryPool pool);

/*
 * What this process has exported itself. pool_has_exported() - a pool of this name. pool_find_exported() - where the
 * piece called @name is that has an allocation @offset bytes behind its start.
 */
bool pool_has_exported(const uint8_t name[GATE_NAME_SIZE]);
bool pool_find_exported(const uint8_t name[GATE_NAME_SIZE], uint64_t offset,
                        CUdeviceptr *ret_piece);

/* pool_give_back() - the program has waited: what is above the thresholds goes back to the driver. */
void pool_give_back(void);

/* Streams that are about to end: their handle may soon be another one's. */
void pool_drop_stream(const void *stream);

/* pool_drop_context() - @context has ended, and its events with it; with idle_hold(). */
void pool_drop_context(CUcontext context);

/* pool_outlive_context() - @context has ended, a part of @whole, and its events have not; with idle_hold(). */
void pool_outlive_context(CUcontext context, CUcontext whole);

/* pool_drop_all() - the last context has ended, and what was allocated with it. */
void pool_drop_all(void);

#endif
