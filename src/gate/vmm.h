/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_VMM_H
#define GATE_VMM_H

/*
 * The memory that the application makes with the virtual-memory calls: its handles, and the places
 * where it is mapped ("views").
 *
 * Physical memory lives as long as a handle or a view of it does, so both are counted. What can be
 * handed to other processes has handle numbers of ours, so that the memory behind them can be let
 * go and made anew: memory that this process created is backed by a mapping (mapping.h), whose
 * address only names it; imported memory has an import (import.h). All other memory keeps the
 * driver's numbers, and the driver's own checkpoint moves it.
 *
 * No lock is held while the driver is called.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/physical.h"
#include "wire/gate.h"

/* vmm_new() - make one with one user, the caller. NULL: no memory. */
struct physical *vmm_new(void);

/* vmm_add_user(), vmm_drop() - count one user more or fewer; it ends with the last. */
void vmm_add_user(struct physical *physical);
void vmm_drop(struct physical *physical);

/*
 * vmm_add_handle() - the caller's use becomes a handle with this number; 0: one of ours. Errors:
 * -ENOMEM, and the use remains the caller's.
 */
int vmm_add_handle(struct physical *physical, CUmemGenericAllocationHandle *number);

/* vmm_find_handle() - find the memory behind @number; the caller uses it until vmm_drop(). NULL: unknown. */
struct physical *vmm_find_handle(CUmemGenericAllocationHandle number);

/* vmm_take_handle() - the handle's use becomes the caller's. NULL: unknown. */
struct physical *vmm_take_handle(CUmemGenericAllocationHandle number);

/* vmm_find_behind() - find the memory mapped at @address; the caller uses it, too. NULL: unknown. */
struct physical *vmm_find_behind(CUdeviceptr address);

/* vmm_find_named() - find memory that this process created and exported as @name; the caller uses it, too. */
struct physical *vmm_find_named(const uint8_t name[GATE_NAME_SIZE]);

/* vmm_is_ours() - is this a number that the gate gives out, and no driver? */
bool vmm_is_ours(CUmemGenericAllocationHandle number);

/* vmm_real() - return the driver's handle for the application's @number. */
CUmemGenericAllocationHandle vmm_real(const struct physical *physical,
                                      CUmemGenericAllocationHandle number);

/* Views. vmm_add_view() takes the caller's use; vmm_settle_views() drops those of what is unmapped. */
void vmm_add_view(struct view *view, CUdeviceptr address, struct physical *physical);
struct view *vmm_take_views(CUdeviceptr address, uint64_t size);
void vmm_settle_views(struct view *views, CUresult result);
void vmm_note_access(CUdeviceptr address, uint64_t size, const CUmemAccessDesc *access, size_t n);
void vmm_note_sync_memops(CUdeviceptr address, bool on);

/* vmm_register() - note that others use what is mapped in this range: @holds. False: there are no views. */
bool vmm_register(CUdeviceptr address, uint64_t size, uint32_t holds);

/* vmm_hold() - note that it cannot be moved any more, because of @holds. */
void vmm_hold(struct physical *physical, uint32_t holds);

/* vmm_track() - list it: it has its mapping or its import now. */
void vmm_track(struct physical *physical);

/* vmm_next_import() - return the one behind @after (NULL: the first); for the agent while the gate is closed. */
struct physical *vmm_next_import(const struct physical *after);
uint32_t vmm_count_imports(void);

/* vmm_may_import() - is there less of others' memory than the manager puts up with? */
bool vmm_may_import(void);

/* vmm_uses() - does this process have memory of @process? */
bool vmm_uses(const struct gate_process *process);

/* vmm_list_used() - list the processes whose memory this one has; up to @max, each once. */
uint32_t vmm_list_used(struct gate_process *ret_used, uint32_t max);

#endif
