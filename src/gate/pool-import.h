/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_POOL_IMPORT_H
#define GATE_POOL_IMPORT_H

/*
 * Pools that another process has exported (pool-export.c), and pointers to their memory.
 *
 * To the application an imported pool is one of the driver's, from which nothing is allocated. Who imports a pointer
 * imports the whole piece that the allocation lies in, as by legacy IPC (hook-ipc.c); pointers in one piece share it.
 * Each import of a pointer is freed once. A free in the order of a stream records an event there and does not wait;
 * the piece goes when no pointer into it is left and all these events are done: in a call in which the program waits,
 * frees or imports, soon after that by the agent, and before the gate has closed. Not while anything is captured.
 *
 * What this process has exported itself it gets as it is: the same pointer, to be freed once more.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/memory.h"
#include "gate/pool.h"
#include "wire/gate.h"

/* pool_import() - the pool of @ticket; any ticket will do, and one of something else is an error. */
CUresult pool_import(CUmemoryPool *ret_pool, const struct gate_ticket *ticket);

/* pool_import_has() - is it one of these? pool_import_end() - the application destroys it; its pointers stay. */
bool pool_import_has(CUmemoryPool pool);
void pool_import_end(CUmemoryPool pool);

/* pool_import_pointer() - of @pool, which is imported. Errors: CUDA_ERROR_INVALID_VALUE, of another; of import_open(). */
CUresult pool_import_pointer(CUdeviceptr *ret_pointer, CUmemoryPool pool,
                             const struct gate_ticket *ticket);

/* pool_import_let() - which devices may use the pool's memory; nothing of a pool that is not imported. */
CUresult pool_import_let(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n);

/* pool_import_get_attribute() - of sizes: what was imported, and the pieces that it lies in; otherwise 0. */
uint64_t pool_import_get_attribute(CUmemoryPool pool, int attribute);

/*
 * pool_import_free() - in the order of @stream; NULL: nobody uses it any more. False: it is no imported pointer, or
 * its stream is captured; ask the driver.
 */
bool pool_import_free(CUdeviceptr address, const struct pool_stream *stream, CUresult *ret_result);

/* pool_import_find() - find the imported allocation that has @address. pool_import_overlaps() - any piece? */
bool pool_import_find(CUdeviceptr address, struct memory_info *ret_info);
bool pool_import_overlaps(CUdeviceptr address, uint64_t size);

/* pool_import_give_back() - let go of the pieces that nobody uses any more. True: streams still use some. */
bool pool_import_give_back(void);

/* pool_import_settle() - the same for the agent, when the gate has closed and no work is under way. */
void pool_import_settle(void);

/* As those of pool.h. pool_import_drop_context() comes before pool_drop_context(), which ends unused marks. */
void pool_import_drop_stream(const void *stream);
void pool_import_drop_context(CUcontext context);
void pool_import_outlive_context(CUcontext context, CUcontext whole);
void pool_import_drop_all(void);

#endif
