/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_GRAPH_H
#define GATE_GRAPH_H

/*
 * Memory of graphs: what their allocation nodes stand for. It is charged from when a node is added, or
 * captured, until the graph and all that was instantiated from it are gone: the driver takes it when
 * the graph is launched, and keeps it for the next launch.
 *
 * As with a holding, memory is made before the driver is asked, and kept or dropped by what the driver
 * says; and a handle is forgotten before the driver lets go of it:
 *
 *     memory = graph_memory_new(bytes, device);
 *     result = graph_memory_keep(memory, DRIVER(cuGraphAddMemAllocNode)(&node, graph, ...), graph);
 *
 *     handle = graph_handle_take(graph);
 *     result = graph_handle_settle(handle, DRIVER(cuGraphDestroy)(graph));
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"

struct graph_memory;
struct graph_handle; /* of a graph or of an executable one that has memory */

/* graph_memory_new() - charge @bytes on @device; NULL if this exceeds the quota (or malloc() fails). */
struct graph_memory *graph_memory_new(uint64_t bytes, CUdevice device);
CUresult graph_memory_keep(struct graph_memory *memory, CUresult result, CUgraph graph);

/*
 * graph_memory_share() - the driver has answered @result to an instantiation: then what @graph has is
 * also that of @exec.
 */
CUresult graph_memory_share(CUresult result, CUgraph graph, const CUgraphExec *exec);

/* graph_handle_take() - take the handle of a graph or of an executable one; NULL: it has no memory. */
struct graph_handle *graph_handle_take(const void *graph);
CUresult graph_handle_settle(struct graph_handle *handle, CUresult result);

/* graph_capture_find() - find the graph into which @stream is captured. False: it is not captured. */
bool graph_capture_find(CUstream stream, bool is_per_thread, CUgraph *ret_graph);

#endif
