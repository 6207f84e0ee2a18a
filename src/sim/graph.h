/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

/* Graphs: a list of work that was captured, in the order in which it was submitted. */

#include "sim/object.h"
#include "sim/work.h"

struct CUgraph_st {
        struct object object;
        struct work *first, **last;
        size_t n;
};

/* graph_new() - NULL: no memory. */
CUgraph graph_new(void);
CUgraph graph_free(CUgraph graph);

/* graph_add() - takes @work. */
void graph_add(CUgraph graph, struct work *work);

#endif
