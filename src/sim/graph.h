/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

/* A graph is a list of work that was captured, in the order in which it was submitted. */

#include "sim/object.h"
#include "sim/work.h"

struct graph_memory;

struct CUgraph_st {
        struct object object;
        struct work *first, **last;
        size_t n;
        struct graph_memory *memory; /* of its allocation nodes, or NULL */
};

/* graph_new() - make an empty graph. NULL: no memory. */
CUgraph graph_new(void);
CUgraph graph_free(CUgraph graph);

/* graph_copy() - copy the work, and share the memory of the allocation nodes. NULL: no memory. */
CUgraph graph_copy(const struct CUgraph_st *graph);

/* graph_add() - add @work, which is taken. */
void graph_add(CUgraph graph, struct work *work);

/*
 * Allocation and free nodes. The memory exists from when its node is added until the graph and all that
 * was instantiated from it are gone; a launch changes nothing. Call these with the process' lock held.
 */
CUresult graph_allocate(CUgraph graph, CUcontext context, size_t size, CUdeviceptr *ret_pointer);
CUresult graph_release(CUgraph graph, CUdeviceptr pointer);
struct graph_memory *graph_memory_ref(struct graph_memory *memory);
struct graph_memory *graph_memory_unref(struct graph_memory *memory);

#endif
