/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BOARD_INSTANCE_PAGE_H
#define BOARD_INSTANCE_PAGE_H

/*
 * The instance page: shared memory of one vGPU instance, mapped by the manager
 * and by the gates of its processes (who may write into all of it).
 *
 * It answers one question without the manager: may this process allocate @n
 * bytes? Each process owns one slot and adds up there what it holds. The use of
 * the instance is the sum over the slots, so that a process that dies at any
 * instruction takes exactly its own share with it: the manager clears its slot.
 *
 * A charge reads all slots and adds to its own: between processes that is made
 * atomic by a write lock (fcntl F_SETLKW) on the first byte of the page's file,
 * which the kernel drops when a holder dies; between threads by the gate. Not an
 * OFD lock: that one belongs to the open file, which all gates of an instance
 * share when the manager hands them the same descriptor.
 *
 * The manager never locks, and believes nothing it reads here: a guest that
 * writes garbage lies about itself only. @quota is the manager's to write; it
 * rewrites it at every sample.
 */

#include <stdint.h>

#define INSTANCE_PAGE_MAGIC   0x45474150u /* "PAGE" */
#define INSTANCE_PAGE_VERSION 1u
#define INSTANCE_PAGE_SLOTS   128

/* What kind of memory is charged: can it be moved by us, or only by the driver's checkpoint? */
enum instance_page_kind {
        INSTANCE_PAGE_MOVABLE = 0, /* the gate's exportable allocations */
        INSTANCE_PAGE_FIXED,       /* arrays, pools, managed, application-made or exported memory */
        INSTANCE_PAGE_KINDS,
};

struct instance_page_slot {
        _Atomic uint64_t used[INSTANCE_PAGE_KINDS]; /* bytes */
        _Atomic uint64_t peak;                      /* bytes, of the sum */
        _Atomic uint64_t n_allocations;
        _Atomic uint64_t n_refused;  /* allocations over the quota */
        _Atomic uint64_t n_launches; /* kernels, graphs, host functions */
        uint64_t reserved[2];
};

struct instance_page {
        uint32_t magic;
        uint32_t version;
        uint32_t n_slots;
        uint32_t reserved;
        _Atomic uint64_t quota; /* bytes */
        uint64_t reserved2[5];
        struct instance_page_slot slot[INSTANCE_PAGE_SLOTS];
};

_Static_assert(sizeof(struct instance_page_slot) == 64, "one cache line a slot");
_Static_assert(sizeof(struct instance_page) == 64 + 64 * INSTANCE_PAGE_SLOTS, "layout is the ABI");

#endif
