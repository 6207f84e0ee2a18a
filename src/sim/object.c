/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that programs hold by a pointer: a hash table of the live ones. */

#include "sim/object.h"

#include <stddef.h>
#include <stdint.h>

#define BUCKETS 4096

static struct object *buckets[BUCKETS];

static struct object **bucket(const void *handle)
{
        return &buckets[((uintptr_t)handle >> 4) % BUCKETS];
}

void object_add(struct object *object, enum object_kind kind)
{
        struct object **head = bucket(object);

        object->kind = kind;
        object->next = *head;
        *head = object;
}

static struct object **find_link(const void *handle)
{
        struct object **link = bucket(handle);

        while (*link && *link != handle)
                link = &(*link)->next;
        return link;
}

void object_remove(struct object *object)
{
        struct object **link = find_link(object);

        if (*link)
                *link = object->next;
}

void *object_find(const void *handle, enum object_kind kind)
{
        struct object *object = *find_link(handle);

        return object && object->kind == kind ? object : NULL;
}
