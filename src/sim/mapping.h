/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_MAPPING_H
#define SIM_MAPPING_H

/*
 * A mapping: a memory file at an address of this process.
 *
 * Device pointers are addresses of the process, so that a copy is a memcpy(). A mapping is made
 * without access; mapping_set_access() says which devices may use it (bit N: ordinal N).
 *
 * Calls are made with the process' lock held.
 */

#include "sim/memory-file.h"

struct mapping {
        struct mapping *next, **link; /* process.mappings */
        uint64_t address;
        uint64_t size;
        struct memory_file *file;
        uint32_t readers, writers; /* ordinals that may */
        bool is_in_reservation;    /* the address is somebody else's */
};

/* mapping_create() - map at @address; 0: choose an address, aligned to MEMORY_PAGE. */
CUresult mapping_create(struct mapping **ret_mapping, struct memory_file *file, uint64_t address);
struct mapping *mapping_free(struct mapping *mapping);
DEFINE_CLEANUP(struct mapping *, mapping_free);

CUresult mapping_set_access(struct mapping *mapping, uint32_t readers, uint32_t writers);

/* mapping_reserve() - reserve addresses without memory, at @hint if they are free there. */
CUresult mapping_reserve(uint64_t *ret_address, uint64_t size, uint64_t alignment, uint64_t hint);
void mapping_unreserve(uint64_t address, uint64_t size);

/* Checkpoint: keep the addresses, drop the memory; and put it back. */
void mapping_take_off(struct mapping *mapping);
CUresult mapping_put_back(struct mapping *mapping);

#endif
