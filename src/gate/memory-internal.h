/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_MEMORY_INTERNAL_H
#define GATE_MEMORY_INTERNAL_H

/* For memory*.c. */

#include <pthread.h>

#include "gate/memory.h"

/* Of the list of blocks, of the table of mappings and of all that is in them. */
extern pthread_mutex_t memory_lock;

/* memory_find_locked() - the mapping of the allocation around @address, and where in it; NULL: there is none. */
struct mapping *memory_find_locked(CUdeviceptr address, struct memory_info *ret_info);

/*
 * memory_make_patiently() - a mapping with address and memory, in the table, where it is not yet an allocation. When
 * memory runs out, first what lies idle is used, then what streams are about to free, then what others leave for it.
 */
CUresult memory_make_patiently(struct mapping **ret_mapping, CUcontext context, CUdevice device,
                               uint64_t size, struct physical *physical);

/* memory_discard_spares() - the empty blocks of @context. False: there was none. */
bool memory_discard_spares(CUcontext context);

/* memory_displace() - out of the table, which makes its address free for the next. */
void memory_displace(const struct mapping *mapping);

/* memory_give_up() - the driver could not unmap it, and nobody can free it any more: its address stays busy. */
void memory_give_up(struct mapping *mapping);

#endif
