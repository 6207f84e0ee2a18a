/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_PHYSICAL_H
#define GATE_PHYSICAL_H

/* Physical memory that the application maps itself, and its views (vmm.h). */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "gate/hash.h"
#include "wire/gate.h"

struct mapping;
struct physical;

struct view {
        struct hash_node by_address; /* first */
        uint64_t size, offset;
        struct physical *physical;
        struct view *next;        /* while being unmapped */
        struct view *of_the_same; /* in physical->views */
        CUmemAccessDesc *access;
        uint32_t n_access;
        bool sync_memops;
};

/* Memory that another process has made. */
struct import {
        struct gate_ticket ticket;
        CUmemGenericAllocationHandle real;
        bool is_away;               /* let go while the gate is closed */
        bool is_lost;               /* and gone for ever: its process has ended meanwhile */
        void (*tell_dropped)(void); /* called when all memory of that process is gone */
};

struct physical {
        uint64_t bytes;   /* charged as fixed memory, */
        CUdevice device;  /* to this one */
        uint32_t n_users; /* handles, views, and calls that may become one or were one */
        uint32_t holds;   /* GATE_HOLDS_* */
        struct view *views;
        CUmemGenericAllocationHandle number; /* of ours; 0: the driver's */
        CUmemAllocationProp prop;            /* of what this process has created */
        bool is_private; /* it was not to be exported: @prop says otherwise, so that it can be moved */
        struct mapping *mapping;       /* behind memory that we can move; or NULL */
        struct import *import;         /* or NULL */
        struct physical *next, **link; /* in the list of those with a mapping or an import */
};

/*
 * physical_map(), physical_unmap() - all views, with the driver's handle @real behind them; all or none. For the
 * agent while the gate is closed.
 */
CUresult physical_map(const struct physical *physical, CUmemGenericAllocationHandle real,
                      const char **ret_call);
CUresult physical_unmap(const struct physical *physical, CUmemGenericAllocationHandle real,
                        const char **ret_call);

#endif
