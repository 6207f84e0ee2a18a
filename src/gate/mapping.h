/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_MAPPING_H
#define GATE_MAPPING_H

/*
 * A mapping: one piece of exportable physical memory at one fixed address. It backs one large
 * allocation, or a block of small ones. Its memory is handed away and brought back; the address
 * stays reserved in the meantime. The physical memory that the application makes itself has one too:
 * its address only names it, and the application maps it elsewhere.
 *
 * Addresses come from the arena, one large reservation: within it the driver keeps its page tables,
 * which makes an allocation of 32 MiB and its end 30 % faster than with a reservation each (57 us
 * against 82; cuMemAlloc takes 67).
 *
 * The table of all mappings is an array, sorted by address. Insertion moves half of it, a few
 * microseconds for ten thousand mappings (20 GiB at least), and a look-up touches few cache lines.
 * The caller of the table's functions holds memory.c's lock.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/block.h"
#include "wire/gate.h"

struct physical;
struct stock_chunk;

struct mapping {
        CUdeviceptr address;
        uint64_t size;      /* multiple of the driver's granularity */
        uint64_t requested; /* by the application; 0 for a block */
        CUdevice device;
        CUcontext context; /* current when it was made; its end ends the allocation */
        CUmemGenericAllocationHandle handle;
        bool has_memory;      /* false between RELEASE and CREATE or MAP */
        bool is_touched;      /* by a step that may still be undone */
        bool is_leaving;      /* being freed: it only keeps its address busy */
        bool is_outside;      /* of the arena: the address is a reservation of its own */
        bool is_stuck;        /* it could not be made, and not be unmapped either */
        bool is_pinned;       /* cannot be moved by us */
        bool is_registered;   /* there is a dma-buf of it, which is why */
        bool sync_memops;     /* an attribute that is lost with the physical memory */
        bool is_imported;     /* its handle cannot be exported again: */
        int imported_fd;      /* this can, where it is kept; or -1 */
        atomic_bool is_named; /* tickets for it were given out; also read without the lock: */
        uint8_t name[GATE_NAME_SIZE];
        struct physical
                *physical; /* NULL, or what the application has made, mapped where it says: vmm.h */
        uint64_t buffer_id;        /* changes with the memory: caches of registrations go by it */
        uint64_t peers;            /* a bit for each device that may use it whatever peer.h says */
        struct stock_chunk *chunk; /* NULL, or what a pool has of it */
        struct block *block;
        struct mapping *next_block; /* in memory.c's list of blocks */
};

/*
 * mapping_new() - @size bytes of @device, charged to the quota, as yet without address and memory.
 * NULL: over the quota, or malloc() failed. mapping_free() wants it out of the table again; it
 * takes NULL.
 */
struct mapping *mapping_new(CUcontext context, CUdevice device, uint64_t size);
void mapping_free(struct mapping *mapping);

/* mapping_is_possible() - can @device back allocations with exportable memory? */
bool mapping_is_possible(CUdevice device);

/*
 * Steps of a move; each leaves the mapping as it was when it fails, and names the failed call.
 * release hands the physical memory back to the driver; the others need a mapping without memory.
 * attach takes @fd, and leaves -1, where it will be needed again: that of a large mapping, and all that
 * are @is_given. A process has too few descriptors for all of them; small ones are copied to new memory
 * when they are exported.
 */
CUresult mapping_unmap(struct mapping *mapping, const char **ret_call);
CUresult mapping_map_again(struct mapping *mapping, const char **ret_call);
void mapping_release(struct mapping *mapping);
CUresult mapping_create(struct mapping *mapping, const char **ret_call);
CUresult mapping_attach(struct mapping *mapping, int *fd, bool is_given, const char **ret_call);

/* mapping_is_plain() - is its memory like any other of its size and device? */
bool mapping_is_plain(const struct mapping *mapping);

/*
 * mapping_make_own() - so that it can be exported: what was imported is copied to memory of our own, while
 * nobody uses it. mapping_is_exportable() - it is already.
 */
bool mapping_is_exportable(const struct mapping *mapping);
CUresult mapping_make_own(struct mapping *mapping, const char **ret_call);

/* mapping_export() - make a descriptor of its memory, for the caller. */
CUresult mapping_export(const struct mapping *mapping, int *ret_fd, const char **ret_call);

/* mapping_grant() - let the permitted devices use it, after the permissions have changed. */
CUresult mapping_grant(const struct mapping *mapping);

/*
 * The table. mapping_table_place() gives a mapping an address in the arena, the lowest that is
 * free; mapping_table_insert() takes one that has an address. @at counts in the order of addresses.
 */
int mapping_table_place(struct mapping *mapping);  /* Errors: -ENOMEM, no room */
int mapping_table_insert(struct mapping *mapping); /* Errors: -ENOMEM */
void mapping_table_remove(const struct mapping *mapping);
struct mapping *mapping_table_find(CUdeviceptr address);
struct mapping *mapping_table_get(size_t at);                 /* NULL behind the last */
struct mapping *mapping_table_find_from(CUdeviceptr address); /* the first that ends behind it */
void mapping_table_clear(void); /* forgets and frees nothing, but closes descriptors */

/*
 * mapping_arena_open() - reserve the arena, at the first allocation; without the lock. Where that
 * fails (a limit on address space), each mapping reserves its own address.
 */
void mapping_arena_open(void);

/* mapping_arena_overlaps() - is any of the range in the arena? Without the lock. */
bool mapping_arena_overlaps(CUdeviceptr address, uint64_t size);

#endif
