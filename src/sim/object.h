/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_OBJECT_H
#define SIM_OBJECT_H

/*
 * Objects that programs hold by a pointer: contexts, streams, events, modules, ...
 *
 * All live ones are in one table, so that a handle that never was one, or is not one any more,
 * is an error and not a crash. With the process' lock held.
 */

#include <stdbool.h>

enum object_kind {
        OBJECT_CONTEXT = 1,
        OBJECT_GREEN,
        OBJECT_STREAM,
        OBJECT_EVENT,
        OBJECT_MODULE,
        OBJECT_FUNCTION,
        OBJECT_GRAPH,
        OBJECT_GRAPH_EXEC,
        OBJECT_POOL,
        OBJECT_ARRAY,
        OBJECT_TEXTURE,
};

/* The first member of each. */
struct object {
        struct object *next;
        enum object_kind kind;
};

void object_add(struct object *object, enum object_kind kind);
void object_remove(struct object *object);

/* object_find() - return @handle if it is a live object of @kind, else NULL. */
void *object_find(const void *handle, enum object_kind kind);

#endif
