/* SPDX-License-Identifier: Apache-2.0 */
/* Work: one thing that a stream does. */

#include "sim/work.h"

#include <errno.h>
#include <stdlib.h>

#include "sim/stream-object.h"

struct work *work_new(enum work_kind kind)
{
        struct work *work = calloc(1, sizeof(*work));

        if (work)
                work->kind = kind;
        return work;
}

struct work *work_copy(const struct work *work)
{
        struct work *copy = malloc(sizeof(*copy));

        if (!copy)
                return NULL;
        *copy = *work;
        copy->next = NULL;
        copy->stream = NULL;
        copy->dependencies = NULL;
        copy->waits = false;
        return copy;
}

struct work *work_free(struct work *work)
{
        free(work);
        return NULL;
}

int work_depend(struct work *work, CUstream stream, uint64_t number)
{
        struct dependency *dependency;

        if (stream->done >= number)
                return 0;
        dependency = malloc(sizeof(*dependency));
        if (!dependency)
                return -ENOMEM;
        dependency->stream = stream_ref(stream);
        dependency->number = number;
        dependency->next = work->dependencies;
        work->dependencies = dependency;
        return 0;
}

void work_drop_dependencies(struct work *work)
{
        while (work->dependencies) {
                struct dependency *dependency = work->dependencies;

                work->dependencies = dependency->next;
                (void)stream_unref(dependency->stream);
                free(dependency);
        }
}
